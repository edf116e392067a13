"""The explanation of one device in one round, as figures and as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from feelstream.guard import ask
from feelstream.policies.ranking import Ranking, Term
from feelstream.run.explaining import sentences
from feelstream.run.explaining.contests import Contest, contest, rank
from feelstream.run.explaining.scenes import Scene, Scenes
from feelstream.run.explaining.thresholds import Threshold, thresholds

# What the score of a rule with one quantity is, and whether the rule prefers more of it.
QUANTITY = {
    "age": ("rounds since its last turn", True),
    "best_channel": ("channel gain", True),
    "update_norm": ("norm of the update", True),
    "proportional_fair": ("gain over mean service", True),
}


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
    rows, scene = scenes.rows(round), scenes.scene(round)
    figures = {name: rows[name][device] for name in rows.columns if "labels" not in name}
    recorded = np.where(rows["feasible"], rows["score"].cast(float).fill_null(np.nan), np.nan)
    schedule = np.flatnonzero(rows["scheduled"].to_numpy())
    name = scenes.scenario.policy.plugin_name()
    return _explained(name, scene, figures, recorded, schedule, round, device, with_thresholds=True)


def explain_scene(
    scene: Scene, figures: Mapping[str, Any], device: int, *, with_thresholds: bool = True
) -> Explanation:
    """Of a round that was kept; figures: what the trace says of the device, by column."""
    score, feasible = scene.decision.score, scene.decision.plan.feasible
    recorded = np.full(len(feasible), np.nan) if score is None else np.where(feasible, score, np.nan)
    name, schedule = scene.policy.plugin_name(), scene.decision.schedule
    return _explained(
        name, scene, figures, recorded, schedule, scene.observation.round, device, with_thresholds=with_thresholds
    )


def _explained(
    name: str,
    scene: Scene | None,
    figures: Mapping[str, Any],
    recorded: np.ndarray,
    schedule: np.ndarray,
    round: int,
    device: int,
    *,
    with_thresholds: bool,
) -> Explanation:
    scheduled = bool(np.isin(device, schedule))
    ranking, refusal, found = None, None, ()
    if scene is not None:
        known = (scene.state, scene.observation, scene.decision, device)
        ranking = ask(scene.policy, "ranking", *known)
        if not scheduled and figures["feasible"]:
            refusal = ask(scene.policy, "refusal", *known)
        if ranking is not None and with_thresholds and figures["available"]:
            found = thresholds(scene, device)
    if ranking is None and np.isfinite(recorded).any():
        what, more = QUANTITY.get(name, ("score", False))
        ranking = Ranking((Term(what, recorded, subtracted=more),))
    against = contest(ranking, schedule, device) if ranking else None
    placed = rank(ranking, device) if ranking else None
    terms = {}
    if ranking is not None and placed is not None:
        terms = {term.name: float((-1 if term.subtracted else 1) * term.values[device]) for term in ranking.terms}
    size = getattr(scene.policy, "size", None) if scene is not None else None
    text = sentences.of_device(
        name,
        size,
        figures,
        round,
        device,
        scheduled,
        ranking,
        placed,
        against,
        refusal,
        found,
        _needed_hz(scene, device),
    )
    return Explanation(round, device, scheduled, terms, against, found, text)


def _needed_hz(scene: Scene | None, device: int) -> float | None:
    """The frequency at which the device would meet the deadline at the planned size; None where none would do."""
    if scene is None:
        return None
    system = scene.observation.system
    time_s = float(np.broadcast_to(system.time_s, system.devices)[device])
    left_s = time_s - float(np.broadcast_to(scene.decision.plan.transmit_time_s, system.devices)[device])
    return float(system.device_cycles[device] / left_s) if left_s > 0 else None
