"""The explanation of one device in one round: against whom it competed, what decided, and what would change it.

What would change it is found by deciding again, with all else as it was in the round: outwards in equal ratios until
the device fares otherwise, then by bisection between the last two values. A window narrower than one ratio may be
passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feelstream.arrays import Flags, Ids, Reals
from feelstream.display.quantities import MINUS, QUANTITIES
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation, Policy
from feelstream.policies.ranking import Ranking, Term
from feelstream.run.scenes import Scene, Scenes

FAR = 1e6  # by which factor a setting is varied at most
UNKNOWN = "the round cannot be decided again from what the trace holds"
WEIGHTS = ("V", "price")  # settings of a policy that weigh its terms against each other


@dataclass(frozen=True)
class Contest:
    """A device against the nearest that fared otherwise: the first left out, or the last scheduled.

    rival is None where a place may stay empty and that is the alternative: all of its values are then 0.
    """

    own: float  # what it was ranked by
    rival: int | None
    margin: float  # by how much the decision was right; negative where the rule looks at more than these terms
    terms: dict[str, tuple[float, float]]  # of the device and of the rival, as shown
    ahead: dict[str, float]  # by how much each term speaks for the device; negative: against it
    decisive: str | None  # the term that speaks most for the decision; None where none does


@dataclass(frozen=True)
class Threshold:
    """Beyond `value` the device fares otherwise; at `same`, close by, it does not."""

    setting: str  # V, price or f_hz
    value: float
    same: float
    too_slow: bool = False  # beyond it the device misses the deadline

    @property
    def above(self) -> bool:
        return self.value > self.same


@dataclass(frozen=True)
class Explanation:
    """Why a device was scheduled in a round, or not. `str()` gives it in sentences.

    Attributes:
        round, device: Whose decision it explains.
        scheduled: Whether the device was scheduled.
        terms: What the device was ranked by, by name; empty without a score, and where it was no candidate.
        contest: The nearest device that fared otherwise, by how much, and the terms of both; None without a score, and
            where nobody competed.
        thresholds: What would have changed the decision, found by deciding again; empty where nothing was found, or
            where the round cannot be decided again from the trace.
        text: All of it in sentences.
    """

    round: int
    device: int
    scheduled: bool
    terms: dict[str, float]
    contest: Contest | None
    thresholds: tuple[Threshold, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def explain(scenes: Scenes, round: int, device: int) -> Explanation:
    """Of a run's trace; by the stored scores where the round cannot be decided again."""
    rows = scenes.rows(round)
    figures = {name: rows[name][device] for name in rows.columns if "labels" not in name}
    if scene := scenes.scene(round):
        return explain_scene(scene, figures, device)
    policy, score = scenes.scenario_in(round).policy, rows["score"].cast(float).fill_null(np.nan).to_numpy()
    ranking = _by_score(policy, rows["feasible"].to_numpy(), score)
    said = _explained(policy, ranking, np.flatnonzero(rows["scheduled"].to_numpy()), figures, round, device)
    return replace(said, text=f"{said.text} What would change it is not known: {UNKNOWN}.")


def explain_scene(
    scene: Scene, figures: Mapping[str, Any], device: int, *, with_thresholds: bool = True
) -> Explanation:
    """Of a round that can be decided again; figures: what the trace says of the device, by column."""
    schedule, round = scene.decision.schedule, scene.observation.round
    said = _explained(scene.policy, ranked(scene, device), schedule, figures, round, device, scene)
    if not (with_thresholds and figures["available"] and scene.ranking(device)):
        return said
    found = thresholds(scene, device)
    return replace(said, thresholds=found, text=f"{said.text} {_changes(found, scene.policy, said.scheduled)}")


def ranked(scene: Scene, device: int) -> Ranking | None:
    """What the candidates were ranked by; where the rule judges sets, for the place of this device."""
    decision = scene.decision
    return scene.ranking(device) or _by_score(scene.policy, decision.plan.feasible, decision.score)


def _by_score(policy: Policy, feasible: Flags, score: Reals | None) -> Ranking | None:
    """(K,) each. None where no device has a score."""
    values = np.where(feasible, np.nan if score is None else score, np.nan)
    term = Term(policy.prefers or "score", values, subtracted=policy.prefers is not None)
    return Ranking((term,)) if np.isfinite(values).any() else None


