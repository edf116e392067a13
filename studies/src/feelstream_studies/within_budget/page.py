"""What the report and docs/within-budget-results.md say: accuracy, energy and margins, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.studies.claims import Finding
from feelstream.studies.pages import Page, Section, markdown, origin, render, write_page
from feelstream.studies.results import MINUS, QUANTITIES, Results, counted, significant
from feelstream_studies.within_budget.configurations import ALL_SEEDS, LONGER, OURS, REFERENCE, SCENARIOS
from feelstream_studies.within_budget.figures import figure_of, overview_figure
from feelstream_studies.within_budget.findings import MARGINS, held, pairs, per_run, same_server, table_of

HERE = "feelstream_studies.within_budget"
TITLE, NAME = "Within the budget, against training everyone", "within-budget"
LONGER_TITLE, LONGER_NAME = "Within the budget, with longer steps of the server", "within-budget-longer"
MEASURED = {"late_accuracy": "accuracy of the last fifth", "accuracy_area": "mean accuracy over the run"}
WORST = QUANTITIES["worst_device"].column_title
ACCURACIES = ("accuracy, last fifth, %", "gap", "accuracy, whole run, %", "gap")
HEADS = (*ACCURACIES, "energy, mJ", "energy / budget", WORST, "over")
NONE = "–"
Row = dict[str, Any]


def page(results: Results) -> Page:
    html = render(f"{HERE}/section.html", scenarios=by_scenario(table_of(per_run(results))), heads=HEADS)
    return Page(title=TITLE, comparison=False, sections=[Section("budget", "Budgets", html)], docs=write_docs)


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write within-budget-results.md, within-budget.csv, figures/within-budget.png and within-budget-overview.png.

    And of the server with longer steps, where it was played, within-budget-longer.md, .csv and figures/….png.
    """
    # Rounded first, so that page and table cannot disagree in a digit.
    table, made = table_of(per_run(results)).with_columns(pl.selectors.float().round_sig_figs(4)), origin(results)
    text = f"{opening(table)}\n{markdown('feelstream.studies/origin.md.j2', made=made)}"
    pictures = {NAME: figure_of(table), f"{NAME}-overview": overview_figure(table)}
    path = write_page(directory, f"{NAME}-results", text, pictures, {NAME: table})
    if LONGER in table["policy"]:
        longer = table.filter(pl.col("policy").is_in(ALL_SEEDS))
        text = f"{longer_steps(longer)}\n{markdown('feelstream.studies/origin.md.j2', made=made)}"
        pictures = {LONGER_NAME: overview_figure(longer, LONGER)}
        write_page(directory, LONGER_NAME, text, pictures, {LONGER_NAME: longer})
    return path


def opening(table: pl.DataFrame) -> str:
    """The page but for its origin: what came out, a table and a picture of it, and then scenario by scenario."""
    return markdown(f"{HERE}/results.md.j2", title=TITLE, name=NAME, **_shared(table, OURS))


def longer_steps(table: pl.DataFrame) -> str:
    """The page on the server that steps further, but for its origin."""
    own = table.filter(policy=LONGER).drop_nulls("late_accuracy_same").to_dicts()
    beside = {row["scenario"]: [_beside(row, name) for name in MARGINS] for row in own}
    shared = _shared(table, LONGER) | {"same_server": beside, "measured": MEASURED}
    return markdown(f"{HERE}/longer.md.j2", title=LONGER_TITLE, name=LONGER_NAME, **shared)


def _shared(table: pl.DataFrame, policy: str) -> dict[str, Any]:
    return {
        "summary": summary(table, policy),
        "overview": overview_table(table, policy),
        "scenarios": by_scenario(table),
        "missing": [name for name in SCENARIOS if name not in table["scenario"]],
        "worst": WORST,
    }


def summary(table: pl.DataFrame, policy: str = OURS) -> str:
    """What `balanced_joint` with a server that makes more of it reaches and what it spends, in sentences."""
    own, everyone = (table.filter(policy=name) for name in (policy, REFERENCE))
    both = own.join(everyone.select("scenario", everyone="energy_over_budget"), on="scenario")
    alike = all(same_server(table, policy))  # like for like first, where it was played
    return markdown(
        f"{HERE}/summary.md.j2",
        gaps=100 * both["late_accuracy_gap"].to_numpy(),
        same=100 * both["late_accuracy_same"].to_numpy() if alike else None,
        times=(both["everyone"] / both["energy_over_budget"]).drop_nulls().to_numpy(),
        over=both["devices_over_budget"].to_numpy(),
        worst=both["worst_device"].to_numpy(),
        margins={name: (round(100 * margin), len(held(table, policy, name)[0])) for name, margin in MARGINS.items()},
        measured=MEASURED,
    ).rstrip()


def overview_table(table: pl.DataFrame, policy: str = OURS) -> str:
    """A row for each scenario: both accuracies, what is lost, and the energy of both."""
    rows = [
        (scenario, [_accuracy(everyone), _accuracy(own), *(_lost(own, name) for name in MARGINS), _part(own, everyone),
                    NONE if own["worst_device"] is None else f"{own['worst_device']:.2f}"])
        for scenario, everyone, own in pairs(table, policy)
    ]  # fmt: skip
    margins = {name: f"{100 * margin:.0f}" for name, margin in MARGINS.items()}
    return markdown(f"{HERE}/overview.md.j2", overview=rows, worst=WORST, margins=margins)


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


def _accuracy(row: Row) -> str:
    return NONE if row["late_accuracy"] is None else f"{100 * row['late_accuracy']:.1f}"


def _lost(row: Row, name: str) -> str:
    """Points, bold where the test shows that they are within the margin; below 0 something is gained."""
    if row[f"{name}_gap"] is None:
        return NONE
    text = f"{0.0 - 100 * row[f'{name}_gap']:.1f}".replace("-", MINUS)
    return f"**{text}**" if row[f"{name}_holds"] else text


def _part(own: Row, everyone: Row) -> str:
    """The energy of training everyone over that of ours, as in 1/1000."""
    spent, most = own["energy_over_budget"], everyone["energy_over_budget"]
    return f"1/{most / spent:.0f}" if spent and most else NONE


def _beside(row: Row, name: str) -> str:
    """A gap in points to everyone with the same server, with its 95 % interval."""
    mean, low, high = (row[f"{name}_same{end}"] for end in ("", "_low", "_high"))
    return _points(mean) + ("" if low is None else f" [{_points(low)}, {_points(high)}]")


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", MINUS)


def _percent(row: Row, name: str) -> str:
    if row[name] is None:
        return NONE
    half = _half(row, name)
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
