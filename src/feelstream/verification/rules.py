"""What a rule is: something that holds of all rounds of a run that has certain traits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from feelstream.verification.findings import RELATIVE, Array, Findings, Stage, close

Of = Callable[[Any], Any]  # of the Rounds or the Totals that a rule looks at


class Judged(NamedTuple):
    """Where it does not hold [R] or [R, K], what should be there, and what is (by default the rule's column)."""

    bad: Array
    expected: Any
    stored: Array | None = None


@dataclass(frozen=True)
class Rule:
    """A rule about a column (or what follows from some), and when it applies: see `Table.has`."""

    stage: Stage
    name: str
    says: str
    judge: Callable[[Any], Judged]
    when: str = ""


def same(
    stage: Stage, name: str, says: str, formula: Of, when: str = "", *,
    scale: Of | float = 0.0, where: Of | None = None, by: Of | float = RELATIVE, stored: Of | None = None,
) -> Rule:  # fmt: skip
    """A column is what a formula gives, but for rounding; `scale` is the size of terms that may cancel.

    The formula is of those for whom the column is filled, all others have 0; what was measured is left out.
    """

    def judge(r: Any) -> Judged:
        value, applies = formula(r), True
        if stored is None:
            value, applies = r.filled(name, value)
        there = getattr(r, name) if stored is None else stored(r)
        bad = ~close(there, value, _of(scale, r), _of(by, r)) & applies
        return Judged(bad if where is None else bad & where(r), value, there if stored else None)

    return Rule(stage, name, says, judge, when)


def holds(
    stage: Stage, name: str, says: str, true: Of, expected: Any = None, when: str = "", stored: Of | None = None
) -> Rule:
    """Something is true of every device, or of every round; expected: what should stand there, or its formula."""

    def judge(r: Any) -> Judged:
        return Judged(~np.asarray(true(r)), _of(expected, r), stored and stored(r))

    return Rule(stage, name, says, judge, when)


def exact(
    stage: Stage, name: str, says: str, formula: Of, when: str = "", *,
    but: Of | None = None, stored: Of | None = None,
) -> Rule:  # fmt: skip
    """Counts, truths, or lists of counts are what a formula gives, everywhere but where something else is true."""

    def judge(r: Any) -> Judged:
        value, there = formula(r), getattr(r, name) if stored is None else stored(r)
        bad = np.asarray(there != value)
        bad = np.asarray(bad.any(axis=-1)) if bad.ndim == 3 else bad
        return Judged(bad if but is None else bad & ~but(r), value, stored and there)

    return Rule(stage, name, says, judge, when)


def only(stage: Stage, name: str, says: str, who: Of, when: str = "") -> Rule:
    """Something is true of nobody else."""

    return exact(stage, name, says, lambda r: getattr(r, name) & who(r), when)


def within(stage: Stage, name: str, says: str, low: Any, high: Any, when: str = "", stored: Of | None = None) -> Rule:
    """A number is between two, but for rounding."""

    def judge(r: Any) -> Judged:
        value, least, most = getattr(r, name) if stored is None else stored(r), _of(low, r), _of(high, r)
        inside = (value >= least - RELATIVE * np.abs(least)) & (value <= most + RELATIVE * np.abs(most))
        return Judged(~inside, np.clip(value, least, most), stored and value)

    return Rule(stage, name, says, judge, when)


def _of(value: Any, r: Any) -> Any:
    return value(r) if callable(value) else value


def apply(rules: Iterable[Rule], found: Findings, r: Any) -> None:
    """All that apply to a run with these traits."""
    for rule in rules:
        if r.has(rule.when):
            bad, expected, stored = rule.judge(r)
            null = None
            if stored is None:
                stored, null = getattr(r, rule.name), r.nulls.get(rule.name)
            found.flag(rule.stage, rule.name, r.rounds, bad, stored, np.asarray(expected), rule.says, null)
