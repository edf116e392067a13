"""What the report and docs/within-budget-results.md say: accuracy, energy and gaps, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies.claims import Finding
from feelstream.studies.pages import Page, Section, markdown, render, write_page
from feelstream.studies.results import MINUS, Results, significant
from feelstream_studies import tables
from feelstream_studies.within_budget.configurations import (
    CORES,
    DEVICES,
    EVERYONE,
    LABEL_FREE,
    LABELS,
    ON_TWO,
    PLAIN,
    SCENARIOS,
    SLOWED,
    WAYS,
    of_devices,
)
from feelstream_studies.within_budget.figures import devices_figure, overview_figure
from feelstream_studies.within_budget.findings import per_run, row_of, table_of, within

HERE = "feelstream_studies.within_budget"
TITLE, NAME = "Within the budget, against training everyone", "within-budget"
HEADS = (
    "accuracy, last fifth, %",
    "accuracy, whole run, %",
    "energy / budget",
    "worst device / budget",
    "devices a round",
)
OTHERS = [way for way in WAYS if way not in (EVERYONE, LABELS, LABEL_FREE)]
GOALS = {"labels, end": 5, "labels, run": 5, "everyone": len(SCENARIOS)}  # in how many scenarios, as registered
NONE = "–"
Row = dict[str, Any]


def page(results: Results) -> Page:
    html = render(f"{HERE}/section.html", scenarios=by_scenario(table_of(per_run(results))), heads=HEADS)
    return Page(title=TITLE, comparison=False, sections=[Section("budget", "Budgets", html)], docs=write_docs)


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write within-budget-results.md, within-budget.csv and the two figures."""
    table = tables.Table(tables.rounded(table_of(per_run(results))), tables.about(results))
    write_page(directory, f"{NAME}-results", text(table), _pictures(table.rows))
    tables.write(directory / f"{NAME}.csv", table)
    return directory / f"{NAME}-results.md"


def from_tables(docs: Path) -> str:
    """The page as the table beside it says."""
    return text(tables.read(docs / f"{NAME}.csv"))


def pictures(docs: Path) -> dict[str, Figure]:
    return _pictures(tables.read(docs / f"{NAME}.csv").rows)


def _pictures(table: pl.DataFrame) -> dict[str, Figure]:
    found = {NAME: overview_figure(table)}
    if any(row_of(table, of_devices(name, devices), LABELS) for name in ON_TWO for devices in DEVICES):
        found[f"{NAME}-devices"] = devices_figure(table)
    return found


def text(table: tables.Table) -> str:
    rows = table.rows
    played = [name for name in SCENARIOS if row_of(rows, name, LABELS)]
    goals = _goals(rows, played)
    return markdown(
        f"{HERE}/results.md.j2",
        about=table.about,
        played=played,
        summary=summary(rows),
        seeds=rows.filter(pl.col("scenario").is_in(played))["seeds"].max(),
        told={name: _told(rows, name) for name in played},
        free={name: _free(rows, name) for name in played},
        others={name: [_percent(row_of(rows, name, way)) for way in OTHERS] for name in played},
        ways=OTHERS,
        factors=_factors(rows),
        cores=[cells for name in ON_TWO for core in CORES if (cells := _core(rows, name, core))],
        devices=" / ".join(str(devices) for devices in DEVICES),
        grown=[cells for name in ON_TWO if (cells := _grown(rows, name))],
        goals=goals,
        missed=any(len(goals[name][0]) < least for name, least in GOALS.items()),
    )


def _goals(rows: pl.DataFrame, played: Sequence[str]) -> dict[str, tuple[list[str], ...]]:
    """Where the registered goals are met: by the whole interval, and by the mean alone."""
    return {
        "labels, end": within(rows, LABEL_FREE, "late_accuracy_labels", 0.5, played),
        "labels, run": within(rows, LABEL_FREE, "accuracy_area_labels", 1.0, played),
        "everyone": within(rows, LABEL_FREE, "late_accuracy_everyone", 1.0, played),
        "everyone, told labels": within(rows, LABELS, "late_accuracy_everyone", 1.0, played),
    }


def summary(table: pl.DataFrame) -> str:
    """Like for like first: what `balanced_joint` reaches against everyone with the same server, and what it spends."""
    both = [(row_of(table, name, LABELS), row_of(table, name, LABEL_FREE)) for name in SCENARIOS]
    own, free = ([row for row in each if row] for each in zip(*both, strict=True))
    plain = [row for name in SCENARIOS if (row := row_of(table, name, PLAIN))]
    everyone = {row["scenario"]: row for row in table.filter(way=EVERYONE).to_dicts()}
    times = [
        everyone[row["scenario"]]["energy_over_budget"] / row["energy_over_budget"]
        for row in own
        if row["scenario"] in everyone and row["energy_over_budget"]
    ]
    return markdown(
        f"{HERE}/summary.md.j2",
        scenarios=len(own),
        end=_extremes(own, "late_accuracy_everyone"),
        fedavg=_extremes(plain, "late_accuracy_fedavg"),
        few=max((row["seeds"] for row in plain), default=0),
        free=_extremes(free, "late_accuracy_everyone"),
        times=[f"{each:.0f}" for each in (min(times), max(times))] if times else None,
        over=max(
            (100 * row["devices_over_budget_high"] for row in own + free if row["devices_over_budget_high"]), default=0
        ),
    ).rstrip()


