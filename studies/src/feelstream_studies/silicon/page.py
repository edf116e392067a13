"""What the report and docs/silicon.md say: the savings under every law, what is left of them, and which order flips."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import polars as pl

from feelstream.studies.claims import Finding
from feelstream.studies.pages import Page, Section, origin_parts, write_page
from feelstream.studies.results import Results
from feelstream_studies.silicon.configurations import BUDGETS, CUBIC, LAWS, REFERENCE, SCENARIOS
from feelstream_studies.silicon.figure import figure_of
from feelstream_studies.silicon.findings import Ranking, per_run, rankings, savings
from feelstream_studies.silicon.words import HOW, OPENING, SETTING

TITLE = "Energy savings on real cores"


def page(results: Results) -> Page:
    table = savings(per_run(results))
    html = "".join(
        f"<h3>{escape(scenario)}, budget: {budget}</h3><pre>{escape(_table(table, scenario, budget))}</pre>"
        for scenario in SCENARIOS
        for budget in BUDGETS
    )
    return Page(title=TITLE, comparison=False, sections=[Section("savings", "Savings", html)], docs=write_docs)


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write silicon.md, silicon.csv and figures/silicon.png."""
    runs = per_run(results)
    table = savings(runs)
    text, numbers = _text(results, runs, table), table.with_columns(pl.selectors.float().round_sig_figs(4))
    return write_page(directory, "silicon", text, "silicon", numbers, figure_of(table))


def _text(results: Results, runs: pl.DataFrame, table: pl.DataFrame) -> str:
    parts = [
        f"# {TITLE}\n",
        _summary(table) + "\n",
        OPENING,
        "![Energy saved against random scheduling by energy law](figures/silicon.png)\n",
        SETTING,
    ]
    for scenario in SCENARIOS:
        parts += [f"## {scenario}\n", "Energy saved per update against `random`, and what is left of it:\n"]
        parts += [_table(table, scenario, "scenario"), _flipped(rankings(runs, scenario, "scenario", LAWS))]
        parts += [_accuracies(table, scenario)]
        parts += ["With a budget of half of what `random` spends:\n", _table(table, scenario, "half")]
    parts += [
        HOW,
        *origin_parts(results),
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _table(table: pl.DataFrame, scenario: str, budget: str) -> str:
    """Policies by their saving under the cubic law, laws in columns: saving in %, and the part that is left."""
    some = table.filter(scenario=scenario, budget=budget)
    known = {(row["policy"], row["law"]): row for row in some.rows(named=True)}
    names = some.filter(law=CUBIC).sort("saving", descending=True, nulls_last=True)["policy"]
    rows = [f"| policy | {' | '.join(LAWS)} |", f"|---|{'---|' * len(LAWS)}"]
    for name in names:
        if name != REFERENCE:
            rows.append(f"| `{name}` | {' | '.join(_cell(known.get((name, law)), law) for law in LAWS)} |")
    return "\n".join(rows) + "\n"


def _cell(row: dict[str, float] | None, law: str) -> str:
    if row is None or row["saving"] is None:
        return "trains nobody"
    half = "" if row["low"] is None else f" ± {50 * (row['high'] - row['low']):.1f}"
    left = "" if law == CUBIC or row["left"] is None else f", {100 * row['left']:.0f} % left"
    return f"{100 * row['saving']:.1f}{half} %{left}".replace("-", "−")


def _accuracies(table: pl.DataFrame, scenario: str) -> str:
    """Of those that were trained: accuracy in the last fifth of the rounds, laws in columns; "" where none was."""
    some = table.filter(scenario=scenario, budget=BUDGETS[0]).drop_nulls("accuracy")
    if some.is_empty():
        return ""
    laws = some["law"].unique(maintain_order=True).to_list()
    rows = [
        "Accuracy of the trained model, mean of the last fifth of the rounds:\n",
        f"| policy | {' | '.join(laws)} |",
        f"|---|{'---|' * len(laws)}",
    ]
    for name in some["policy"].unique(maintain_order=True):
        own = {row["law"]: row for row in some.filter(policy=name).rows(named=True)}
        rows.append(f"| `{name}` | {' | '.join(_accuracy(own.get(law)) for law in laws)} |")
    return "\n".join(rows) + "\n"


def _accuracy(row: dict[str, float] | None) -> str:
    if row is None:
        return "not trained"
    low, high = row["accuracy_low"], row["accuracy_high"]
    return f"{100 * row['accuracy']:.1f}{'' if low is None else f' ± {50 * (high - low):.1f}'} %"


def _flipped(found: Sequence[Ranking]) -> str:
    rows = [
        "| law | Kendall's τ of the order | differences lost, of all pairs | pairs that flip |",
        "|---|---|---|---|",
    ]
    for each in found:
        named = ", ".join(f"`{before}` → `{after}`" for before, after in each.flips[:6])
        more = f" and {len(each.flips) - 6} more" if len(each.flips) > 6 else ""
        flips = f"{len(each.flips)}: {named}{more}" if each.flips else "none"
        rows.append(f"| {each.law} | {each.agreement:.2f} | {each.lost} of {each.pairs} | {flips} |")
    return "\n".join(rows) + "\n"


def _summary(table: pl.DataFrame) -> str:
    """A sentence per scenario on what the policies of the paper and of this package keep of their savings."""
    said = []
    for scenario in SCENARIOS:
        some = table.filter(scenario=scenario, budget="scenario")
        parts = []
        for policy in ("lyapunov", "lyapunov_joint"):
            own = some.filter(policy=policy)
            cubic = own.filter(law=CUBIC)["saving"].item()
            others = own.filter(pl.col("law") != CUBIC)["saving"]
            low, high = 100 * others.min(), 100 * others.max()  # type: ignore[operator]
            parts.append(
                f"`{policy}` saves {100 * cubic:.0f} % under the cubic law and {low:.0f} to {high:.0f} % on real cores"
            )
        said.append(f"On `{scenario}`, {'; '.join(parts)}.")
    return " ".join(said)
