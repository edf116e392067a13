"""What the report and docs/within-budget-results.md say: accuracy, energy and margins, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies.claims import Finding
from feelstream.studies.pages import Page, Section, markdown, render, write_page
from feelstream.studies.results import MINUS, QUANTITIES, Results, counted, significant
from feelstream_studies import tables
from feelstream_studies.within_budget.configurations import LONGER, OURS, PLAIN, REFERENCE, SCENARIOS
from feelstream_studies.within_budget.figures import overview_figure
from feelstream_studies.within_budget.findings import MARGINS, held, pairs, per_run, same_server, table_of

HERE = "feelstream_studies.within_budget"
TITLE, NAME = "Within the budget, against training everyone", "within-budget"
CORES = f"{NAME}-cores"  # energies of the same policies under the laws of real cores, by a command of its own
WORST = QUANTITIES["worst_device"].column_title
ACCURACIES = ("accuracy, last fifth, %", "gap", "accuracy, whole run, %", "gap")
HEADS = (*ACCURACIES, "energy, mJ", "energy / budget", WORST, "over")
SERVERS = {"longer steps": LONGER, "memory": OURS, "FedAvg": PLAIN}
NONE = "–"
Row = dict[str, Any]


def page(results: Results) -> Page:
    html = render(f"{HERE}/section.html", scenarios=by_scenario(table_of(per_run(results))), heads=HEADS)
    return Page(title=TITLE, comparison=False, sections=[Section("budget", "Budgets", html)], docs=write_docs)


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write within-budget-results.md, within-budget.csv and figures/within-budget.png; the energies on cores stay."""
    table = tables.Table(tables.rounded(table_of(per_run(results))), tables.about(results))
    write_page(
        directory, f"{NAME}-results", text(table, _cores(directory)), {NAME: overview_figure(table.rows, LONGER)}
    )
    tables.write(directory / f"{NAME}.csv", table)
    return directory / f"{NAME}-results.md"


def from_tables(docs: Path) -> str:
    """The page as the tables beside it say."""
    return text(tables.read(docs / f"{NAME}.csv"), _cores(docs))


def _cores(docs: Path) -> tables.Table | None:
    path = docs / f"{CORES}.csv"
    return tables.read(path) if path.is_file() else None


def pictures(docs: Path) -> dict[str, Figure]:
    return {NAME: overview_figure(tables.read(docs / f"{NAME}.csv").rows, LONGER)}


def text(table: tables.Table, cores: tables.Table | None = None) -> str:
    rows = table.rows
    both = pairs(rows, LONGER)
    alike = dict(zip([name for name, *_ in both], same_server(rows, LONGER), strict=True))
    own = rows.filter(policy=LONGER)
    laws = cores.rows.to_dicts() if cores else []
    return markdown(
        f"{HERE}/results.md.j2",
        summary=summary(rows, LONGER),
        about=table.about,
        seeds=own["seeds"].max(),
        scenarios=len(both),
        missing=[name for name in SCENARIOS if name not in rows["scenario"]],
        margins={name: f"{100 * margin:.0f}" for name, margin in MARGINS.items()},
        ends={name: _ends(everyone, own, alike[name]) for name, everyone, own in both},
        means={name: _means(own) for name, _, own in both},
        held={name: held(rows, LONGER, name) for name in MARGINS},
        below={name: sum((each or 0) < 0 for each in own[f"{name}_same"]) for name in MARGINS},
        servers={name: _servers(rows, policy) for name, policy in SERVERS.items()},
        laws=[_law(row) for row in laws],
        cores=_shares(laws) | (cores.about if cores else {}),
    )


def _shares(laws: Sequence[Row]) -> Row:
    """What slowing down brings and what the policy does, under the paper's law (whole) and on cores."""
    slowed = [row["everyone"] / row["everyone_slowed"] for row in laws]
    policy = [row["everyone_slowed"] / row["balanced_joint"] for row in laws]
    if not laws:
        return {}
    return {
        "whole": (f"{slowed[0]:.0f}", f"{policy[0]:.1f}"),
        "slowed": f"{min(slowed[1:]):.1f} and {max(slowed[1:]):.1f}",
        "policy": f"{min(policy[1:]):.1f} to {max(policy[1:]):.1f}",
    }


def _ends(everyone: Row, own: Row, same: Row | None) -> list[str]:
    worst = own["worst_device"]
    gap, name = _interval(own, "late_accuracy_gap"), "late_accuracy"
    return [
        _percent(everyone, name, bare=True), NONE if same is None else _percent(same, name, bare=True),
        _percent(own, name, bare=True), _interval(own, f"{name}_same"), f"**{gap}**" if own[f"{name}_holds"] else gap,
        _part(own, everyone), NONE if worst is None else f"{worst:.2f}",
    ]  # fmt: skip


