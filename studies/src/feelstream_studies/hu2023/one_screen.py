"""The paper on one screen: a line for each of its statements, by the text and with fitted settings, and a verdict.

A column of a line is a set of judged claims, the same ones in both columns. It is reproduced where all of them are;
against where none is and the estimates of some are beyond chance on the other side; undecided where all are; else in
part. The verdict of a line follows from its two columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from feelstream.studies.claims import Finding, Published, Verdict
from feelstream.studies.pages import markdown
from feelstream.studies.results import number
from feelstream_studies.hu2023 import paper
from feelstream_studies.hu2023.judgments import AGAINST, FITTED, TEXT, Specification

COLUMNS = (TEXT, FITTED)
WRONG = (str(Verdict.FAILED), AGAINST)
ALL, NONE, MIXED, OPEN = "reproduced", "against", "in part", "undecided"
VERDICTS = {(ALL, ALL): "**yes**", (NONE, NONE): "**no**", (OPEN, OPEN): "open"}
DEPENDS = "depends on settings"
Rows = list[dict[str, Any]]
TEMPLATE = "feelstream_studies.hu2023/one_screen.md.j2"


def lead(rows: Rows) -> str:
    """By how much, on the mean of the claims."""
    return f"{number(_mean(rows), 1, True)} pp"


def saving(rows: Rows) -> str:
    """The mean over both partitions, for two and for four devices a round."""
    return " and ".join(f"{number(_mean([row for row in rows if f'-n{n}-' in row['claim']]), 0)} %" for n in (2, 4))


def times(rows: Rows) -> str:
    means = [row["mean"] for row in rows]
    return f"{min(means):.0f} to {max(means):.0f} times"


def percent(rows: Rows) -> str:
    means = [row["mean"] for row in rows]
    return f"{number(min(means), 0)} to {number(max(means), 0)} %"


def nothing(rows: Rows) -> str:
    return ""


@dataclass(frozen=True)
class Line:
    """statement: with a link to the details. claims: a pattern of their keys. amount: what is told of their effects."""

    statement: str
    claims: str
    amount: Callable[[Rows], str] = nothing
    eligible: str = "any"


LINES = (
    Line("“16% and 35% of reduction in power consumption” against random (1c, 1d) †", r"1[cd]-n\d-saving", saving),
    Line("“better test accuracy” than random: over the run (1a, 1b)", r"1[ab]-n\d-mean", lead),
    Line("the same at the end (1a, 1b)", r"1[ab]-n\d-end", lead),
    Line("“especially when” arrivals show “strong temporal correlation”: the lead grows", r"1[ab]-widths"),
    Line("“because” it favours “fresher data”: it leads without [empty devices]({there}#why-it-leads), {empty} of "
         "random's slots",
         r"1[ab]-n\d-mean", lead, "with_data"),
    Line("“larger gap” early, “similar and even higher” late: dissimilarity against amount, i.i.d. (2a)",
         r"2a-(early|late)"),
    Line("the same with 2 digits per device (2b)", r"2b-(early|late)"),
    Line("“combining the benefits of both metrics”: as good as each part (2a to 3b)", r"\d[ab]-combined"),
    Line("uniform arrivals: gap “smaller”, late gain “more clear” (3a, 3b)", r"3b-(gap|clearer)"),
    Line("“long-term energy constraints”: the [budget]({there}#the-budget) is kept", r"1[cd]-n\d-budget", times),
    Line("ours: the saving of 16 % remains [on real cores]({silicon})", r"cores-.*", percent),
)  # fmt: skip


def of(judged: pl.DataFrame, line: Line, specification: Specification) -> Rows:
    own = judged.filter(settings=specification.settings, fresh=specification.fresh, eligible=line.eligible)
    return [row for row in own.to_dicts() if re.fullmatch(line.claims, row["claim"])]


def status(rows: Rows) -> str:
    verdicts = [row["verdict"] for row in rows]
    if all(each == str(Verdict.REPRODUCED) for each in verdicts):
        return ALL
    if all(each == str(Verdict.OPEN) for each in verdicts):
        return OPEN
    wrong = any(each in WRONG for each in verdicts)
    return NONE if wrong and str(Verdict.REPRODUCED) not in verdicts else MIXED


def cell(line: Line, rows: Rows) -> str:
    """How many claims are reproduced, how many are against, and what the effect is."""
    kept, wrong = counts(rows)
    amount = line.amount(rows)
    return f"{kept} of {len(rows)}{f', {wrong} against' if wrong else ''}{f' ({amount})' if amount else ''}"


def counts(rows: Rows) -> tuple[int, int]:
    """Reproduced, and not reproduced or with points against."""
    kept = sum(row["verdict"] == str(Verdict.REPRODUCED) for row in rows)
    return kept, sum(row["verdict"] in WRONG for row in rows)


def one_screen(judged: pl.DataFrame, docs: str = "") -> str:
    """The table in Markdown. docs: where the pages are, as seen from the one that shows it, with a slash."""
    empty = [number(judged.filter(settings=each.settings, fresh=each.fresh, claim="empty-random")["mean"].item(), 0)
             for each in COLUMNS]  # fmt: skip
    links = {"there": f"{docs}reproduction.md", "silicon": f"{docs}silicon.md", "empty": f"{' and '.join(empty)} %"}
    lines = []
    for line in LINES:
        columns = [of(judged, line, specification) for specification in COLUMNS]
        if len({len(rows) for rows in columns}) > 1 or not columns[0]:
            raise ValueError(f"not the same claims in both columns: {line.statement}")
        found = VERDICTS.get((status(columns[0]), status(columns[1])), DEPENDS)
        cells = [cell(line, rows) for rows in columns]
        lines.append((line.statement.format(**links), cells, found))
    return markdown(TEMPLATE, lines=lines, docs=docs, seeds=_seeds(judged))


def _seeds(judged: pl.DataFrame) -> int:
    return int(judged["seeds"].max())  # type: ignore[arg-type]


def _mean(rows: Rows) -> float:
    return sum(row["mean"] for row in rows) / len(rows)


def told(findings: Sequence[Finding], empty: float | None = None) -> str:
    """What a terminal shows at the end: a line for each panel, within 80 columns, and what they mean in a sentence.

    empty: the share of random's slots that went to devices without data, where it is known.
    """
    panels = {panel: [each for each in findings if each.claim.panel == panel] for panel in _panels(findings)}
    lines = [f"{panel:8} {_effect(own):41}  {_counted(own)}" for panel, own in panels.items()]
    return "\n".join([*lines, "", meaning(findings, empty)])


def meaning(findings: Sequence[Finding], empty: float | None = None) -> str:
    ahead = [each.ours.mean for each in findings if re.fullmatch(r"1[ab]-n\d-mean", each.claim.key)]
    saved = _saved([each for each in findings if isinstance(each.claim.test, Published)])
    mean = sum(ahead) / len(ahead) if ahead else 0.0
    gap = f"{number(abs(mean), 1)} points {'ahead of' if mean > 0 else 'behind'} random"
    said = [f"on average, the proposed policy is {gap} over the run"] * bool(ahead)
    said += [f"it saves {saved} of its energy, which T was chosen for"] * bool(saved)
    if empty is not None:
        said.append(f"{number(100 * empty, 0)} % of random's slots go to devices without data")
    sentence = "; ".join(said) or f"of {len(findings)} claims, {_counted(findings)}"
    return f"{sentence[0].upper()}{sentence[1:]}."


def _panels(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.claim.panel for finding in findings))


def _counted(own: Sequence[Finding]) -> str:
    counted = {verdict: sum(each.verdict is verdict for each in own) for verdict in Verdict}
    return ", ".join(f"{count} {verdict}" for verdict, count in counted.items() if count)


def _effect(own: Sequence[Finding]) -> str:
    """Of the leads over random and the savings, the means over claims; of the rest, what they are about."""
    if all(isinstance(each.claim.test, Published) for each in own):
        return f"saves {_saved(own)}"
    spans = {"over the run": "-mean", "at the end": "-end"}
    means = {words: [each.ours.mean for each in own if each.claim.key.endswith(end)] for words, end in spans.items()}
    leads = [f"{number(sum(found) / len(found), 1, True)} {words}" for words, found in means.items() if found]
    return ", ".join(leads) or "importance metrics"


def _saved(own: Sequence[Finding]) -> str:
    """Means over the partitions, %, by devices a round."""
    by_n = {n: [each.ours.mean for each in own if f"-n{n}-" in each.claim.key] for n in paper.SIZES}
    return ", ".join(f"{number(sum(found) / len(found), 0)} % with {n} devices" for n, found in by_n.items() if found)