def _explained(
    policy: Policy,
    ranking: Ranking | None,
    schedule: Ids,
    figures: Mapping[str, Any],
    round: int,
    device: int,
    scene: Scene | None = None,
) -> Explanation:
    """All but the thresholds; scene: the round, where it can be decided again."""
    scheduled, terms, against, place = bool(np.isin(device, schedule)), {}, None, ""
    if ranking is not None and np.isfinite(ranking.total[device]):
        terms = {term.name: float((-1 if term.subtracted else 1) * term.values[device]) for term in ranking.terms}
        place = f", rank {1 + (ranking.total < ranking.total[device]).sum()} of {np.isfinite(ranking.total).sum()}"
        against = contest(ranking, schedule, device)
    texts = [f"Round {round}, device {device}: {'scheduled' if scheduled else 'not scheduled'}{place}."]
    if not scheduled and (out := _ruled_out(scene, figures, device, None if place else ranking)):
        texts.append(out)
    elif against is not None:
        texts.append(reason(against, scheduled))
    elif ranking is not None:
        texts.append("Every candidate was scheduled, so it competed with nobody.")
    else:
        name = policy.plugin_name()
        says = rule(policy) if name in POLICIES.ours else ""
        texts.append(f"{name} does not rank devices by a score. Its rule: {says or 'that of its own code'}.")
    if scheduled and not figures["transmitted"]:
        texts.append("It was then dropped: with this round's channel its update would have been too late.")
    return Explanation(round, device, scheduled, terms, against, (), " ".join(texts))


def _ruled_out(scene: Scene | None, figures: Mapping[str, Any], device: int, without_it: Ranking | None) -> str | None:
    """Why it was no candidate at all; None if it was. without_it: of the candidates, where it is not among them."""
    if not figures["available"]:
        return "It was not available: out of reach, or without the data or the charge that the scenario requires."
    if not figures["feasible"]:
        hz = None if scene is None else _needed_hz(scene, device)
        needs = f"; it would need {shown_as('f_hz', hz)}" if hz else ""
        return f"Its CPU at {shown_as('f_hz', figures['f_hz'])} is too slow for the deadline{needs}."
    if scene and any(np.isnan(report[device]).all() for report in scene.observation.reports.values()):
        return "It did not report, being too slow for that, without data, or not asked."
    if without_it is None:
        return None
    refusal = without_it.refusal or ("it holds no data" if figures["stored"] == 0 else "")
    return f"It was not a candidate: {refusal}." if refusal else None


def _needed_hz(scene: Scene, device: int) -> float | None:
    """The frequency at which the device would meet the deadline at the planned size; None where none would do."""
    system = scene.observation.system
    time_s = float(system.time_s[device])
    left_s = time_s - float(np.broadcast_to(scene.decision.plan.transmit_time_s, system.devices)[device])
    return float(system.cycles[device] / left_s) if left_s > 0 else None


def contest(ranking: Ranking, schedule: Ids, device: int) -> Contest | None:
    """Of a candidate; None where nobody competed with it, since all candidates fared alike."""
    total = ranking.total
    member, own = np.isin(np.arange(len(total)), schedule), float(total[device])
    others = np.flatnonzero(np.isfinite(total) & (member != member[device]))
    nearest_one = np.argmin if member[device] else np.argmax
    rival = int(others[nearest_one(total[others])]) if len(others) else None
    nobody = own >= 0 if not member[device] else rival is None or total[rival] >= 0
    if ranking.optional and nobody:
        rival = None
    elif rival is None:
        return None
    level = 0.0 if rival is None else float(total[rival])
    sign = 1.0 if member[device] else -1.0
    terms, ahead = {}, {}
    for term in ranking.terms:
        mine, its = float(term.values[device]), 0.0 if rival is None else float(term.values[rival])
        shown = -1.0 if term.subtracted else 1.0
        terms[term.name], ahead[term.name] = (shown * mine, shown * its), its - mine
    decisive = max(ahead, key=lambda name: sign * ahead[name])
    return Contest(own, rival, sign * (level - own), terms, ahead, decisive if sign * ahead[decisive] > 0 else None)