def _means(own: Row) -> list[str]:
    gap, name = _interval(own, "accuracy_area_gap"), "accuracy_area"
    return [_interval(own, f"{name}_same"), f"**{gap}**" if own[f"{name}_holds"] else gap]


def _servers(rows: pl.DataFrame, policy: str) -> str:
    """The gaps at the end to everyone with FedAvg, from the smallest to the largest."""
    gaps = [own["late_accuracy_gap"] for _, _, own in pairs(rows, policy) if own["late_accuracy_gap"] is not None]
    return f"{_points(min(gaps))} to {_points(max(gaps))}" if gaps else NONE


def _law(row: Row) -> list[str]:
    everyone, slowed, own = (row[name] for name in ("everyone", "everyone_slowed", "balanced_joint"))
    shares = [f"1/{everyone / own:.0f}", f"1/{slowed / own:.1f}"]
    return [
        row["law"],
        *(f"{row[name]:g}" for name in ("budget", "everyone", "everyone_slowed", "balanced_joint")),
        *shares,
    ]


def summary(table: pl.DataFrame, policy: str = OURS) -> str:
    """What `balanced_joint` with a server that makes more of it reaches and what it spends, in sentences."""
    own, everyone = (table.filter(policy=name) for name in (policy, REFERENCE))
    both = own.join(everyone.select("scenario", everyone="energy_over_budget"), on="scenario")
    if both["late_accuracy_gap"].null_count() == len(both):
        return "Nothing was learned, so there is no accuracy to compare."
    alike = all(same_server(table, policy))  # like for like first, where it was played
    return markdown(
        f"{HERE}/summary.md.j2",
        gaps=100 * both["late_accuracy_gap"].to_numpy(),
        same=100 * both["late_accuracy_same"].to_numpy() if alike else None,
        times=(both["everyone"] / both["energy_over_budget"]).drop_nulls().to_numpy(),
        over=both["devices_over_budget"].to_numpy(),
        worst=both["worst_device"].to_numpy(),
    ).rstrip()


def by_scenario(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Each scenario with its seeds in words and, by policy, the cells of HEADS."""
    found = []
    for name in table["scenario"].unique(maintain_order=True):
        rows = table.filter(scenario=name).rows(named=True)
        least, most = (each(row["seeds"] for row in rows) for each in (min, max))
        seeds = counted(most, "seed") if least == most else f"{least} to {counted(most, 'seed')}"
        found.append({"name": name, "seeds": seeds, "rows": {row["policy"]: _cells(row) for row in rows}})
    return found


def _cells(row: Row) -> list[str]:
    accuracies = [cell for name in MARGINS for cell in (_percent(row, name), _gap(row, name))]
    worst, over = row["worst_device"], row["devices_over_budget"]
    return [
        *accuracies, _magnitude(row, "energy_j", 1e3), _magnitude(row, "energy_over_budget", 1.0),
        NONE if worst is None else significant(worst, 3), NONE if over is None else f"{100 * over:.0f} %",
    ]  # fmt: skip


def _part(own: Row, everyone: Row) -> str:
    """The energy of training everyone over that of ours, as in 1/1000."""
    spent, most = own["energy_over_budget"], everyone["energy_over_budget"]
    return f"1/{most / spent:.0f}" if spent and most else NONE


def _interval(row: Row, name: str) -> str:
    """A gap in points with its 95 % interval."""
    mean, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    if mean is None:
        return NONE
    return _points(mean) + ("" if low is None else f" [{_points(low)}, {_points(high)}]")


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", MINUS)


def _percent(row: Row, name: str, bare: bool = False) -> str:
    if row[name] is None:
        return NONE
    half = None if bare else _half(row, name)
    return f"{100 * row[name]:.1f}" + ("" if half is None else f" ± {100 * half:.1f}")


def _magnitude(row: Row, name: str, scale: float) -> str:
    """Energies of policies differ a thousandfold, so digits are counted from the first one."""
    if row[name] is None:
        return NONE
    half = _half(row, name)
    return significant(scale * row[name], 3) + ("" if half is None else f" ± {significant(scale * half, 2)}")


def _half(row: Row, name: str) -> float | None:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return None if low is None else (high - low) / 2


def _gap(row: Row, name: str) -> str:
    if row["policy"] == REFERENCE or row[f"{name}_gap"] is None:
        return ""
    holds = row[f"{name}_holds"]
    verdict = "" if holds is None else f", within {100 * MARGINS[name]:.0f}" if holds else ", not shown"
    return f"{_points(row[f'{name}_gap'])}{verdict}"
