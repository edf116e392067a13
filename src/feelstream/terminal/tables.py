"""A comparison as a table, one row per configuration: a data frame, plain text and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from textwrap import fill, wrap
from typing import Any

import polars as pl

from feelstream.display.quantities import MINUS, QUANTITIES, Quantity, counted, meanings, of_table
from feelstream.errors import RunError
from feelstream.experiment import Plan, Results
from feelstream.experiment.measures import (
    JUDGED,
    Rows,
    by_arm,
    cell,
    differences,
    differing,
    judgement,
    measured,
    tables,
)
from feelstream.experiment.statistics import FEW_SEEDS, LEAST_SEEDS, LEVEL, TEST, UNCLEAR, UNCLEAR_BY_HOLM
from feelstream.experiment.store import NOT_GIVEN, NOT_YET
from feelstream.plugins import near_or_all

MARKS = {"better": "+", "worse": "-", "unclear": "", "": ""}
WIDTH = 80  # columns of a terminal, and about those of a page
TITLE_WIDTH = 13  # "last fifth, %"
VERDICT_WIDTH = 17  # "accuracy unclear,"
LABEL_WIDTH = 24  # to which names that are longer are folded
LEAST_WIDTH = 12  # to which they are folded where that keeps a table in one piece
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def chosen(summary: pl.DataFrame, quantities: str | Sequence[str]) -> list[Quantity]:
    """The quantities of these names that any run has, in this order; RunError for a name that stands for none."""
    given: Any = quantities
    quantities = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    known = [quantity.name for quantity in of_table("runs", list(QUANTITIES))]
    for name in quantities:
        if name not in known:
            raise RunError(f"there is no quantity '{name}'; {near_or_all(str(name), known)}")
    present = set(summary["quantity"])
    return [QUANTITIES[name] for name in quantities if name in present]


def wide(summary: pl.DataFrame, quantities: str | Sequence[str]) -> pl.DataFrame:
    """One row per configuration; of each quantity its mean, both ends of the 95 % interval, and the verdict."""
    ends: dict[str, tuple[str, Any]] = {"": ("mean", pl.Float64), "_low": ("low", pl.Float64)}
    ends |= {"_high": ("high", pl.Float64), "_verdict": ("verdict", pl.String)}
    shown = [(quantity.name, end, *what) for quantity in chosen(summary, quantities) for end, what in ends.items()]
    rows = [
        {"arm": arm} | {f"{name}{end}": own[name][column] for name, end, column, _ in shown}
        for arm, own in by_arm(summary).items()
    ]
    return pl.DataFrame(rows, schema={"arm": pl.String} | {f"{name}{end}": kind for name, end, _, kind in shown})


def plain(summary: pl.DataFrame, quantities: str | Sequence[str], seeds: int, width: int = WIDTH) -> str:
    """`cells_of` as text."""
    titles, lines, notes = cells_of(summary, quantities, seeds)
    return f"{text_table(titles, lines, width, in_words=True)}\n\n{fill('; '.join(notes), width)}"


def cells_of(
    summary: pl.DataFrame, quantities: str | Sequence[str], seeds: int
) -> tuple[list[str], list[list[str]], list[str]]:
    """Titles; of each configuration its name, means ± half of the 95 % interval, and what is better or worse than in
    the first; and notes on what these mean.
    """
    shown, rows = chosen(summary, quantities), by_arm(summary)
    first = next(iter(rows))
    judged_at_all = len(rows) > 1 and seeds >= LEAST_SEEDS
    titles = [
        "policy",
        *(quantity.column_title for quantity in shown),
        f"against {differing([*rows])[first]}" if judged_at_all else "",
    ]
    lines, said, names = [], set[str](), differing([*rows])
    for arm, own in rows.items():
        judged = [own[name] for name in JUDGED if name in own and arm != first and judged_at_all]
        words = [f"{QUANTITIES[row['quantity']].heading.partition(',')[0]} {w}" for row in judged if (w := word(row))]
        said |= {row["verdict"] for row in judged}
        why = str(judged[0]["verdict"]) if judged and shown and not words else ""
        lines.append([names[arm], *(cell(own[quantity.name], seeds) for quantity in shown), ", ".join(words) or why])
    notes = [
        f"mean ± half of the 95 % interval over {counted(seeds, 'seed')}" if seeds > 1 else "one seed: no interval"
    ]
    if judged_at_all:
        notes.append(f"better, worse: {TEST}, seed by seed, with Holm's correction")
        notes += ["unclear: no difference shown"] * bool(said & {UNCLEAR, UNCLEAR_BY_HOLM})
        notes += ["unclear (Holm): shown by itself, not among so many comparisons"] * (UNCLEAR_BY_HOLM in said)
    elif len(rows) > 1:
        notes.append(FEW_SEEDS)
    notes += ["energy per device and round"] * any(quantity.name == "energy_j" for quantity in shown)
    fewer = {arm: n for arm, own in rows.items() if (n := max(row["n"] for row in own.values())) < seeds}
    notes += [f"{arm}: {n} of the {seeds} seeds" for arm, n in fewer.items()]
    return titles, lines, [*notes, *_alike(rows)]


def _alike(rows: Rows) -> list[str]:
    """A note on configurations that came to the same in every quantity, to the last digit: their setting is idle."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for arm, own in rows.items():
        found.setdefault(tuple((name, row["n"], row["mean"]) for name, row in own.items() if row["n"]), []).append(arm)
    alike = [arms for numbers, arms in found.items() if numbers and len(arms) > 1]
    return [f"{', '.join(arms)} came to exactly the same: what they differ in had no effect here" for arms in alike]


