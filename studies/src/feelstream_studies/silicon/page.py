"""What the report and docs/silicon.md say: the savings under every law, what is left of them, and which order flips."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.studies.claims import Finding
from feelstream.studies.pages import Page, Section, markdown, origin, render, write_page
from feelstream.studies.results import Results
from feelstream_studies.silicon.configurations import BUDGETS, CUBIC, LAWS, REFERENCE, SCENARIOS, TRAINED_UNDER
from feelstream_studies.silicon.figure import figure_of
from feelstream_studies.silicon.findings import per_run, rankings, savings

TITLE = "Energy savings on real cores"
Rows = list[tuple[str, list[str]]]  # policy → a cell for each law


def page(results: Results) -> Page:
    tables = {at: dict(rows) for at, rows in _tables(savings(per_run(results))).items()}
    html = render("feelstream_studies.silicon/section.html", tables=tables, laws=LAWS)
    return Page(title=TITLE, comparison=False, sections=[Section("savings", "Savings", html)], docs=write_docs)


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write silicon.md, silicon.csv and figures/silicon.png."""
    runs = per_run(results)
    table = savings(runs)
    text = markdown(
        "feelstream_studies.silicon/page.md.j2",
        title=TITLE,
        laws=LAWS,
        summary={scenario: _summary(table, scenario) for scenario in SCENARIOS},
        tables=_tables(table),
        rankings={scenario: rankings(runs, scenario, BUDGETS[0], LAWS) for scenario in SCENARIOS},
        trained_under=TRAINED_UNDER,
        accuracies={scenario: _accuracies(table, scenario) for scenario in SCENARIOS},
        made=origin(results),
    )
    numbers = table.with_columns(pl.selectors.float().round_sig_figs(4))
    return write_page(directory, "silicon", text, {"silicon": figure_of(table)}, {"silicon": numbers})


def _summary(table: pl.DataFrame, scenario: str) -> dict[str, tuple[float, float, float]]:
    """Of the paper's policy and the joint one: the saving under the cubic law, and its range on real cores."""
    some = table.filter(scenario=scenario, budget=BUDGETS[0])
    found: dict[str, Any] = {}
    for policy in ("lyapunov", "lyapunov_joint"):
        own = some.filter(policy=policy)
        others = 100 * own.filter(pl.col("law") != CUBIC)["saving"]
        found[policy] = (100 * own.filter(law=CUBIC)["saving"].item(), others.min(), others.max())
    return found


def _tables(table: pl.DataFrame) -> dict[tuple[str, str], Rows]:
    """By scenario and budget: policies by their saving under the cubic law, with the saving and what is left of it."""
    found: dict[tuple[str, str], Rows] = {}
    for scenario in SCENARIOS:
        for budget in BUDGETS:
            some = table.filter(pl.col("policy") != REFERENCE, scenario=scenario, budget=budget)
            names = some.filter(law=CUBIC).sort("saving", descending=True, nulls_last=True)["policy"]
            known = {(row["policy"], row["law"]): row for row in some.rows(named=True)}
            found[scenario, budget] = [(name, [_saving(known.get((name, law)), law) for law in LAWS]) for name in names]
    return found


def _saving(row: dict[str, float] | None, law: str) -> str:
    if row is None or row["saving"] is None:
        return "trains nobody"
    half = "" if row["low"] is None else f" ± {50 * (row['high'] - row['low']):.1f}"
    left = "" if law == CUBIC or row["left"] is None else f", {100 * row['left']:.0f} % left"
    return f"{100 * row['saving']:.1f}{half} %{left}".replace("-", "−")


def _accuracies(table: pl.DataFrame, scenario: str) -> Rows:
    """Of those that were trained: accuracy in the last fifth of the rounds."""
    some = table.filter(scenario=scenario, budget=BUDGETS[0]).drop_nulls("accuracy")
    known = {(row["policy"], row["law"]): row for row in some.rows(named=True)}
    names = some["policy"].unique(maintain_order=True)
    return [(name, [_accuracy(known.get((name, law))) for law in TRAINED_UNDER]) for name in names]


def _accuracy(row: dict[str, float] | None) -> str:
    if row is None:
        return "not trained"
    low, high = row["accuracy_low"], row["accuracy_high"]
    return f"{100 * row['accuracy']:.1f}{'' if low is None else f' ± {50 * (high - low):.1f}'} %"
