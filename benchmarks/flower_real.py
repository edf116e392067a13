"""What scheduling is worth in a real federation: joules and seconds of phones until the model has 80 % on MNIST.

    python benchmarks/flower_real.py --seeds 700 701 702      20 nodes, three policies: a quarter of an hour
    python benchmarks/flower_real.py --seeds 700 --here       the same in this process, without servers: seconds
    python benchmarks/flower_real.py --page                   table and figure of docs/flower-value.md from its CSV
    python benchmarks/flower_real.py --smoke                  3 nodes, 2 rounds, synthetic data: only that it works

A SuperLink and a SuperNode per device on loopback exchange real messages, and clients train the paper's network really,
by the native engine (flower_phones/phones.py). Only time and energy are emulated: those of a Pixel 6. What is played
and what would count as a win was registered in docs/archive/flower-value.md before the first run on seeds 700 to 702.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy import stats

import feelstream as fs
from feelstream.flower import LocalGrid
from feelstream.flower.federation import federation, is_complete, write_scenario
from feelstream.report.figures import save
from feelstream.scenario.files import from_dict
from feelstream.studies import pages
from feelstream_studies import tables
from flower_phones.phones import answer, phones, prepare, serve

APP = Path(__file__).with_name("flower_phones")
DOCS = APP.parents[1] / "docs"
NAME, BEGIN, END = "flower-value", "<!-- table -->\n", "<!-- end of table -->\n"
OURS, RANDOM, ALL = POLICIES = ("balanced", "random", "select_all")
WANTED, SETTLED = 0.8, 3  # accuracy, as the mean of so many rounds
ROUND_LIMIT_S = 1200.0  # by the wall clock, on however busy a machine
Play = Callable[[str, int, Path], None]


def scenario(smoke: bool) -> fs.Scenario:
    """What server and clients are told; policy.size is of those policies that have one."""
    devices, rounds, size, data = (3, 2, 1, "synthetic") if smoke else (20, 25, 4, "mnist")
    return from_dict(
        {
            "system": {"devices": devices, "rounds": rounds, "round_s": 600.0, "energy_budget_j": 0.08},
            "cpu": {"profile": "gs101-x1", "frequency_hz": "profile", "energy": {"kind": "voltage"}},
            "radio": {"bandwidth_hz": 2e6, "fading": "none"},
            "learning": {"lr": 0.05, "engine": "native"},
            "policy": {"name": RANDOM, "size": size},
            "data": {
                "dataset": data,
                "eligible": "with_data",
                "partition": {"kind": "digits", "per_device": 3},
                "arrivals": {"kind": "poisson", "rate": 20.0, "order": "shuffled"},
            },
        }
    )


def in_a_federation(played: fs.Scenario, plays: Callable[[Play], None], logs: Path | None) -> None:
    """One SuperLink and its nodes, for all runs one after another."""
    with federation(logs) as flower:
        file = write_scenario(flower, played)
        flower.warm(file)
        flower.wait_for_superlink()
        for node in range(played.system.devices):
            flower.start_node(node, played.system.devices)

        def play(policy: str, seed: int, out: Path) -> None:
            flower.submit(APP, {"scenario": str(file), "policy": policy, "seed": seed, "out": str(out)})
            lost = partial(print, "ended:", file=sys.stderr)
            flower.wait(lambda: is_complete(out), 300 + ROUND_LIMIT_S * played.system.rounds, lost)

        plays(play)


def here(played: fs.Scenario, plays: Callable[[Play], None]) -> None:
    """The same server and clients in this process."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "scenario.toml"
        file.write_text(fs.to_toml(played), encoding="utf-8")

        def play(policy: str, seed: int, out: Path) -> None:
            _, data, learner = prepare(str(file))
            assert learner is not None
            grid = LocalGrid()
            client = partial(answer, scenario=played, seed=seed, dataset=data, learner=learner)
            for node in range(played.system.devices):
                grid.add(100 + node, {"partition-id": node}, client)
            serve(grid, str(file), policy, seed, str(out))

        plays(play)


def rows(run: fs.Run, policy: str, seed: int) -> pl.DataFrame:
    """A row per round: what was really spent until then, beside what meters showed."""
    assert run.devices is not None
    K, fleet = run.scenario.system.devices, phones(run.scenario, seed)
    took = run.devices.select("scheduled", pl.col("e_tr_j", "t_tr_s", "e_cmp_j").fill_null(0.0))
    trains, e_tr_j, t_tr_s, read_j = (took[name].to_numpy().reshape(-1, K) for name in took.columns)
    spent_j = trains * [phone.turn_j for phone in fleet] + e_tr_j
    round_s = (trains * ([phone.turn_s for phone in fleet] + t_tr_s)).max(axis=1)
    granted_j = run.scenario.system.energy_budget_j * np.arange(1, len(trains) + 1)[:, None]
    return pl.DataFrame(
        {
            "seed": seed,
            "policy": policy,
            "round": run.rounds["round"],
            "accuracy": run.rounds["accuracy"],
            "trained": trains.sum(axis=1),
            "arrived": run.rounds["transmitted"],
            "joules": spent_j.sum(axis=1).cumsum(),
            "metered_j": (read_j + e_tr_j).sum(axis=1).cumsum(),
            "seconds": round_s.cumsum(),
            "over_budget": (spent_j.cumsum(axis=0) > granted_j).sum(axis=1),
        }
    )


