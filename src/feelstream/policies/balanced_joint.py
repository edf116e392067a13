"""Balanced within the budget: class balance for who trains, least energy for how, rations for when. Our own rule.

    e_k        least energy of a turn: Σ_{k∈Π} e_k of frequencies, band and powers is least (docs/joint.md, weights 1)
    due_k(t)   = T E_k (t − s_k + 1)/(T − s_k + 1)              the ration since it first held data, in round s_k
    C(t)       = {k : feasible, holds data, spent_k + e_k ≤ min(T E_k, due_k + lead · e_k)}            candidates
    cost_k     = price · (turns it had, and is ahead) + scarcity · e_k/(T E_k)        few turns in all: each is dear
    Π*         ⊆ C(t) of the least   D(Π) + spread/N(Π) + Σ cost_k,    |Π| ≤ max(least, Σ (due_k − spent_k)/e), `size`

D is the class imbalance with what was seen lately (`memory`), N the effective number (solvers/balance.py), e the mean
turn. Nobody sends with more than A_k = min(T E_k − spent_k, (1 + 10⁻⁶)(E_cmp + e_k)) leaves: an update in hand is worth
a turn. So no device ever exceeds its budget T·E_k (proof: docs/within-budget.md). Needs: label counts of all that each
device holds (`knows = "sizes"`: their number), frequency ceilings, mean gains. Ignores: model, losses, queues.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from feelstream.arrays import Flags, Ids, Reals
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.plugins import Count, NonNegative, Positive
from feelstream.policies.base import STORED_FEATURES, Decision, Observation, Outcome, Policy, RoundPlan, State
from feelstream.policies.ranking import Ranking, pack
from feelstream.policies.solvers import joint, modes, rations
from feelstream.policies.solvers.allocation import Allocation
from feelstream.policies.solvers.balance import Balance
from feelstream.policies.solvers.modes import Problem

LEEWAY = 1e-6  # what an update may cost beyond the plan, so that rounding never decides about one as planned


class Candidates(NamedTuple):
    """What the rule knows of every device before it chooses; (K,) each."""

    labels: np.ndarray  # (K, m), or (K, 1) sizes
    left_j: Reals  # the most that a turn may cost
    alone_j: Reals  # what a turn would cost with the band to itself
    able: Flags
    plan: RoundPlan
    devices: Problem | None  # None where n = 0
    due_j: Reals
    cost: Reals  # of a turn, against class balance


class BalancedJoint(Policy):
    """At most `size` devices with data: class balance at least energy, no device ever above its own budget."""

    fills_round: ClassVar[bool] = True

    size: Count = Field(default=20, description="most devices in a round; the budgets decide how many of them; ≥ 1")
    least: Count = Field(default=2, description="devices that a round may have even ahead of the rations; ≥ 1")
    memory: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.8, description="η, weight of one round in what the model has seen lately; above 0, at most 1"
    )
    spread: NonNegative = Field(
        default=0.3, description="what averaging over few devices costs against class balance; ≥ 0"
    )
    price: NonNegative = Field(
        default=0.01,
        description="what a turn costs that a device had or is ahead of its ration, beyond the least of all; ≥ 0",
    )
    scarcity: NonNegative = Field(
        default=0.2, description="what a turn costs that takes the whole budget of a device, others in proportion; ≥ 0"
    )
    pace: rations.Pace = Field(
        default="horizon",
        description="horizon: T·budget shared out over the run; running: credit by round, for any length",
    )
    lead: Positive = Field(
        default=3.0, description="turns that a device may be ahead of its ration, the next one included; > 0"
    )
    knows: Literal["labels", "sizes"] = Field(
        default="labels", description="what the server knows of a device's data: its label counts, or its size only"
    )
    power_max_w: Positive | None = Field(
        default=None,
        description="greatest transmit power, W; > 0; unset: P0/min β, the greatest that equal powers would need",
    )

    @property
    def smallest_plan(self) -> int:
        return 1

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({STORED_FEATURES} if self.knows == "labels" else ())

    def init(self, system: System) -> State:
        joint.check_plannable(system, self.tag)
        return {
            "seen": system.balanced_mix if self.knows == "labels" else np.ones(1),
            "spent_j": np.zeros(system.devices),
            "first": np.zeros(system.devices, np.int64),
        }

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        lot = rng.permutation(observation.system.devices)
        known = self._candidates(state, observation)
        if known.devices is None:
            return Decision(np.zeros(0, np.int64), known.plan, f_hz=np.zeros(0), allowance_j=np.zeros(0))
        ids = lot[known.able[lot]]
        labels = known.labels[ids].astype(float)
        lately = state["seen"], self.memory, self.spread, self._reference(observation.system)
        chosen = Balance(labels, known.cost[ids], *lately).choose(known.plan.n)
        schedule, allocation = _affordable(known.devices, np.sort(ids[chosen]), known.left_j)
        if allocation is None:
            return Decision(schedule, known.plan, f_hz=np.zeros(0), allowance_j=np.zeros(0))
        f_hz = joint.frequencies(observation, known.devices.take(schedule), schedule, allocation)
        computing_j = observation.system.compute_energy_j(f_hz, schedule)
        allowance_j = np.minimum(known.left_j[schedule], (computing_j + allocation.energy_j) * (1 + LEEWAY))
        return Decision(schedule, known.plan, f_hz=f_hz, allowance_j=allowance_j)

    def _candidates(self, state: State, observation: Observation) -> Candidates:
        """Who may take part, how many of them, and what a turn of each counts against class balance."""
        system, t, spent_j = observation.system, observation.round, state["spent_j"]
        labels = self._labels(observation)
        holds = np.asarray(labels.any(axis=1))
        reports_j = rations.reports_j(self.pace, system, t, observation.beta)
        left_j = rations.left_j(self.pace, system, t, spent_j + reports_j)
        first = np.where(holds & (state["first"] == 0), t, state["first"])
        due_j = rations.due_j(self.pace, system, t, first)

        alone_j = np.maximum(modes.alone_j(self._planned(observation, 1)), np.finfo(float).tiny)
        able = holds & observation.plan(1).feasible & (alone_j <= left_j)  # NaN where no band would do: never
        able &= spent_j + alone_j <= due_j + self.lead * alone_j
        n = self._most(observation, able, alone_j, due_j, spent_j, holds)
        plan, devices = observation.plan(n), None
        if n:
            devices = self._planned(observation, n)
            able &= plan.feasible & (devices.share_min <= 1 / n)
        had = (spent_j + np.maximum(spent_j + alone_j - due_j, 0.0)) / alone_j
        fewest = float(had[able].min()) if able.any() else 0.0
        cost = self.price * (had - fewest) + self.scarcity * rations.part(self.pace, system, t, alone_j)
        return Candidates(labels, left_j, alone_j, able, plan, devices, due_j, cost)

    def _reference(self, system: System) -> Reals | None:
        """q; of sizes there is no other than 1."""
        return system.reference if self.knows == "labels" else None

    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking:
        """What each candidate adds to D, to spread/N and to the costs, beside the rest of the set."""
        known, schedule = self._candidates(state, observation), decision.schedule
        able = known.able if len(schedule) else np.zeros_like(known.able)  # else nobody was ranked
        lately = state["seen"], self.memory, self.spread, self._reference(observation.system)
        balance = Balance(known.labels.astype(float), known.cost, *lately)
        refusal = self._refusal(known, state["spent_j"], observation, device)
        room = len(schedule) < known.plan.n
        return balance.ranking(able, schedule, device, priced="turns and ration", room=room, refusal=refusal)

    def _refusal(self, known: Candidates, spent_j: Reals, observation: Observation, device: int) -> str:
        """Why a device is no candidate."""
        turn_mj, left_mj = 1e3 * known.alone_j[device], 1e3 * known.left_j[device]
        if not known.labels[device].any():
            return "it holds no data"
        if not turn_mj <= left_mj:
            return f"a turn costs it {turn_mj:.3g} mJ and {left_mj:.3g} mJ of its budget is left"
        ahead = (spent_j + known.alone_j - known.due_j)[device] / known.alone_j[device]
        if ahead > self.lead:
            return f"a turn would put it {ahead:.3g} turns ahead of its ration, and {self.lead:.3g} are allowed"
        return ""

    def _most(
        self, observation: Observation, able: Flags, turn_j: Reals, due_j: Reals, spent_j: Reals, holds: Flags
    ) -> int:
        """n(t): as many turns as those with data are behind their rations, at least `least`, if so many are on time."""
        if not able.any():
            return 0
        behind = rations.turns(due_j, spent_j, holds, float(turn_j[able].mean()))
        return len(pack(observation, able, min(max(self.least, behind), self.size)))

    def _labels(self, observation: Observation) -> np.ndarray:
        """(K, m) label counts, or (K, 1) sizes."""
        if self.knows == "sizes":
            return observation.stored[:, None]
        assert observation.stored_features is not None
        return observation.stored_features

    def _planned(self, observation: Observation, n: int) -> Problem:
        limit_w = self.most_power_w(observation.system, observation.beta)
        return joint.planned_devices(observation, n, np.ones(len(observation.beta)), limit_w, fade_reserve=1.0)

    def most_power_w(self, system: System, beta: Reals) -> Reals:
        return joint.most_power_w(system, beta, self.power_max_w)

    def transmit(self, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
        assert decision.f_hz is not None
        limit_w = self.most_power_w(observation.system, observation.beta)
        weight = np.ones(len(decision.schedule))
        return joint.send(observation, decision.schedule, decision.f_hz, limit_w, gain, weight, decision.allowance_j)

    def update(self, state: State, outcome: Outcome) -> State:
        labels = self._labels(outcome.observation)
        pooled = labels[outcome.schedule[outcome.transmitted]].sum(axis=0, dtype=float)
        mix = pooled / pooled.sum() if pooled.any() else state["seen"]
        new = labels.any(axis=1) & (state["first"] == 0)
        return {
            "seen": (1 - self.memory) * state["seen"] + self.memory * mix,
            "spent_j": outcome.added_to(state["spent_j"]),
            "first": np.where(new, outcome.round, state["first"]),
        }


def _affordable(devices: Problem, schedule: Ids, left_j: Reals) -> tuple[Ids, Allocation | None]:
    """The schedule without those whom sharing the band would cost more than they have left, and its allocation."""
    while len(schedule):
        allocation = modes.allocate(devices.take(schedule))
        kept = allocation.energy_j <= left_j[schedule]
        if kept.all():
            return schedule, allocation
        schedule = schedule[kept]
    return schedule, None
