"""docs/speed.md, docs/speed.csv and its figure: what the peers' benchmark found, and growth.py over devices.

python benchmarks/peers/page.py    # the page and its figure again, from the table
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from feelstream.report.figures import save
from feelstream.studies import pages
from feelstream_studies import tables

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
sys.path.append(str(HERE.parent))

from machine import described  # noqa: E402

NAME = "speed"
DIGITS = 6  # of the table: times are kept to the hundredth of a second
QUICK_MS = 50  # a policy that takes less for a million devices has no row of its own
LAST = 5  # rounds whose mean accuracy is compared: one round's jumps by a percentage point
AGREE = 4  # standard deviations of feelstream's own accuracy over seeds
OURS, TORCH = "feelstream", "PyTorch"
TUNED, AS_USERS = FORMS = ("tuned", "as users")
DATA = {"mnist": "MNIST", "cifar": "CIFAR-10"}
Row = dict[str, Any]


def settled(accuracy: Sequence[float]) -> float:
    """The mean accuracy of the last rounds."""
    return float(np.mean(accuracy[-LAST:])) if accuracy else float("nan")


def rows(workload: str, results: Row) -> list[Row]:
    """A row for each simulator, form and number of clients: its best turn, or why there is none."""
    found: dict[tuple[int, str, bool], list[Row]] = {}
    for run in results["taken"]:
        found.setdefault((run["size"], run["name"], run["tuned"]), []).append(run)
    best = {key: min(ran, key=_loop_s) for key, runs in found.items() if (ran := [r for r in runs if not r["failed"]])}
    listed = [
        {"workload": workload, "simulator": name, "failed": f"does not install: {reason}"}
        for name, reason in results.get("absent", {}).items()
    ]
    for (size, name, tuned), runs in found.items():
        own, ours = best.get((size, name, tuned)), best.get((size, OURS, True))
        others = results["noise"].get(str(size), ())
        row: Row = {"workload": workload, "clients": size, "simulator": name, "form": TUNED if tuned else AS_USERS}
        row |= {"how": runs[0]["form"], "rounds": results["rounds"], "versions": results["versions"].get(name, "")}
        row["turns"] = sum(not run["failed"] for run in runs)
        if len(others) > 1:
            row |= {"own_accuracy": float(np.mean(others)), "own_deviation": float(np.std(others, ddof=1))}
            row["own_seeds"] = len(others)
        if own is None:
            row["failed"] = f"did not finish: {runs[0]['failed']}"
        else:
            row |= {"seconds": own["loop_s"], "times": own["loop_s"] / ours["loop_s"] if ours else None}
            row |= {"startup_s": own["startup_s"], "memory_mb": own["memory_mb"], "accuracy": settled(own["accuracy"])}
        listed.append(row)
    return listed


def _loop_s(run: Row) -> float:
    return run["loop_s"]


def table_of(measured: dict[str, Row], before: tables.Table | None = None, commit: str = "") -> tables.Table:
    """Of what was measured; a workload that was not measured again keeps its rows of the table before."""
    facts = dict(before.about) if before else {}
    old = before.rows.filter(~pl.col("workload").is_in(list(measured))) if before else pl.DataFrame()
    new = [row for workload, results in measured.items() for row in rows(workload, results)]
    facts |= {"Command": "python benchmarks/peers/run.py"}
    facts |= {_machine(workload): described(results["machine"]) for workload, results in measured.items()}
    if measured:
        facts |= {"Commit": commit or tables.commit()}
        facts.pop("Note", None)  # of earlier runs
    whole = pl.concat([pl.DataFrame(new, infer_schema_length=None), old], how="diagonal_relaxed") if new else old
    return tables.Table(tables.rounded(whole, DIGITS), facts)


def _machine(workload: str) -> str:
    return f"Machine of {DATA[workload]}"


def text(table: tables.Table, growth: tables.Table | None = None) -> str:
    ran = _ran(table.rows)
    settings = [_setting(own) for _, own in ran.group_by("workload", "clients", maintain_order=True)]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    said = environment.get_template(f"{NAME}.md.j2").render(
        about=table.about,
        growth=growth and _growth(growth),
        machines={name: fact for name, fact in table.about.items() if name.startswith("Machine of ")},
        settings=settings,
        simulators=_order(ran),
        summary=[found for _, own in ran.group_by("workload", maintain_order=True) if (found := _summary(own))],
        turns=_turns(ran),
        failed=_failed(table.rows),
        last=LAST,
        agree=AGREE,
    )
    return f"{said.rstrip()}\n"


def _ran(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("seconds").is_not_null())


def _order(ran: pl.DataFrame) -> list[str]:
    """feelstream first, then from the fastest to the slowest in the first setting that each is in."""
    best = ran.group_by("simulator", maintain_order=True).agg(pl.col("seconds").filter(form=TUNED).first())
    names = best.sort("seconds", nulls_last=True)["simulator"].to_list()
    return sorted(names, key=lambda name: name != OURS)


def _setting(own: pl.DataFrame) -> Row:
    """One workload and number of clients: the cells of its columns, and how far accuracies are from feelstream's."""
    first = own.row(0, named=True)
    mean, deviation = first["own_accuracy"], first["own_deviation"]
    apart = own.filter((pl.col("accuracy") - mean).abs() > AGREE * deviation) if deviation else own.clear()
    return {
        "title": f"{DATA[first['workload']]}, n = {first['clients']}",
        "mean": mean,
        "deviation": deviation,
        "seeds": first["own_seeds"],
        "accuracies": (own["accuracy"].min(), own["accuracy"].max()),
        "apart": [f"{r['simulator']} ({r['form']}) {100 * r['accuracy']:.2f} %" for r in apart.rows(named=True)],
        **{form: {r["simulator"]: cell(r) for r in own.filter(form=form).rows(named=True)} for form in FORMS},
    }


