"""A comparison as tables for papers: one row per configuration, in a data frame, as CSV and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from feelstream.errors import RunError
from feelstream.experiment.measures import JUDGED, by_arm, cell, judgement, measured
from feelstream.experiment.statistics import LEAST_SEEDS, LEVEL, TEST
from feelstream.plugins import did_you_mean
from feelstream.quantities import MINUS, QUANTITIES, Quantity, counted, of_table

MARKS = {"better": "+", "worse": "-", "unclear": "", "": ""}
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def chosen(summary: pl.DataFrame, quantities: Sequence[str]) -> list[Quantity]:
    """The quantities of these names that any run has, in this order; RunError for a name that stands for none."""
    known = [quantity.name for quantity in of_table("runs", list(QUANTITIES))]
    for name in quantities:
        if name not in known:
            close = did_you_mean(name, known)
            raise RunError(f"there is no quantity '{name}'; {close}known: {', '.join(known)}")
    present = set(summary["quantity"])
    return [QUANTITIES[name] for name in quantities if name in present]


def wide(summary: pl.DataFrame, quantities: Sequence[str]) -> pl.DataFrame:
    """One row per configuration; of each quantity its mean, both ends of the 95 % interval, and the verdict."""
    rows = [
        {"arm": arm}
        | {
            f"{quantity.name}{ending}": own[quantity.name][column]
            for quantity in chosen(summary, quantities)
            for ending, column in (("", "mean"), ("_low", "low"), ("_high", "high"), ("_verdict", "verdict"))
        }
        for arm, own in by_arm(summary).items()
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def plain(summary: pl.DataFrame, quantities: Sequence[str], seeds: int) -> str:
    """One line per configuration: mean ± half of the 95 % interval, and what is better or worse than in the first."""
    shown, rows = chosen(summary, quantities), by_arm(summary)
    first = next(iter(rows))
    lines = [["policy", *(quantity.column_title for quantity in shown), f"against {first}" if len(rows) > 1 else ""]]
    for arm, own in rows.items():
        judged = [(own[name], judgement(own[name])) for name in JUDGED if name in own and arm != first]
        words = [f"{QUANTITIES[row['quantity']].heading.partition(',')[0]} {word}" for row, word in judged if word]
        why = "" if words or not judged or not shown else str(judged[0][0]["verdict"])
        lines.append([arm, *(cell(own[quantity.name], seeds) for quantity in shown), ", ".join(words) or why])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def latex(summary: pl.DataFrame, quantities: Sequence[str], seeds: int) -> str:
    """A `tabular` for booktabs: mean ± half of the interval, marked + or − where better or worse than the first."""
    shown, rows = chosen(summary, quantities) or measured(summary), by_arm(summary)
    first = next(iter(rows))
    lines = [
        f"% Mean, and half of the {LEVEL:.0%} t interval, over {counted(seeds, 'seed')}.",
        f"% + better, - worse than {first}: {TEST}, Holm's correction."
        if seeds >= LEAST_SEEDS
        else f"% Fewer than {LEAST_SEEDS} seeds: no verdict.",
        rf"\begin{{tabular}}{{l{'r' * len(shown)}}}",
        r"\toprule",
        " & ".join(["Policy", *(escaped(f"{q.heading[:1].upper()}{q.heading[1:]} {_unit(q)}".strip()) for q in shown)])
        + r" \\",
        r"\midrule",
    ]
    for arm, own in rows.items():
        lines.append(" & ".join([escaped(arm), *(_number(own[q.name], seeds) for q in shown)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def escaped(text: str) -> str:
    r"""Text that LaTeX sets as it is.

    >>> escaped("my_policy 50 %")
    'my\\_policy 50 \\%'
    """
    return "".join(SPECIAL.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)


def _unit(quantity: Quantity) -> str:
    return f"({quantity.unit})" if quantity.unit else ""


def _number(row: dict[str, object], seeds: int) -> str:
    """A cell as mathematics, with a mark where the verdict is for or against it."""
    text = cell(row, seeds).replace("±", r"\pm").replace(MINUS, "-").replace("–", r"\text{--}")
    mark = MARKS[judgement(row)]
    return f"${text}^{{{mark}}}$" if mark else f"${text}$"