def reached(table: pl.DataFrame) -> pl.DataFrame:
    """The row of each run in which the mean accuracy of the last rounds is first as wanted; the last if it never is."""
    settled = pl.col("accuracy").rolling_mean(SETTLED).over("seed", "policy")
    marked = table.with_columns(there=(settled >= WANTED).fill_null(False))
    ends = marked.filter(pl.col("there") | (pl.col("round") == pl.col("round").max()))
    return ends.group_by("seed", "policy", maintain_order=True).first()


AXES = {"joules": ("Energy of all phones, J", [5, 10, 20, 50, 100, 200]), "seconds": ("Time, s", [1, 2, 5, 10, 20])}


def saving(found: pl.DataFrame, other: str, what: str) -> tuple[float, float]:
    """By which share ours needs less than the other, paired by seed: mean, and half of its 95 % t interval."""
    own, base = (found.filter(policy=policy).sort("seed")[what].to_numpy() for policy in (OURS, other))
    shares = 1 - own / base
    half = stats.t.ppf(0.975, len(shares) - 1) * shares.std(ddof=1) / len(shares) ** 0.5 if len(shares) > 1 else np.nan
    return float(shares.mean()), float(half)


def markdown(table: pl.DataFrame) -> str:
    found = reached(table)
    lines = [
        f"| policy | rounds to {WANTED:.0%} | J | s | J less with `{OURS}` | over budget |",
        "|---|---|---|---|---|---|",
    ]
    for policy in POLICIES:
        own = found.filter(policy=policy).sort("seed")
        cells = [f"{own[name].mean():.1f}" for name in ("round", "joules", "seconds")]
        cells[0] += "" if own["there"].all() else " (not by all)"
        cells.append("" if policy == OURS else interval(*saving(found, policy, "joules")))
        over = own["over_budget"].to_list()
        cells.append("–".join(map(str, sorted({min(over), max(over)}))))
        lines.append(f"| `{policy}` | {' | '.join(cells)} |")
    return "\n".join(lines).replace("80%", "80 %") + "\n"


def interval(mean: float, half: float) -> str:
    ends = f" [{100 * (mean - half):.0f}, {100 * (mean + half):.0f}]" if np.isfinite(half) else ""
    return f"{100 * mean:.0f} %{ends}".replace("-", "−")


def figure_of(table: pl.DataFrame) -> Figure:
    """Accuracy against what was spent, a line for each run."""
    with pages.styled():
        figure = Figure(figsize=(2 * pages.COLUMN_WIDTH_IN, pages.PANEL_HEIGHT_IN), layout="constrained")
        grid = list(figure.subplots(1, 2, sharey=True))
        settled = table.with_columns(pl.col("accuracy").rolling_mean(SETTLED).over("seed", "policy"))
        for axes, (what, (label, ticks)) in zip(grid, AXES.items(), strict=True):
            for number, policy in enumerate(POLICIES):
                style = pages.line_style(number)
                for i, (_, run) in enumerate(settled.filter(policy=policy).group_by("seed", maintain_order=True)):
                    name = policy if i == 0 else None
                    shown = {"color": style.light, "linestyle": style.mpl_dash, "linewidth": 1.0, "label": name}
                    axes.plot(run[what], 100 * run["accuracy"], **shown)
            axes.axhline(100 * WANTED, label=f"{100 * WANTED:.0f} %", **pages.BUDGET_LINE)
            axes.set(xscale="log", xlabel=label)
            axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
            axes.minorticks_off()
        grid[0].set_ylabel("Accuracy, mean of 3 rounds, %")
        pages.legend_below(figure, grid)
    return figure


def write_page(docs: Path = DOCS) -> None:
    table, page = tables.read(docs / f"{NAME}.csv").rows, docs / f"{NAME}.md"
    page.write_text(with_table(page.read_text(encoding="utf-8"), table), encoding="utf-8")
    save(figure_of(table), docs / "figures", NAME, formats=("png",), dpi=pages.DOCS_DPI)


def with_table(page: str, table: pl.DataFrame) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{markdown(table)}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--page", action="store_true", help="make table and figure of the page, and nothing else")
    parser.add_argument("--here", action="store_true", help="without servers, in this process")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, help="directory of the runs, kept; those that it has are not played again")
    parser.add_argument("--csv", type=Path, help="write a row per round there; with --here, per run")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    logging.disable(logging.WARNING)
    played = scenario(options.smoke)
    with TemporaryDirectory() as directory:
        found, begun, start = list[pl.DataFrame](), datetime.now(UTC), monotonic()

        def plays(play: Play) -> None:
            for seed in options.seeds:
                for policy in POLICIES:
                    out = (options.out or Path(directory)).absolute() / f"{policy}-{seed}"
                    if not is_complete(out):
                        play(policy, seed, out)
                    report = fs.verify(out)
                    assert report.ok, str(report)
                    found.append(rows(fs.read(out), policy, seed))
                    last = found[-1].row(-1, named=True)
                    print(f"{monotonic() - start:.0f} s: {last}", flush=True)

        if options.here:
            here(played, plays)
        else:
            in_a_federation(played, plays, options.out and options.out.absolute() / "logs")
        table = pl.concat(found)
        print(markdown(table))
        for other in (RANDOM, ALL):
            print(f"seconds less than {other}: {interval(*saving(reached(table), other, 'seconds'))}")
        if options.csv:
            facts = {"Command": f"python benchmarks/flower_real.py --seeds {' '.join(map(str, options.seeds))}"}
            facts["Command"] += " --here" if options.here else ""
            facts |= {"Runs": f"{begun:%Y-%m-%d}, {(monotonic() - start) / 60:.0f} minutes", "Commit": tables.commit()}
            tables.write(options.csv, tables.Table(reached(table) if options.here else table, facts), digits=6)


if __name__ == "__main__":
    main()
