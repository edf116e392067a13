"""What the report and docs/silicon.md say: the savings under every law, what is left of them, and which order flips."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies.claims import Finding
from feelstream.studies.pages import Page, Section, markdown, render, write_page
from feelstream.studies.results import Results
from feelstream_studies import tables
from feelstream_studies.silicon.configurations import (
    BUDGETS,
    BY_TEXT,
    CUBIC,
    LAWS,
    REFERENCE,
    SCENARIOS,
)
from feelstream_studies.silicon.figure import figure_of
from feelstream_studies.silicon.findings import Ranking, per_run, rankings, savings

TITLE = "Energy savings on real cores"
NAME, ORDERS = "silicon", "silicon-rankings"
SUMMARISED = ("lyapunov", "lyapunov_joint")
Rows = list[tuple[str, list[str]]]  # policy → a cell for each law


def page(results: Results) -> Page:
    shown = {at: dict(rows) for at, rows in _tables(savings(per_run(results))).items()}
    html = render("feelstream_studies.silicon/section.html", tables=shown, laws=LAWS)
    return Page(title=TITLE, comparison=False, sections=[Section("savings", "Savings", html)], docs=write_docs)


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write silicon.md, silicon.csv, silicon-rankings.csv and figures/silicon.png."""
    runs, about = per_run(results), tables.about(results)
    found = [each for scenario in SCENARIOS for each in rankings(runs, scenario, BUDGETS[0], LAWS)]
    orders = pl.DataFrame([vars(each) | {"flips": _flips(each)} for each in found], infer_schema_length=None)
    saved, ranked = (tables.Table(tables.rounded(rows), about) for rows in (savings(runs), orders))
    page = write_page(directory, NAME, text(saved, ranked), {NAME: figure_of(saved.rows)})
    tables.write(directory / f"{NAME}.csv", saved)
    tables.write(directory / f"{ORDERS}.csv", ranked)
    return page


def from_tables(docs: Path) -> str:
    """The page as the tables beside it say."""
    return text(*(tables.read(docs / f"{name}.csv") for name in (NAME, ORDERS)))


def pictures(docs: Path) -> dict[str, Figure]:
    return {NAME: figure_of(tables.read(docs / f"{NAME}.csv").rows)}


def text(saved: tables.Table, ranked: tables.Table) -> str:
    table = saved.rows
    return markdown(
        "feelstream_studies.silicon/page.md.j2",
        title=TITLE,
        about=saved.about,
        laws=LAWS,
        summary={each: {name: _range(table, each, name) for name in SUMMARISED} for each in SCENARIOS},
        text=_range(table, BY_TEXT, SUMMARISED[0]),
        half={each: found for each in SCENARIOS if (found := _range(table, each, "balanced_joint", "half"))},
        savings={each: _certain(table, each) for each in SCENARIOS},
        orders=_orders(ranked.rows),
    )


def _flips(each: Ranking) -> str:
    return ", ".join(f"`{before}` → `{after}`" for before, after in each.flips)


def _range(table: pl.DataFrame, scenario: str, policy: str, budget: str = BUDGETS[0]) -> dict[str, Any]:
    """The saving under the cubic law, and its range on real cores, %."""
    own = table.filter(scenario=scenario, budget=budget, policy=policy).drop_nulls("saving")
    others = 100 * own.filter(pl.col("law") != CUBIC)["saving"]
    whole = own.filter(law=CUBIC)["saving"]
    return {"cubic": 100 * whole.item(), "low": others.min(), "high": others.max()} if len(whole) * len(others) else {}


def _certain(table: pl.DataFrame, scenario: str) -> Rows:
    """The rows of policies that train under every law and save beyond doubt under the cubic one, in all scenarios."""
    at = table.filter(pl.col("scenario").is_in(SCENARIOS), budget=BUDGETS[0])
    saves = (pl.col("law") != CUBIC) | (pl.col("low") > 0)
    kept = at.group_by("policy").agg((pl.col("saving").is_not_null() & saves).all()).filter("saving")["policy"]
    return [(name, cells) for name, cells in _tables(table)[scenario, BUDGETS[0]] if name in kept]


def _orders(rows: pl.DataFrame) -> dict[str, Any]:
    if rows.is_empty():
        return {}
    each = [text.split(", ") for text in rows["flips"].drop_nulls()]
    return {
        "tau": (rows["agreement"].min(), rows["agreement"].max()),
        "pairs": rows["pairs"].max(),
        "lost": rows["lost"].max(),
        "most": max(map(len, each), default=0),
        "flips": list(dict.fromkeys(flip for flips in each for flip in flips)),
    }


def _tables(table: pl.DataFrame) -> dict[tuple[str, str], Rows]:
    """By scenario and budget: policies by their saving under the cubic law, %."""
    found: dict[tuple[str, str], Rows] = {}
    for scenario in SCENARIOS:
        for budget in BUDGETS:
            some = table.filter(pl.col("policy") != REFERENCE, scenario=scenario, budget=budget)
            names = some.filter(law=CUBIC).sort("saving", descending=True, nulls_last=True)["policy"]
            known = {(row["policy"], row["law"]): row for row in some.rows(named=True)}
            found[scenario, budget] = [(name, [_saving(known.get((name, law))) for law in LAWS]) for name in names]
    return found


def _saving(row: dict[str, float] | None) -> str:
    if row is None or row["saving"] is None:
        return "trains nobody"
    half = "" if row["low"] is None else f" ± {50 * (row['high'] - row['low']):.1f}"
    return f"{100 * row['saving']:.1f}{half}".replace("-", "−")