def thresholds(scene: Scene, device: int) -> tuple[Threshold, ...]:
    """Those of V or price, and of the frequency within the scenario's range: below and above, where there are any."""
    policy, known, planned = scene.policy, scene.observation, scene.decision.plan.n
    now = bool(np.isin(device, scene.decision.schedule))
    # Solving for frequencies and band takes a thousand times as long: fewer, wider steps.
    ratio, close = (4.0, 1e-3) if policy.fills_round else (2**0.25, 1e-9)
    ways = [(name, value, (value / FAR, value * FAR)) for name, value in varied(policy).items()]
    found: list[Threshold] = []
    for setting, present, limits in [*ways, ("f_hz", float(known.f_hz[device]), known.system.frequency_hz)]:

        def fares_otherwise(value: float, setting: str = setting) -> bool:
            return bool(np.isin(device, decided(scene, device, setting, value).schedule)) != now

        for limit in limits:
            if pair := nearest(fares_otherwise, present, limit, ratio, close):
                late = setting == "f_hz" and not _changed(known, device, pair[0]).plan(planned).feasible[device]
                found.append(Threshold(setting, *pair, too_slow=now and late))
    return tuple(found)


def varied(policy: Policy) -> dict[str, float]:
    """The settings that weigh the terms of a policy against each other, as far as they can be varied by a factor."""
    weights = {name: value for name in WEIGHTS if isinstance(value := getattr(policy, name, None), int | float)}
    return {name: float(value) for name, value in weights.items() if 0 < value < np.inf}


def decided(scene: Scene, device: int, setting: str, value: float) -> Decision:
    """What the policy decides with another value of a setting, or of the frequency of this device."""
    if setting == "f_hz":
        return scene.decide(observation=_changed(scene.observation, device, value))
    return scene.decide(scene.policy.model_copy(update={setting: value}))


def _changed(observation: Observation, device: int, f_hz: float) -> Observation:
    """The observation, with another frequency of one device."""
    changed = observation.f_hz.copy()
    changed[device] = f_hz
    return replace(observation, f_hz=changed)


def nearest(
    differs: Callable[[float], bool], start: float, limit: float, ratio: float, close: float
) -> tuple[float, float] | None:
    """(first value found at which it differs, last at which it does not), on the way from start to limit."""
    if start <= 0 or limit <= 0 or start == limit:
        return None
    step, within = (ratio, min) if limit > start else (1 / ratio, max)
    same, value = start, within(start * step, limit)
    while not differs(value):
        if value == limit:
            return None
        same, value = value, within(value * step, limit)
    while abs(value / same - 1) > close:
        middle = float(np.sqrt(value * same))
        same, value = (same, middle) if differs(middle) else (middle, value)
    return value, same


def number(value: float) -> str:
    """Three significant digits, without an exponent where none is needed.

    >>> number(0.0512), number(1234.5), number(-2)
    ('0.0512', '1230', '−2')
    """
    rounded = float(f"{value:.3g}") + 0.0  # zero has no sign
    text = f"{rounded:.0f}" if 1e3 <= abs(rounded) < 1e6 else f"{rounded:.3g}"
    return text.replace("-", MINUS, int(rounded < 0))


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


def reason(against: Contest, scheduled: bool) -> str:
    """By how much it was ahead or behind, and by which of the terms."""
    return f"{_margin(against, scheduled)} {_terms(against)}".rstrip()


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


def _terms(against: Contest) -> str:
    """The decisive term first, then the others, of the device against the rival's."""

    def compared(name: str) -> str:
        (own, its), ahead = against.terms[name], against.ahead[name]
        versus = "" if against.rival is None else f" against {number(its)}"
        side = "speaks for it" if ahead > 0 else "speaks against it" if ahead < 0 else "is equal"
        return f"{name} {number(own)}{versus} {side}"

    others = [compared(name) for name in against.terms if name != against.decisive]
    if against.decisive is None:
        return f"Its terms: {listed(others)}." if others else ""
    rest = f"; {listed(others)}" if others else ""
    decided = "What decided" if against.margin > 0 else "What speaks most for it"
    return f"{decided}: {compared(against.decisive)}{rest}."


def _changes(found: Sequence[Threshold], policy: Policy, scheduled: bool) -> str:
    if ways := [_way(threshold) for threshold in found]:
        return f"It would {'drop out' if scheduled else 'be scheduled'} {listed(ways, last='or')}."
    others = [f"no other {name} up to a million times smaller or larger" for name in varied(policy)]
    return f"N{listed([*others, 'no frequency in the range of its CPU'])[1:]} would change that."


def _way(threshold: Threshold) -> str:
    side = "above" if threshold.above else "below"
    if threshold.setting == "f_hz":
        late = " (too slow for the deadline)" if threshold.too_slow else ""
        return f"if its CPU ran {side} {shown_as('f_hz', threshold.value)}{late}"
    return f"if {threshold.setting} were {side} {number(threshold.value)}"
