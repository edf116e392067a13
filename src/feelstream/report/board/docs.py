"""docs/leaderboard.md: tables, Pareto plots and what they say, for several scenarios, dated by their runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from feelstream.errors import RunError
from feelstream.experiment import Results, comparison, leaderboard
from feelstream.report.board.table import markdown_table, worlds
from feelstream.report.board.words import discussion
from feelstream.report.drawing.figures import save
from feelstream.report.drawing.pareto import pareto_figure
from feelstream.report.paper.origin import origin
from feelstream.run.files import write_atomically
from feelstream.scenario.files import presets
from feelstream.scenario.overrides import Override

HOW_TO_READ = """\
## How to read it

Every policy meets the same arrivals, CPU frequencies and channels with the same seed, so they are compared in
pairs, by a two-sided paired t-test at 5 %. Values are means over seeds ± half of the 95 % t interval; neither
intervals nor tests are corrected for the number of policies, so among fifteen a small lead of one over another is
weak evidence. An interval may reach past what is possible. The Pareto front is that of the means: near neighbours
may change places with other seeds.

The policies do not all play the same game. `lyapunov_joint` also sets CPU frequencies, band and power, while the
others compute at whatever frequency a device offers; it shows what that freedom is worth, not a better choice of
devices alone. `select_all` ignores the number of devices per round and bounds what participation can bring.
`fedcs`, `ocean` and `myopic_energy` may schedule fewer devices than that number, down to none. At the paper's
constants no policy that schedules exactly 2 or 4 devices a round at the frequencies they offer can meet the budget,
so an "energy / budget" above 1 is no fault of one policy there. What each rule knows and ignores is in [the
catalogue](policies.md).

Where accuracy is not tested in every round, rounds and energy to an accuracy are those of the first test that finds
it, which may be late by up to one step between tests.
"""


def write_leaderboard(
    directory: Path, boards: Mapping[str, Results], changes: Mapping[str, Sequence[str]], options: Sequence[str]
) -> Path:
    """Write leaderboard.md and its plots, figures/pareto-SCENARIO.png.

    boards: results by scenario, in the order of the page. changes: `section.field=value` that each was played with,
    of two for one field the last. options: what the command was given.
    """
    pictures = directory / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"cannot use the directory {pictures}: {problem.strerror}") from problem
    made = {name: origin(results) for name, results in boards.items()}
    days = sorted({entry.finished.partition(" ")[0] for entry in made.values()})
    seeds = max(len(results.plan.seeds) for results in boards.values())
    dates = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    parts = [
        "# Leaderboard\n",
        f"Runs of {dates}, {seeds} seed{'s' * (seeds != 1)}. This page is written by a command; do not edit it:\n",
        f"    {shlex.join(['feelstream', 'leaderboard', *options])}\n",
        HOW_TO_READ,
        "\n".join(f"- **{name}**: {text}" for name, text in leaderboard.EXPLAINED.items()) + "\n",
        *(_section(name, results, changes[name], pictures) for name, results in boards.items()),
        "## Origin\n",
        *(f"- `{name}`: " + "; ".join(f"{k}: {v}" for k, v in entry.facts.items()) for name, entry in made.items()),
    ]
    path = directory / "leaderboard.md"
    text = "\n".join(parts).rstrip() + "\n"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def _section(name: str, results: Results, changes: Sequence[str], pictures: Path) -> str:
    runs = comparison.per_run(results)
    summary = comparison.summarise(results, runs)
    about = presets().get(name, "")
    parts = [f"## {name}\n", f"{about}\n" if about else ""]
    changed = {Override.parse(change).field: change for change in changes}
    if changed:
        parts.append(f"Changed from the scenario: {', '.join(f'`{change}`' for change in changed.values())}.\n")
    for number, (title, points) in enumerate(shown := worlds(results.plan, summary), start=1):
        picture = f"pareto-{Path(name).stem}{'' if len(shown) == 1 else f'-{number}'}"
        save(pareto_figure(points), pictures, picture, formats=("png",))
        parts.append(f"![Accuracy against energy, {title}](figures/{picture}.png)\n")
    parts.append(markdown_table(results.plan, summary))
    parts.append("\n".join(f"- {sentence}" for sentence in discussion(results.plan, runs, summary)) + "\n")
    if results.failures:
        parts.append(f"{len(results.failures)} runs failed and are missing from these numbers.\n")
    return "\n".join(part for part in parts if part)
