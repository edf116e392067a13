"""Balanced within the budget: class balance for who trains, least energy for how, rations for when. Our own rule.

    e_k        the energy of a turn: frequencies, band and powers of least Σ_{k∈Π} e_k (docs/joint.md, all weights 1)
    due_k(t)   = T E_k min(1, haste (t − s_k + 1)/(T − s_k + 1))      the ration since it first held data, in round s_k
    n(t)       = max(least, min(Σ due_k − Σ spent_k, peak Σ E_k)/e)   at most that many, and `size`; e the mean turn
    ahead_k    = max(lead · e_k, lead_part · T E_k)       how far a device may be ahead of its ration
    C(t)       = {k : feasible, holds data, e_k ≤ T E_k − spent_k, spent_k + e_k ≤ due_k + ahead_k}         candidates
    had_k      = (spent_k + max(spent_k + e_k − due_k, 0)) / e_k                turns it had, and is ahead, or would be
    cost_k     = price · (had_k − min_C had_j) + scarcity · e_k/(T E_k)         few turns in all: each is dear
    Π*         ⊆ C(t),  |Π| ≤ n(t),  of the least
                 D(Π) + spread/N(Π) + Σ cost_k            D: class imbalance, N: effective number (solvers/balance.py)

The set is built one by one with exchanges, for every size up to n(t). Nobody trains where its label mix p is too far
from balance: Σ (p − q)²/q above that of all data held, and of the best set that a round may have, by more than
`tolerance`.
Once the gains are known, nobody sends with more power than (A_k − E_cmp)/T_tr, A_k = min(T E_k − spent_k, (1 + 10⁻⁶)
(E_cmp + e_k)): an update in hand is worth a turn.
So no device ever exceeds its own budget T·E_k, whatever arrives and fades (docs/within-budget.md has the proof).

`pace = "running"` needs no horizon: due_k = t E_k, a device with credit left may take a turn, and its mean energy over
rounds 1..t is at most E_k + E_turn/t for every t.

Needs: label counts of all that each device holds (`knows = "sizes"`: their number only), frequency ceilings, mean
gains, what each device has spent. Ignores: the model, losses, what is fresh, queues.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from feelstream.arrays import Flags, Ids, Reals
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.plugins import Count, Magnitude, NonNegative, Positive
from feelstream.policies.base import STORED_FEATURES, Decision, Observation, Outcome, Policy, RoundPlan, State
from feelstream.policies.ranking import Ranking, pack
from feelstream.policies.solvers import joint, modes, rations
from feelstream.policies.solvers.allocation import Allocation
from feelstream.policies.solvers.balance import Balance, imbalance
from feelstream.policies.solvers.modes import Problem

LEEWAY = 1e-6  # what an update may cost beyond the plan, so that rounding never decides about one as planned


class Candidates(NamedTuple):
    """What the rule knows of every device before it chooses; (K,) each."""

    labels: np.ndarray  # (K, m), or (K, 1) sizes
    left_j: Reals  # the most that a turn may cost
    alone_j: Reals  # what a turn would cost with the band to itself
    able: Flags
    most: int  # devices that any round may have
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
    haste: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False), Magnitude] = Field(
        default=1.3, description="how many times faster than evenly over the run rations grow; ≥ 1"
    )
    peak: Positive = Field(
        default=1.0, description="most devices in a round, in multiples of what all budgets carry on average; > 0"
    )
    lead: Positive = Field(
        default=3.0, description="turns that a device may be ahead of its ration, the next one included; > 0"
    )
    lead_part: Annotated[float, Field(strict=True, ge=0, le=1)] = Field(
        default=0.25,
        description="or this part of its budget for the whole run, where that is more; 0 to 1; 0: turns alone count",
    )
    tolerance: NonNegative = Field(
        default=1.5,
        description="nobody trains if a round's label mix is further from balance than that of all data by more; ≥ 0",
    )
    knows: Literal["labels", "sizes"] = Field(
        default="labels", description="what the server knows of a device's data: its label counts, or its size only"
    )
    power_max_w: Positive | None = Field(
        default=None,
        description="greatest transmit power, W; > 0; unset: P0/min β, the greatest that equal powers would need",
    )
    fade_reserve: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False), Magnitude] = Field(
        default=1.5,
        description="frequencies leave time to meet the deadline at a gain this many times below the planned one; ≥ 1",
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
        reference = self._reference(observation.system)
        balance = Balance(labels, known.cost[ids], state["seen"], self.memory, self.spread, reference)
        chosen = balance.choose(known.plan.n)
        if self._waits(known, ids[chosen], reference):
            chosen = []
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
        due_j = rations.due_j(self.pace, system, t, first, self.haste)

        alone_j = np.maximum(modes.alone_j(self._planned(observation, 1)), np.finfo(float).tiny)
        able = holds & observation.plan(1).feasible & (alone_j <= left_j)  # NaN where no band would do: never
        able &= spent_j + alone_j <= due_j + self._ahead_j(observation, alone_j)
        most, n = self._sizes(observation, able, alone_j, due_j, spent_j, holds)
        plan, devices = observation.plan(n), None
        if n:
            devices = self._planned(observation, n)
            able &= plan.feasible & (devices.share_min <= 1 / n)
        had = (spent_j + np.maximum(spent_j + alone_j - due_j, 0.0)) / alone_j
        fewest = float(had[able].min()) if able.any() else 0.0
        cost = self.price * (had - fewest) + self.scarcity * rations.part(self.pace, system, t, alone_j)
        return Candidates(labels, left_j, alone_j, able, most, plan, devices, due_j, cost)

    def _ahead_j(self, observation: Observation, turn_j: Reals) -> Reals:
        """(K,) how far each device may be ahead of its ration after a turn."""
        whole_j = rations.whole_j(self.pace, observation.system, observation.round)
        return np.maximum(self.lead * turn_j, self.lead_part * whole_j)

    def _reference(self, system: System) -> Reals | None:
        """q; of sizes there is no other than 1."""
        return system.reference if self.knows == "labels" else None

    def _waits(self, known: Candidates, members: Ids, reference: Reals | None) -> bool:
        """Whether a round without training is better than one with this set."""

        def distance(labels: np.ndarray) -> float:
            return float(imbalance(labels.sum(axis=0, dtype=float), np.zeros(labels.shape[1]), 1.0, reference))

        here = distance(known.labels[members])
        if here <= distance(known.labels) + self.tolerance:
            return False
        held = known.labels[known.labels.any(axis=1)].astype(float)
        if len(held) <= known.most:  # then all data is what a set could have
            return True
        best = Balance(held, np.zeros(len(held)), np.zeros(held.shape[1]), 1.0, 0.0, reference).choose(known.most)
        return here > distance(held[best]) + self.tolerance

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
        """Why a device is no candidate; or, if it is one, why there was no set."""
        turn_mj, left_mj = 1e3 * known.alone_j[device], 1e3 * known.left_j[device]
        if not known.labels[device].any():
            return "it holds no data"
        if not turn_mj <= left_mj:
            return f"a turn costs it {turn_mj:.3g} mJ and {left_mj:.3g} mJ of its budget is left"
        ahead_j = (spent_j + known.alone_j - known.due_j)[device]
        if ahead_j > (most_j := self._ahead_j(observation, known.alone_j)[device]):
            ahead, most = (f"{each / known.alone_j[device]:.3g}" for each in (ahead_j, most_j))
            return f"a turn would put it {ahead} turns ahead of its ration, and {most} are allowed"
        no_set = "no set of candidates is balanced well enough, so nobody trains and the energy is kept"
        return no_set if known.able[device] else ""

    def _sizes(
        self, observation: Observation, able: Flags, turn_j: Reals, due_j: Reals, spent_j: Reals, holds: Flags
    ) -> tuple[int, int]:
        """The most devices of any round, and n(t): what the rations of those with data leave, if so many are on time.

        The most are `size`, and `peak` times what all budgets carry, if that is not below `least`. Without a horizon
        rations know no haste, which that limit is there to level.
        """
        if not able.any():
            return self.size, 0
        mean_j, most = float(turn_j[able].mean()), self.size
        if self.pace == "horizon":
            most = min(max(self.least, rations.carried(observation.system, mean_j, self.peak)), most)
        behind = rations.turns(due_j, spent_j, holds, mean_j)
        return most, len(pack(observation, able, min(max(self.least, behind), most)))

    def _labels(self, observation: Observation) -> np.ndarray:
        """(K, m) label counts, or (K, 1) sizes."""
        if self.knows == "sizes":
            return observation.stored[:, None]
        assert observation.stored_features is not None
        return observation.stored_features

    def _planned(self, observation: Observation, n: int) -> Problem:
        limit_w = self.most_power_w(observation.system, observation.beta)
        return joint.planned_devices(observation, n, np.ones(len(observation.beta)), limit_w, self.fade_reserve)

    def most_power_w(self, system: System, beta: Reals) -> Reals:
        return joint.most_power_w(system, beta, self.power_max_w)

    def transmit(self, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
        assert decision.f_hz is not None
        limit_w = self.most_power_w(observation.system, observation.beta)
        weight = np.ones(len(decision.schedule))
        return joint.send(observation, decision.schedule, decision.f_hz, limit_w, gain, weight, decision.allowance_j)

    def update(self, state: State, outcome: Outcome) -> State:
        labels, spent_j = self._labels(outcome.observation), state["spent_j"].copy()
        if outcome.report_j is not None:
            spent_j += outcome.report_j
            spent_j[outcome.schedule] -= outcome.report_j[outcome.schedule]  # it is in what the turn cost
        spent_j[outcome.schedule] += outcome.energy_j
        pooled = labels[outcome.schedule[outcome.transmitted]].sum(axis=0, dtype=float)
        mix = pooled / pooled.sum() if pooled.any() else state["seen"]
        new = labels.any(axis=1) & (state["first"] == 0)
        return {
            "seen": (1 - self.memory) * state["seen"] + self.memory * mix,
            "spent_j": spent_j,
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
