"""The sentences of an explanation, and numbers, quantities and lists as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from feelstream.policies.base import Policy
from feelstream.quantities import MINUS, QUANTITIES, significant

if TYPE_CHECKING:
    from feelstream.run.explaining.explanation import Contest, Threshold


def number(value: float) -> str:
    """Three significant digits, without an exponent where none is needed.

    >>> number(0.0512), number(1234.5), number(-2)
    ('0.0512', '1230', '−2')
    """
    if value == 0 or not np.isfinite(value):
        return f"{abs(value) if value == 0 else value:g}"
    if 1e-4 <= abs(value) < 1e6:
        text = significant(value, 3)
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.2e}".replace("-", MINUS, int(value < 0))


def shown_as(name: str, value: float) -> str:
    """A value of a column of the trace in the unit that readers expect.

    >>> shown_as("queue_j", 0.0123), shown_as("score", 0.5), shown_as("gain", float("nan"))
    ('12.3 mJ', '0.5', '–')
    """
    if not np.isfinite(value):
        return "–"
    quantity = QUANTITIES.get(name)
    return number(value) if quantity is None else f"{number(value * quantity.scale)} {quantity.unit}".rstrip()


def listed(names: Sequence[object], most: int = 6, last: str = "and") -> str:
    """`1, 2 and 3`; of very many, the first few and how many more.

    >>> listed([3]), listed([3, 7, 9]), listed(range(9), 3), listed([1, 2], last="or")
    ('3', '3, 7 and 9', '0, 1, 2 and 6 more', '1 or 2')
    """
    texts = [str(name) for name in names]
    if len(texts) > most:
        texts = [*texts[:most], f"{len(names) - most} more"]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def rule(policy: Policy) -> str:
    """What a policy's own description says, without the full stop and with its size as a number."""
    said = (type(policy).__doc__ or "").strip().partition("\n")[0].rstrip(".")
    said = said.replace("`size`", str(policy.size)).replace("`", "")
    begins_a_word = said[1:2] == " " or said[1:2].islower()
    return f"{said[:1].lower() if begins_a_word else said[:1]}{said[1:]}"


def margin(against: Contest, scheduled: bool) -> str:
    if against.rival is None:
        verb = "lowers" if scheduled else "would raise"
        return f"A place may stay empty, and this device {verb} the minimised sum by {number(abs(against.own))}."
    other = "the best that was left out" if scheduled else "the last that was scheduled"
    if against.margin == 0:
        return f"It ties with device {against.rival}, {other}: random tie-breaking decided."
    if against.margin < 0:
        return (
            f"By its terms alone it would be on the other side of device {against.rival}, by "
            f"{number(-against.margin)}: the rule builds the set step by step and considers more than these terms."
        )
    where = "ahead of" if scheduled else "behind"
    return f"It is {number(against.margin)} {where} device {against.rival}, {other}."


def terms(against: Contest) -> str:
    """The decisive term first, then the others, of the device against the rival's."""

    def compared(name: str) -> str:
        own, its = against.terms[name]
        return f"{name} {number(own)}" if against.rival is None else f"{name} {number(own)} against {number(its)}"

    others = [compared(name) for name in against.terms if name != against.decisive]
    if against.decisive is None:
        return f"Its terms: {listed(others)}." if others else ""
    rest = f"; {listed(others)}" if others else ""
    decided = "What decided" if against.margin > 0 else "What speaks most for it"
    return f"{decided}: {compared(against.decisive)}{rest}."


def change(found: Sequence[Threshold], scheduled: bool) -> str:
    ways = [_way(threshold) for threshold in found]
    return f"It would {'drop out' if scheduled else 'be scheduled'} {listed(ways, last='or')}."


def _way(threshold: Threshold) -> str:
    side = "above" if threshold.above else "below"
    if threshold.setting == "f_hz":
        late = " (too slow for the deadline)" if threshold.too_slow else ""
        return f"if its CPU ran {side} {shown_as('f_hz', threshold.value)}{late}"
    return f"if {threshold.setting} were {side} {number(threshold.value)}"
