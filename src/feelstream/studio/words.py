"""Why these devices? One sentence per policy and round, from the figures of the trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids
from feelstream.policies.ranking import Ranking
from feelstream.run.explaining import Explanation, explain_scene, listed, number, ranked, reason, rule
from feelstream.scenario import Scenario
from feelstream.studio.views import RoundView

MOST_EXPLAINED = 3  # scheduled devices that are explained one by one
MOST_RANKED = 12  # that are looked at for it


def why(view: RoundView, scenario: Scenario) -> str:
    """The sentence under a policy; `scenario` is the one in force in the round."""
    row, devices = view.row, view.devices
    if not row["scheduled"]:
        few = f"the rule took none of {row['feasible']} feasible devices"
        return f"Nobody was scheduled: {few if row['feasible'] else 'no device met the deadline'}."
    if devices is None:
        return f"{row['scheduled']} of {row['feasible']} feasible devices were scheduled; this run stores no devices."
    chosen = view.chosen
    were, scores = "was" if len(chosen) == 1 else "were", devices["score"][chosen]
    sentence = f"{_who(devices['device'][chosen])} {were} chosen from {row['feasible']} feasible devices"
    if np.isfinite(scores).any():
        sentence += f" by the lowest scores ({listed([number(float(score)) for score in scores], 4)})"
    said = rule(scenario.policy)
    sentence += f".{_decided(view, chosen) or (said and f' The rule: {said}.')}"
    lost = row["scheduled"] - row["transmitted"]
    if lost:
        dropped = devices["device"][chosen[~devices["transmitted"][chosen]]]
        late = _who(dropped) if len(dropped) == lost else f"{lost} of them"
        sentence += f" {late} {'was' if lost == 1 else 'were'} dropped: with this round's channel too late."
    return sentence


def _who(ids: NDArray) -> str:
    return f"Device{'s' if len(ids) > 1 else ''} {listed(ids.tolist())}"


def explained(view: RoundView, at: int, *, with_thresholds: bool = False) -> Explanation | None:
    """Why the device at position `at` was scheduled, or not, from the terms of its score; None where none are known."""
    if view.scene is None or view.devices is None:
        return None
    figures = {name: view.devices[name][at] for name in ("available", "feasible", "transmitted", "f_hz")}
    return explain_scene(view.scene, figures, int(view.devices["device"][at]), with_thresholds=with_thresholds)


def ranking_of(view: RoundView) -> Ranking | None:
    """What the candidates of the round were ranked by; where the rule judges sets, for the place of a member."""
    if view.scene is None:
        return None
    schedule = view.scene.decision.schedule
    device = int(schedule[0]) if len(schedule) else int(np.argmax(view.scene.decision.plan.feasible))
    return ranked(view.scene, device)


def place(ranking: Ranking, schedule: Ids) -> str:
    """Which place the candidates compete for, where the rule judges sets; nothing where each is ranked by itself."""
    rest = [int(device) for device in schedule if not np.isfinite(ranking.total[device])]
    return f"For a place beside {_who(np.array(rest)).lower()}." if rest else ""


def _decided(view: RoundView, chosen: np.ndarray) -> str:
    """What put the scheduled before the others: of each, or of the closest to the cut where they are many."""
    found = [each for at in chosen[:MOST_RANKED] if (each := explained(view, at)) is not None]
    contests = [(each.contest.margin, each.device, each.contest) for each in found if each.contest is not None]
    if len(contests) > MOST_EXPLAINED:
        contests = [min(contests, key=lambda each: each[0])]
    return "".join(f" Device {device}: {reason(contest, scheduled=True)}" for _, device, contest in contests)
