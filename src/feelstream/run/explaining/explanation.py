"""The explanation of one device in one round: against whom it competed, what decided, and what would change it.

What would change it is found by deciding again, with all else as it was in the round: outwards in equal ratios until
the device fares otherwise, then by bisection between the last two values. A window narrower than one ratio may be
passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feelstream.arrays import Flags, Ids, Reals
from feelstream.policies import POLICIES
from feelstream.policies.base import Observation, Policy
from feelstream.policies.ranking import Ranking, Term
from feelstream.run.explaining import sentences
from feelstream.run.explaining.scenes import Scene, Scenes
from feelstream.run.explaining.sentences import shown_as

FAR = 1e6  # by which factor a setting is varied at most
WEIGHTS = ("V", "price")  # settings of a policy that weigh its terms against each other


@dataclass(frozen=True)
class Contest:
    """A device against the nearest that fared otherwise: the first left out, or the last scheduled.

    rival is None where a place may stay empty and that is the alternative: all of its values are then 0.
    """

    own: float  # what it was ranked by
    rank: int  # from 1
    candidates: int
    rival: int | None
    margin: float  # by how much the decision was right; negative where the rule looks at more than these terms
    terms: dict[str, tuple[float, float]]  # of the device and of the rival, as shown
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
        round, device: Of which it speaks.
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
    """Of a run's trace."""
    rows = scenes.rows(round)
    figures = {name: rows[name][device] for name in rows.columns if "labels" not in name}
    if scene := scenes.scene(round):
        return explain_scene(scene, figures, device)
    policy, score = scenes.scenario_in(round).policy, rows["score"].cast(float).fill_null(np.nan).to_numpy()
    ranking = _by_score(policy, rows["feasible"].to_numpy(), score)
    return _explained(policy, ranking, np.flatnonzero(rows["scheduled"].to_numpy()), figures, round, device)


def explain_scene(
    scene: Scene, figures: Mapping[str, Any], device: int, *, with_thresholds: bool = True
) -> Explanation:
    """Of a round that can be decided again; figures: what the trace says of the device, by column."""
    ranking, round = ranked(scene, device), scene.observation.round
    explained = _explained(scene.policy, ranking, scene.decision.schedule, figures, round, device, scene)
    if not (with_thresholds and figures["available"] and scene.asked("ranking", device)):
        return explained
    found = thresholds(scene, device)
    text = " ".join([explained.text, *([sentences.change(found, explained.scheduled)] if found else [])])
    return replace(explained, thresholds=found, text=text)


def ranked(scene: Scene, device: int) -> Ranking | None:
    """What the candidates were ranked by; where the rule judges sets, for the place of this device."""
    decision = scene.decision
    return scene.asked("ranking", device) or _by_score(scene.policy, decision.plan.feasible, decision.score)


def _by_score(policy: Policy, feasible: Flags, score: Reals | None) -> Ranking | None:
    """(K,) each. None where no device has a score."""
    values = np.where(feasible, np.nan if score is None else score, np.nan)
    if not np.isfinite(values).any():
        return None
    return Ranking((Term(policy.prefers or "score", values, subtracted=policy.prefers is not None),))


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
    scheduled, name = bool(np.isin(device, schedule)), policy.plugin_name()
    fate, out, terms = "scheduled" if scheduled else "not scheduled", None, {}
    against = contest(ranking, schedule, device) if ranking else None
    placed = rank(ranking, device) if ranking else None
    if ranking is not None and placed is not None:
        terms = {term.name: float((-1 if term.subtracted else 1) * term.values[device]) for term in ranking.terms}
        fate += f", rank {placed[0]} of {placed[1]}"
    if not scheduled:
        out = _ruled_out(scene, figures, device, placed is not None)
    texts = [f"Round {round}, device {device}: {fate}."]
    if out:
        texts.append(out)
    elif against is not None:
        texts += [sentences.margin(against, scheduled), sentences.terms(against)]
    elif ranking is not None:
        texts.append("Every candidate was scheduled, so it competed with nobody.")
    else:
        says = sentences.rule(policy) if name in POLICIES.ours else ""
        texts.append(f"{name} does not rank devices by a score. Its rule: {says or 'that of its own code'}.")
    if scheduled and not figures["transmitted"]:
        texts.append("It was then dropped: with this round's channel its update would have been too late.")
    return Explanation(round, device, scheduled, terms, against, (), " ".join(text for text in texts if text))


def _ruled_out(scene: Scene | None, figures: Mapping[str, Any], device: int, has_rank: bool) -> str | None:
    """Why it was no candidate at all; None if it was."""
    if not figures["available"]:
        return "It was not available: out of reach, or without the data or the charge that the scenario requires."
    if not figures["feasible"]:
        hz = None if scene is None else _needed_hz(scene, device)
        needs = f"; it would need {shown_as('f_hz', hz)}" if hz else ""
        return f"Its CPU at {shown_as('f_hz', figures['f_hz'])} is too slow for the deadline{needs}."
    refusal = None if scene is None or has_rank else scene.asked("refusal", device)
    return f"It was not a candidate: {refusal}." if refusal else None


