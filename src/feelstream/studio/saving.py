"""What someone takes home: run directories that `verify` accepts, scenario files, commands, a race as one file.

A run is a function of (scenario, seed, changes), so saving plays it again, to its end, in a directory: the bytes
are those of `feelstream run`, and a save that is interrupted goes on where it stopped.

The race as one HTML file plays by itself in any browser, without this program and without a network. It holds the
figures of the rounds as JSON, a script that draws them, and a policy that forbids to fetch anything.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feelstream.display.chart import line_style
from feelstream.display.quantities import QUANTITIES, short
from feelstream.errors import RunError
from feelstream.run import simulate_in
from feelstream.run.files import usable_directory, write_atomically
from feelstream.scenario.files import to_toml
from feelstream.studio import asset
from feelstream.studio.charts import BUDGETED, budget_shown, over_budget, shown_setting
from feelstream.studio.lanes import Lane, open_runs, scenario_at, side_by_side
from feelstream.studio.maps import places
from feelstream.studio.views import why

CURVES = ("accuracy", BUDGETED, "queue_mean_j")
MOST_FIGURES = 1_500_000  # numbers in a file, about four characters each: of more devices a sample is kept
FEWEST_DEVICES = 20


def file_name(label: str) -> str:
    """A label as a name that every file system takes.

    >>> file_name("lyapunov, V = 0.5 from 13")
    'lyapunov-V-0.5-from-13'
    """
    return re.sub(r"[^\w.]+", "-", label).strip("-.") or "run"


def scenario_file(lane: Lane) -> str:
    """The lane's scenario as TOML, every field explained."""
    changed = f"; run with {' '.join(_changes(lane))}" if lane.changes else ""
    return to_toml(lane.scenario, f"{lane.label}, seed {lane.seed}, from the studio{changed}")


def command(lane: Lane) -> str:
    """The command line that repeats the lane's run, given its scenario file."""
    name = file_name(lane.label)
    words = ["feelstream", "run", f"{name}.toml", "--seed", str(lane.seed), *_changes(lane), "--out", name]
    return shlex.join(words)


def _changes(lane: Lane) -> list[str]:
    return [word for change in lane.changes for word in ("--change", str(change))]


def save(lanes: Sequence[Lane], directory: Path, progress: Callable[[str], None] = lambda text: None) -> Path:
    """Write each lane's scenario file and run directory, and the commands that repeat them, into a directory."""
    if not all(lane.live for lane in lanes):
        raise RunError("these runs are stored already; start a race of your own to save it")
    path = usable_directory(directory)
    for lane in lanes:
        name, text = file_name(lane.label), scenario_file(lane)
        _write(path / f"{name}.toml", text)

        def tell(record, lane: Lane = lane) -> None:
            progress(f"{lane.label}: round {record.observation.round} of {lane.scenario.system.rounds}")

        simulate_in(path / name, lane.scenario, lane.seed, changes=lane.changes, progress=tell)
    _write(path / "commands.txt", "".join(f"{command(lane)}\n" for lane in lanes))
    return path


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def write_race(paths: Sequence[Path], out: Path, title: str | None = None) -> Path:
    """Write the runs of these directories as one file that plays them side by side."""
    if not paths:
        raise RunError("name the runs to export: feelstream studio RUN … --export race.html")
    text = race_page(open_runs(side_by_side(paths)), title or ", ".join(str(path.name or path) for path in paths))
    if out.is_dir():
        raise RunError(f"{out} is a directory; name the file too, as in {out / 'race.html'}")
    if not out.parent.is_dir():
        raise RunError(f"{out.parent} is not a directory; make it first, or write the file elsewhere")
    _write(out, text)
    return out


def race_page(lanes: Sequence[Lane], title: str) -> str:
    """The whole file."""
    figures = json.dumps(race_figures(lanes, title), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    # Nothing in the figures may end the element that holds them.
    figures = figures.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    text = asset("offline.html").replace("TITLE", html.escape(title)).replace("STYLE", asset("offline.css"))
    return text.replace("SCRIPT", asset("offline.js")).replace("FIGURES", figures)


def race_figures(lanes: Sequence[Lane], title: str) -> dict[str, Any]:
    """What the script draws: the curves and, for each lane and round, devices and reasons."""
    rounds = min(min(lane.scenario.system.rounds, lane.head) for lane in lanes)
    if not rounds:
        raise RunError("no round has been played yet; let the race run first")
    if any(lane.oldest > 1 for lane in lanes):
        raise RunError("the first rounds are no longer in the history; save the runs and export them from there")
    most = max(FEWEST_DEVICES, MOST_FIGURES // (3 * rounds * len(lanes)))
    return {
        "title": title,
        "rounds": rounds,
        "curves": [
            {"title": QUANTITIES[name].words, "unit": QUANTITIES[name].full_unit, "most": QUANTITIES[name].most}
            for name in CURVES
        ],
        "over": [over_budget(lanes, round) for round in range(1, rounds + 1)],
        "lanes": [_lane(lane, index, rounds, most) for index, lane in enumerate(lanes)],
    }


def _lane(lane: Lane, index: int, rounds: int, most: int) -> dict[str, Any]:
    style = line_style(index)
    return {
        "label": lane.label,
        "seed": lane.seed,
        "light": style.light,
        "dark": style.dark,
        "dash": style.plotly_dash,
        "devices": lane.scenario.system.devices,
        "curves": [[_value(row.get(name), name) for row in lane.rows[:rounds]] for name in CURVES],
        "budget": [None, [budget_shown(lane, t) for t in range(1, rounds + 1)], None],
        "changes": [[change.round, shown_setting(change.field, change.value)] for change in lane.changes],
        "scheduled": [list(entry[:2]) for entry in lane.schedule if entry[0] <= rounds],
        "steps": [_step(lane, round, most) for round in range(1, rounds + 1)],
    }


def _value(value: float | None, name: str) -> float | None:
    return None if value is None or not np.isfinite(value) else short(value * QUANTITIES[name].scale, 4)


def _step(lane: Lane, round: int, most: int) -> dict[str, Any]:
    view = lane.view(round)
    said = {"why": why(view, scenario_at(lane, round))}
    if view.devices is None:
        return said
    devices = view.devices
    count = len(devices["device"])
    every = np.flatnonzero(devices["scheduled"] | (np.arange(count) % -(-count // most) == 0))
    devices = {name: column[every] for name, column in devices.items()}
    loss_db, angle = places(devices)
    able = np.where(devices["feasible"], 1, 0)
    state = np.where(devices["transmitted"], 3, np.where(devices["scheduled"], 2, able))
    queue = QUANTITIES["queue_j"].scale
    return said | {
        "id": devices["device"].tolist(),
        "angle": np.round(angle).astype(int).tolist(),
        "loss": np.round(loss_db, 1).tolist(),
        "queue": [short(float(value) * queue, 3) for value in devices["queue_j"]],
        "stored": devices["stored"].tolist(),
        "fresh": devices["fresh"].tolist(),
        "state": state.tolist(),
    }