def cell(row: Row) -> str:
    return f"{row['seconds']:.2f} s" + ("" if row["times"] is None else f", {row['times']:.1f}×")


def _summary(own: pl.DataFrame) -> Row | None:
    """Against the fastest peer and a loop in PyTorch, by number of clients; None without one of them."""
    tuned, others = own.filter(form=TUNED), own.filter(~pl.col("simulator").is_in([OURS, TORCH]))
    ours, torch = tuned.filter(simulator=OURS), tuned.filter(simulator=TORCH)
    if ours.is_empty() or torch.is_empty() or others.is_empty():
        return None
    fastest = others.sort("seconds").group_by("clients", maintain_order=True).first().sort("clients")
    rivals = tuned.filter(pl.col("simulator") != OURS)["memory_mb"]
    return {
        "data": DATA[own["workload"][0]],
        "rounds": own["rounds"][0],
        "clients": ours["clients"],
        "seconds": [f"{each:.2f}" for each in ours["seconds"]],
        "peers": others["simulator"].n_unique(),
        "fastest": fastest["simulator"].unique(maintain_order=True),
        "times": [f"{each:.1f}" for each in fastest["times"]],
        "torch": [f"{each:.1f}" for each in torch["times"]],
        "memory": _range(ours["memory_mb"]),
        "others": _range(rivals),
    }


def _range(values: Iterable[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def _turns(ran: pl.DataFrame) -> str:
    """How often each tuned form was measured, where that is not the same for all."""
    told = []
    for (workload,), own in ran.filter(form=TUNED).group_by("workload", maintain_order=True):
        by_count = own.group_by("turns").agg(pl.col("simulator").unique(maintain_order=True)).sort("turns")
        if len(by_count) > 1:
            said = [f"{row['turns']} of {', '.join(row['simulator'])}" for row in by_count.rows(named=True)[::-1]]
            told.append(f"on {DATA[str(workload)]} {'; '.join(said)}")
    return f" ({'; '.join(told)})" if told else ""


def _failed(table: pl.DataFrame) -> list[str]:
    failed = table.filter(pl.col("failed").is_not_null() & (pl.col("failed") != ""))
    told = []
    for row in failed.rows(named=True):
        form = f", {row['form']}, n = {row['clients']}," if row["form"] else ""
        told.append(f"{row['simulator']}{form} {row['failed']}")
    return told


def _growth(table: tables.Table) -> Row:
    """What growth.py measured over the number of devices: those that take long a row each, the others in a sentence."""
    sizes = [name for name in table.rows.columns if name.startswith("ms_")]
    last = pl.col(sizes[-1])
    quick = table.rows.filter(last < QUICK_MS)
    times = sorted(quick[sizes[-1]].to_list())
    slow = table.rows.filter(last.is_null() | (last >= QUICK_MS))
    rows = []
    for row in slow.rows(named=True):
        exponent = "–" if row["exponent"] is None else f"{row['exponent']:.2f}"
        rows.append([f"`{row['policy']}`", *(_few(row[name]) for name in sizes), exponent, f"{row['megabytes']:.0f}"])
    over = slow.filter(last > 1000)["policy"].to_list()
    return {
        "about": table.about,
        "rows": rows,
        "over": [f"`{name}`" for name in over],
        "quick": len(quick),
        "times": [_few(times[0]), _few(times[-1])],
    }


def _few(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else f"{milliseconds:.3g}" if milliseconds < 1000 else f"{milliseconds:,.0f}"


def figure_of(table: tables.Table) -> Figure:
    """A panel for each setting: times of whole runs over that of feelstream, tuned and as users would run it."""
    ran = _ran(table.rows)
    names, settings = _order(ran), list(ran.group_by("workload", "clients", maintain_order=True))
    with pages.styled():
        figure = Figure(figsize=(2 * pages.COLUMN_WIDTH_IN, pages.PANEL_HEIGHT_IN), layout="constrained")
        grid = list(figure.subplots(1, len(settings), sharey=True, squeeze=False).flat)
        for axes, (_, own) in zip(grid, settings, strict=True):
            for number, form in enumerate(FORMS):
                style, rows = pages.line_style(number), own.filter(form=form)
                axes.plot(
                    rows["times"], [names.index(name) for name in rows["simulator"]], linestyle="none", label=form,
                    color=style.light, marker=style.marker, markersize=5,
                )  # fmt: skip
            ticks = [1, 2, 5, 10, 20]
            axes.set(xscale="log", xlabel="Time / feelstream's")
            axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
            axes.minorticks_off()
            axes.set_yticks(range(len(names)), names)
            axes.set_ylim(len(names) - 0.5, -0.5)
            axes.set_title(_setting(own)["title"], loc="left", pad=4)
        pages.legend_below(figure, grid)
    return figure


def read(docs: Path = DOCS) -> tables.Table:
    return tables.read(docs / f"{NAME}.csv")


def growth(docs: Path = DOCS) -> tables.Table | None:
    """What growth.py wrote, if it did."""
    return tables.read(path) if (path := docs / "growth.csv").is_file() else None


def write(table: tables.Table, docs: Path = DOCS) -> Path:
    """The page, its table and its figure."""
    tables.write(docs / f"{NAME}.csv", table, DIGITS)
    save(figure_of(table), docs / "figures", NAME, formats=("png",), dpi=pages.DOCS_DPI)
    path = docs / f"{NAME}.md"
    path.write_text(text(table, growth(docs)), encoding="utf-8")
    return path


if __name__ == "__main__":
    write(read())