def _needed_hz(scene: Scene, device: int) -> float | None:
    """The frequency at which the device would meet the deadline at the planned size; None where none would do."""
    system = scene.observation.system
    time_s = float(system.time_s[device])
    left_s = time_s - float(np.broadcast_to(scene.decision.plan.transmit_time_s, system.devices)[device])
    return float(system.cycles[device] / left_s) if left_s > 0 else None


def rank(ranking: Ranking, device: int) -> tuple[int, int] | None:
    """(place from 1, number of candidates); None for a device that was no candidate."""
    total = ranking.total
    if not np.isfinite(total[device]):
        return None
    known = total[np.isfinite(total)]
    return 1 + int((known < total[device]).sum()), len(known)


def contest(ranking: Ranking, schedule: Ids, device: int) -> Contest | None:
    """None where nobody competed with it: it was no candidate, or all candidates fared alike."""
    placed, total = rank(ranking, device), ranking.total
    if placed is None:
        return None
    member, own = np.isin(np.arange(len(total)), schedule), float(total[device])
    others = np.flatnonzero(np.isfinite(total) & (member != member[device]))
    if member[device]:
        rival = int(others[np.argmin(total[others])]) if len(others) else None
        nobody = ranking.optional and (rival is None or total[rival] >= 0)
    else:
        rival = int(others[np.argmax(total[others])]) if len(others) else None
        nobody = ranking.optional and own >= 0
    if nobody:
        rival = None
    elif rival is None:
        return None
    level = 0.0 if rival is None else float(total[rival])
    sign = 1.0 if member[device] else -1.0
    terms, decisive, most = {}, None, 0.0
    for term in ranking.terms:
        mine, its = float(term.values[device]), 0.0 if rival is None else float(term.values[rival])
        shown = -1.0 if term.subtracted else 1.0
        terms[term.name] = (shown * mine, shown * its)
        if sign * (its - mine) > most:
            decisive, most = term.name, sign * (its - mine)
    return Contest(own, *placed, rival, sign * (level - own), terms, decisive)


def with_setting(policy: Policy, setting: str, value: float) -> Policy:
    return policy.model_copy(update={setting: value})


def with_frequency(observation: Observation, device: int, f_hz: float) -> Observation:
    """The observation, with another frequency of one device."""
    changed = observation.f_hz.copy()
    changed[device] = f_hz
    return replace(observation, f_hz=changed)


def thresholds(scene: Scene, device: int) -> tuple[Threshold, ...]:
    """Those of V or price, and of the frequency within the scenario's range: below and above, where there are any."""
    policy, known = scene.policy, scene.observation
    now = bool(np.isin(device, scene.decision.schedule))
    # Solving for frequencies and band takes a thousand times as long: fewer, wider steps.
    ratio, close = (4.0, 1e-3) if policy.fills_round else (2**0.25, 1e-9)

    def fares_otherwise(policy: Policy | None = None, observation: Observation | None = None) -> bool:
        return bool(np.isin(device, scene.decide(policy, observation).schedule)) != now

    found: list[Threshold] = []
    for setting in WEIGHTS:
        present = getattr(policy, setting, None)
        if not isinstance(present, int | float) or not 0 < present < np.inf:
            continue

        def by_setting(value: float, setting: str = setting) -> bool:
            return fares_otherwise(with_setting(policy, setting, value))

        for limit in (present / FAR, present * FAR):
            if pair := nearest(by_setting, float(present), limit, ratio, close):
                found.append(Threshold(setting, *pair))

    def by_frequency(f_hz: float) -> bool:
        return fares_otherwise(observation=with_frequency(known, device, f_hz))

    for limit in known.system.frequency_hz:
        if pair := nearest(by_frequency, float(known.f_hz[device]), limit, ratio, close):
            plan = with_frequency(known, device, pair[0]).plan(scene.decision.plan.n)
            found.append(Threshold("f_hz", *pair, too_slow=now and not plan.feasible[device]))
    return tuple(found)


def nearest(
    differs: Callable[[float], bool], start: float, limit: float, ratio: float, close: float
) -> tuple[float, float] | None:
    """(first value found at which it differs, last at which it does not), on the way from start to limit."""
    same, step = start, ratio if limit > start else 1 / ratio
    if start <= 0 or limit <= 0 or start == limit:
        return None
    while True:
        value = same * step
        value = min(value, limit) if limit > start else max(value, limit)
        if differs(value):
            break
        if value == limit:
            return None
        same = value
    while abs(value / same - 1) > close:
        middle = float(np.sqrt(value * same))
        if differs(middle):
            value = middle
        else:
            same = middle
    return value, same
