"""The sentences of an explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from feelstream.policies import POLICIES
from feelstream.policies.ranking import Ranking
from feelstream.run.explaining.contests import Contest
from feelstream.run.explaining.thresholds import Threshold
from feelstream.run.explaining.wording import listed, number, shown_as


def of_device(
    policy: str,
    size: int | None,
    figures: Mapping[str, Any],
    round: int,
    device: int,
    scheduled: bool,
    ranking: Ranking | None,
    placed: tuple[int, int] | None,
    against: Contest | None,
    refusal: str | None,
    found: Sequence[Threshold],
    needed_hz: float | None,
) -> str:
    """Whether, against whom and by how much, what decided, what would change it."""
    fate = "scheduled" if scheduled else "not scheduled"
    if placed is not None:
        fate += f", rank {placed[0]} of {placed[1]}"
    texts = [f"Round {round}, device {device}: {fate}."]
    if not scheduled and (out := _ruled_out(figures, placed is not None, refusal, needed_hz)):
        texts.append(out)
    elif against is not None:
        texts += [_margin(against, scheduled), _terms(against, scheduled)]
    elif ranking is not None:
        texts.append("Every candidate was scheduled, so it competed with nobody.")
    else:
        says = rule(POLICIES.ours.get(policy), size) or "that of the policy's own code"
        texts.append(f"{policy} does not rank devices by a score. Its rule: {says}.")
    if scheduled and not figures["transmitted"]:
        texts.append("It was then dropped: with this round's channel its update would have been too late.")
    if found:
        texts.append(_change(found, scheduled))
    return " ".join(text for text in texts if text)


def rule(policy: type | None, size: int | None) -> str:
    """What a policy's own description says, without the full stop and with its size as a number."""
    said = (policy.__doc__ or "" if policy else "").strip().partition("\n")[0].rstrip(".")
    said = said.replace("`size`", "size" if size is None else str(size)).replace("`", "")
    begins_a_word = said[1:2] == " " or said[1:2].islower()
    return f"{said[:1].lower() if begins_a_word else said[:1]}{said[1:]}"


def _ruled_out(figures: Mapping[str, Any], ranked: bool, refusal: str | None, needed_hz: float | None) -> str | None:
    """Why it was no candidate at all; None if it was."""
    if not figures["available"]:
        return "It was not available: out of reach, or without the data or the charge that the scenario requires."
    if not figures["feasible"]:
        needs = f"; it would need {shown_as('f_hz', needed_hz)}" if needed_hz else ""
        return f"Its CPU at {shown_as('f_hz', figures['f_hz'])} is too slow for the deadline{needs}."
    if refusal and not ranked:
        return f"It was not a candidate: {refusal}."
    return None


def _margin(against: Contest, scheduled: bool) -> str:
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


def _terms(against: Contest, scheduled: bool) -> str:
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


def _change(found: Sequence[Threshold], scheduled: bool) -> str:
    ways = [_way(threshold) for threshold in found]
    return f"It would {'drop out' if scheduled else 'be scheduled'} {listed(ways, last='or')}."


def _way(threshold: Threshold) -> str:
    side = "above" if threshold.above else "below"
    if threshold.setting == "f_hz":
        late = " (too slow for the deadline)" if threshold.too_slow else ""
        return f"if its CPU ran {side} {shown_as('f_hz', threshold.value)}{late}"
    return f"if {threshold.setting} were {side} {number(threshold.value)}"