def _extremes(rows: Sequence[Row], name: str) -> list[str] | None:
    """The least and the greatest mean gap, in points; None where nothing was learned."""
    found = [row[name] for row in rows if row[name] is not None]
    return [_points(min(found)), _points(max(found))] if found else None


def _told(rows: pl.DataFrame, name: str) -> list[str]:
    own, everyone = row_of(rows, name, LABELS), row_of(rows, name, EVERYONE)
    assert own is not None
    return [
        _percent(everyone), _percent(own), _gap(own, "late_accuracy_everyone"), _gap(own, "accuracy_area_everyone"),
        _part(own, everyone), f"{own['devices_a_round']:.1f}", _worst(own),
    ]  # fmt: skip


def _free(rows: pl.DataFrame, name: str) -> list[str]:
    own = row_of(rows, name, LABEL_FREE)
    gaps = ("late_accuracy_labels", "accuracy_area_labels", "late_accuracy_everyone")
    return [_percent(own), *(_gap(own, gap) for gap in gaps), _worst(own)]


def _core(rows: pl.DataFrame, name: str, core: str) -> list[str] | None:
    there = {way: row_of(rows, f"{name} on {core}", way) for way in (EVERYONE, SLOWED, LABELS, LABEL_FREE)}
    if not all(there.values()):
        return None
    own = there[LABELS]
    energies = [significant(1e3 * row["energy_j"], 3) if row else NONE for row in there.values()]
    return [
        f"`{name}` on {core}", *energies[:3], _part(own, there[EVERYONE]), _part(own, there[SLOWED]),
        _gap(own, "late_accuracy_everyone"), _gap(there[LABEL_FREE], "late_accuracy_everyone"),
    ]  # fmt: skip


def _factors(rows: pl.DataFrame) -> list[str]:
    """What slowing everyone down saves, and the policy on top: under λ c f², then on cores; least to greatest."""
    found = []
    for names in (list(SCENARIOS), [f"{name} on {core}" for name in ON_TWO for core in CORES]):
        energies = [[row_of(rows, name, way) for way in (EVERYONE, SLOWED, LABELS)] for name in names]
        known = [[row["energy_j"] for row in each if row] for each in energies if all(each)]
        for more, less in ((0, 1), (1, 2)):
            times = [each[more] / each[less] for each in known if each[less]]
            found.append(f"{significant(min(times), 2)} to {significant(max(times), 2)}" if times else NONE)
    return found


def _grown(rows: pl.DataFrame, name: str) -> list[str] | None:
    """Of K as in DEVICES: devices a round, the part of the budget, and both accuracies."""
    there = [row for devices in DEVICES if (row := row_of(rows, of_devices(name, devices), LABELS))]
    if not there:
        return None
    each = (
        [f"{row['devices_a_round']:.1f}" for row in there], [f"{row['energy_over_budget']:.2f}" for row in there],
        [_percent(row) for row in there], [_percent(row, "accuracy_area") for row in there],
    )  # fmt: skip
    return [f"`{name}`", *(" / ".join(values) for values in each)]


def by_scenario(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Each scenario with, by way, its seeds and the cells of HEADS."""
    found = []
    for name in table["scenario"].unique(maintain_order=True):
        rows = {f"{row['way']} ({row['seeds']})": _cells(row) for row in table.filter(scenario=name).to_dicts()}
        found.append({"name": name, "rows": rows})
    return found


def _cells(row: Row) -> list[str]:
    spread = [(name, 100.0, 1) for name in ("late_accuracy", "accuracy_area")]
    cells = [_mean(row, *each) for each in spread]
    return [*cells, _significant(row, "energy_over_budget"), _worst(row), f"{row['devices_a_round']:.1f}"]


def _mean(row: Row, name: str, scale: float, digits: int) -> str:
    if row[name] is None:
        return NONE
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    half = "" if low is None else f" ± {scale * (high - low) / 2:.{digits}f}"
    return f"{scale * row[name]:.{digits}f}{half}"


def _significant(row: Row, name: str) -> str:
    return NONE if row[name] is None else significant(row[name], 3)


def _worst(row: Row | None) -> str:
    return NONE if row is None or row["worst_device"] is None else f"{row['worst_device']:.2f}"


def _percent(row: Row | None, name: str = "late_accuracy") -> str:
    return NONE if row is None or row[name] is None else f"{100 * row[name]:.1f}"


def _part(own: Row | None, other: Row | None) -> str:
    """The energy of another way over ours, as in 1/1000."""
    if own is None or other is None or not own["energy_over_budget"] or not other["energy_over_budget"]:
        return NONE
    return f"1/{significant(other['energy_over_budget'] / own['energy_over_budget'], 3)}"


def _gap(row: Row | None, name: str) -> str:
    """A gap in points with its 95 % interval."""
    if row is None or row[name] is None:
        return NONE
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return _points(row[name]) + ("" if low is None else f" [{_points(low)}, {_points(high)}]")


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", MINUS)