def failed(results: Results, played: bool = True) -> list[str]:
    """A line for each reason why runs failed, with the first of these runs; without `played`, what is not finished, or
    was not given, has not failed.
    """
    reasons: dict[str, list[str]] = {}
    for failure in (each for each in results.failures if played or each.reason not in (NOT_YET, NOT_GIVEN)):
        reasons.setdefault(failure.reason, []).append(f"{failure.arm}, seed {failure.seed}")
    more = {reason: f" and {len(runs) - 3} more" if len(runs) > 3 else "" for reason, runs in reasons.items()}
    return [f"failed: {'; '.join(runs[:3])}{more[reason]}: {reason}" for reason, runs in reasons.items()]


def word(row: dict[str, Any]) -> str:
    """The verdict of a row in a word or two; empty where nothing is said."""
    return "unclear (Holm)" if row["verdict"] == UNCLEAR_BY_HOLM else judgement(row)


def everything(summary: pl.DataFrame, plan: Plan, width: int = WIDTH) -> str:
    """Every quantity: learning, resources, the differences against the first configuration, and what each means."""
    found = [("policy", titles, rows) for titles, rows in tables(plan, summary)]
    titles, gaps = differences(plan, summary)
    judged = len(plan.seeds) >= LEAST_SEEDS  # otherwise what stands below the first table says it, once
    rows = {arm: ["\n".join(each if judged else each[:1]).replace(" [", "\n[") for each in cells]
            for arm, cells in gaps.items()}  # fmt: skip
    found += [(f"against {plan.arms[0].label}", titles, rows)] if gaps else []
    parts = [text_table([first, *titles], [[arm, *cells] for arm, cells in rows.items()], width)
             for first, titles, rows in found]  # fmt: skip
    meant = [fill(f"{headings}: {meaning}", width) for headings, meaning in meanings(measured(summary)).items()]
    return "\n\n".join([*parts, "\n".join(meant)])


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int, in_words: bool = False) -> str:
    """A line per row where that fits; otherwise titles are wrapped, names folded, and the rest goes to a table below.

    No number is ever cut or wrapped. in_words: the last column has words, which may be wrapped, not numbers.
    """
    if max(map(len, _aligned([titles, *rows]))) <= width:
        return "\n".join(_aligned([titles, *rows]))
    columns = [list(column) for column in zip(*rows, strict=True)]
    if in_words:
        columns[-1] = [_by_comma(text) for text in columns[-1]]
    widths = [max(len(line) for text in column for line in text.split("\n")) for column in columns]
    least = [TITLE_WIDTH] * (len(columns) - in_words) + [VERDICT_WIDTH] * in_words
    heads = [_wrapped(title, max(pair)) for title, *pair in zip(titles, widths, least, strict=True)]
    widths = [max(wide, *map(len, head.split("\n"))) for wide, head in zip(widths, heads, strict=True)]
    room = width - sum(wide + 2 for wide in widths[1:])  # for the names, with all columns in one table
    names = min(max(map(len, columns[0])), room if room >= LEAST_WIDTH else LABEL_WIDTH)
    columns[0] = ["\n".join(wrap(name, names, break_on_hyphens=False)) for name in columns[0]]
    pieces: list[list[int]] = []
    used = width
    for place, wide in enumerate(widths[1:], 1):
        if used + 2 + wide > width:
            pieces.append([0])
            used = max(names, *map(len, titles[0].split()))
        pieces[-1].append(place)
        used += 2 + wide
    tables = [_aligned([*zip(*([heads[at], *columns[at]] for at in piece), strict=True)]) for piece in pieces]
    return "\n\n".join("\n".join(lines) for lines in tables)


def _wrapped(text: str, width: int) -> str:
    """Text in lines that are no wider where words allow; a stroke or a unit stays with the word before it."""
    bound = re.sub(r" (?=/ |%$|mJ$)", "\0", text)
    lines = wrap(bound, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def _by_comma(verdicts: str) -> str:
    """A line for each verdict."""
    return "\n".join(_wrapped(each, VERDICT_WIDTH) for each in verdicts.replace(", ", ",\n").split("\n"))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose cells may have several."""
    cells = [[text.split("\n") for text in row] for row in rows]
    widths = [max(len(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]
    return [
        "  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
        for row in cells
        for line in zip_longest(*row, fillvalue="")
    ]


def latex(summary: pl.DataFrame, quantities: str | Sequence[str], seeds: int) -> str:
    """A `tabular` for booktabs: mean ± half of the interval, marked + or − where better or worse than the first."""
    shown, rows = chosen(summary, quantities) or measured(summary), by_arm(summary)
    first = next(iter(rows))
    lines = [
        f"% Mean, and half of the {100 * LEVEL:.0f} % t interval, over {counted(seeds, 'seed')}.",
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
    text = cell(row, seeds).replace("±", r"\pm").replace(MINUS, "-").replace("–", r"\mbox{--}")
    mark = MARKS[judgement(row)]
    return f"${text}^{{{mark}}}$" if mark else f"${text}$"
