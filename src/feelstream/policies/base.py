"""The contract of a scheduling policy.

A policy is a frozen settings object. All that it remembers between rounds is its state, a dictionary of arrays
that the simulation keeps, stores in checkpoints and hands back:

    state            = policy.init(system)
    asked            = policy.asks(state, observation, rng)       each round, where it needs reports
    decision         = policy.select(state, observation, rng)     each round
    state            = policy.update(state, outcome)              each round

A policy sees what a server could know when it schedules: never this round's channel gains, unless it says that it is
an oracle (`oracle_gain` in `needs`), which exists in simulations only. It may ask devices for reports of the model and
the data they hold (`needs` too), which takes time and energy: docs/reports.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Flags, Frozen, Ids, Ints, LabelCounts, Reals, read_only
from feelstream.guard import STATE, Array, One, Out, default
from feelstream.model import importance, physics, transmission
from feelstream.model.importance import METRICS
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.plugins import Count, Plugin
from feelstream.policies import laws
from feelstream.policies.ranking import Ranking
from feelstream.stored import StoredName

State = dict[str, NDArray]
SPENT = Array(("n",), least=0)
TRAINING = "update_norm"  # the report for which a device trains
ORACLE_GAIN, STORED_FEATURES = "oracle_gain", "stored_features"  # in `needs`: these of an Observation
EQUAL_UPDATES = "equal_updates"  # in `needs`: the updates of all devices have as many bits
QUEUES_FROM_ZERO = "queues_from_zero"  # in `needs`: it weighs by energy queues, so none may be below 0


@dataclass(frozen=True)
class RoundPlan(Frozen):
    """What follows for every device from planning to let n of them share the band: `observation.plan(n)`.

    Attributes:
        n: How many devices are planned to send.
        transmit_time_s: T~(n), the time to send an update, s; (K,) where updates differ in size.
        feasible: (K,) Π_f(n), who is available and meets the deadline.
        energy_j: (K,) E~_k(n), the energy that the round would cost each device, J.
        amount: (K,) the importance metric `amount`, which depends on Π_f(n).
    """

    n: int
    transmit_time_s: float | Reals
    feasible: Flags
    energy_j: Reals
    amount: Reals


@dataclass(frozen=True)
class Observation(Frozen):
    """What is known of every device when a round is scheduled; arrays have one row for each of K devices.

    Attributes:
        system: The constants of the scenario: devices, band, deadline, budgets.
        round: t, from 1.
        f_hz: (K,) CPU frequency of this round, Hz.
        beta: (K,) mean channel power gain.
        stored: (K,) |S_k(t)|, samples that a device holds.
        fresh: (K,) |B_k(t)|, samples that are fresh.
        fresh_features: (K, m) L(B_k), the feature vectors of the fresh data: by default its label counts.
        used_features: (m,) L(X), of the data used so far.
        queue_j: (K,) Q_k(t), the energy queue, J: how far a device has overspent its budget.
        available: (K,) who may be scheduled at all: holds data where `data.eligible` asks for it, and can be reached.
        stored_features: (K, m) L(S_k), of all that a device holds; only for policies with that in `needs`.
        reliability: (K,) p_k, the probability to deliver that the server has learned; None: 1.
        oracle_gain: (K,) |g_k(t)|², which no server knows yet; only for policies with that in `needs`.
        reports: (K, …) by their name in `needs`; NaN where none arrived.
    """

    system: System
    round: int
    f_hz: Reals
    beta: Reals
    stored: Ints
    fresh: Ints
    fresh_features: LabelCounts
    used_features: Ints
    queue_j: Reals
    available: Flags
    stored_features: LabelCounts | None = None
    reliability: Reals | None = None
    oracle_gain: Reals | None = None
    reports: Mapping[str, Reals] = field(default_factory=dict)

    def plan(self, n: int, feasible: Flags | None = None) -> RoundPlan:
        """Feasibility, energy and amount for a planned size n (n = 0 is seen as 1: nobody sends, nothing else changes).

        feasible: (K,) whom a policy with a `transmit` of its own can bring in time by its own split of the band.

        Π_f(n) = {k : available and c/f_k + T~(n) ≤ T_k},   E~_k(n) = E_cmp,k + p_k (P0/β_k) T~(n) + E_down,k.

        T_k is T_rd, less the download and what a deadline of its own cuts off.
        """
        system = self.system
        transmit_time_s = system.planned_time_s(max(n, 1))
        if feasible is None:
            feasible = self.available & (self.compute_time_s + transmit_time_s <= system.time_s)
        energy_j = system.received_power_w / self.beta  # in place from here: many devices, few passes through memory
        energy_j *= transmit_time_s
        if self.reliability is not None:
            energy_j *= self.reliability
        energy_j += self.compute_energy_j
        if system.downloads:
            energy_j += system.download_j
        amount = importance.amount(self.fresh, feasible)
        return RoundPlan(n, transmit_time_s, feasible, energy_j, amount)

    @property
    def priority(self) -> Reals:
        """(K,) factor on the importance of each device; 1 unless the scenario, or a deployment, says otherwise."""
        return self.system.priority

    def importance(self, metric: str, plan: RoundPlan) -> Reals:
        """(K,) I_k by a metric's name, times the priority of the device and its probability to deliver."""
        found = importance.importance_of(metric, self, plan)
        found = self.priority * found if self.system.prefers else found
        return found if self.reliability is None else self.reliability * found

    @cached_property
    def compute_time_s(self) -> Reals:
        return read_only(physics.compute_time_s(self.system.cycles, self.f_hz))

    @cached_property
    def compute_energy_j(self) -> Reals:
        return read_only(self.system.compute_energy_j(self.f_hz))

    @cached_property
    def dissimilarity(self) -> Reals:
        """(K,) how unlike the data used so far each device's fresh data is."""
        system = self.system
        return read_only(
            importance.dissimilarity(
                self.fresh_features,
                self.used_features,
                first_round=self.round == 1,
                empty_used=system.empty_used,
                empty_fresh=system.empty_fresh,
            )
        )


@dataclass(frozen=True)
class Decision(Frozen):
    """Which devices to schedule, and the numbers behind it: `fs.Decision(ids, plan)`.

    Attributes:
        schedule: Device numbers, from 0, all of them feasible in `plan`.
        plan: What `observation.plan(n)` gave.
        importance: (K,) for the trace; None: the combined metric.
        score: (K,) what the policy minimised, if it minimises a sum over devices.
        f_hz: (scheduled,) CPU frequency chosen for each, Hz, at most the device's; None: all that it has.
        allowance_j: (scheduled,) the most that each may spend in the round, J; None: no limit.
        probability: (K,) with which each device was to be scheduled; None: not known.
        columns: (K,) numbers by name, for the trace: further columns of devices.parquet, null where NaN.
    """

    schedule: Ids
    plan: RoundPlan
    importance: Reals | None = None
    score: Reals | None = None
    f_hz: Reals | None = None
    allowance_j: Reals | None = None
    probability: Reals | None = None
    columns: Mapping[str, Reals] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome(Frozen):
    """What a round came to, as far as the server learns it.

    Attributes:
        round: t, from 1.
        schedule: Devices that trained.
        transmitted: (scheduled,) whose update got through.
        gain: (scheduled,) |g_k|² as found after training.
        energy_j: (scheduled,) what the round cost each, J.
        losses: (scheduled, steps, batch) of replies that arrived, NaN for the others and for absent samples; None
            without learning.
        observation: What was known when the round was scheduled.
        update_norm: (scheduled,) ‖Δθ_k‖₂, as `losses`.
        report_j: (K,) what reports cost each device, J, which `energy_j` includes; None: nobody was asked for any.
    """

    round: int
    schedule: Ids
    transmitted: Flags
    gain: Reals
    energy_j: Reals
    losses: NDArray[np.float32] | None
    observation: Observation
    update_norm: Reals | None = None
    report_j: Reals | None = None

    @property
    def total_j(self) -> float:
        """What the round cost all devices together, J: the turns of the scheduled, and the reports of the others."""
        others_j = 0.0 if self.report_j is None else np.delete(self.report_j, self.schedule).sum()
        return float(self.energy_j.sum() + others_j)

    def added_to(self, spent_j: Reals) -> Reals:
        """(K,) the same with what this round cost each device, J."""
        after_j = spent_j.copy()
        if self.report_j is not None:
            after_j += self.report_j
            after_j[self.schedule] = spent_j[self.schedule]  # it is in what the turn cost
        after_j[self.schedule] += self.energy_j
        return after_j


class Policy(Plugin):
    """Base of all policies: give it a `select`, and `init` and `update` if it must remember something.

    Fields of the class, such as `size`, are settings: `--set size=3` or `MyPolicy(size=3)`. `needs` names the reports
    that it asks devices for (docs/reports.md), and `stored_features` or `oracle_gain` where it must know these.

    >>> class First(Policy):
    ...     def select(self, state, observation, rng):
    ...         plan = observation.plan(self.size)
    ...         return Decision(np.flatnonzero(plan.feasible)[: self.size], plan)
    >>> First(size=3).size
    3
    """

    plugin_field: ClassVar[str] = "policy"
    contract: ClassVar[Mapping[str, Out]] = {
        "start": Out(STATE),
        "asks": Out(Array(kind="b")),
        "select": Out(
            One(
                Decision,
                plan=One(RoundPlan, feasible=Array(kind="b"), energy_j=Array(finite=False), amount=Array()),
                importance=Array(finite=False, none=True),
                score=Array(finite=False, none=True),
                probability=Array(least=0, most=1, none=True),
            ),
            laws.has_the_plan,
            laws.is_feasible,
            laws.adds_columns,
            laws.says_why,
        ),
        "transmit": Out(
            One(
                Transmission,
                sent=Array(("n",), "b"),
                **dict.fromkeys(("bandwidth_share", "power_w", "t_cmp_s", "t_tr_s", "e_cmp_j", "e_tr_j"), SPENT),
            ),
            laws.shares_the_band,
            laws.obeys_physics,
        ),
        "most_power_w": Out(Array(least=0)),
        "update": Out(STATE),
        "ranking": Out(One(Ranking, none=True), laws.has_terms),
    }
    tag_field: ClassVar[str] = "name"
    # Traits: what a class states of itself, so that nobody asks for its name.
    plugin_traits: ClassVar[tuple[str, ...]] = ("equal_shares", "fills_round", "knows_probability", "by_score", "needs")
    # The scenario's admission decides who sends, each with an equal share of the band and the power P0/β. True of every
    # class without a `transmit` of its own.
    equal_shares: ClassVar[bool] = True
    # Devices send for all that computing left of the round, so `transmit` must know how long that took: in a deployment
    # the frequencies that it receives are then c over the time that each device measured. It plans with one deadline
    # for all, fixed cycles, and without the energy of receiving the model.
    fills_round: ClassVar[bool] = False
    knows_probability: ClassVar[bool] = False  # its decisions have a Decision.probability of each device
    by_score: ClassVar[bool] = False  # it schedules the feasible devices with the lowest Decision.score, `size` of them
    # What it cannot do without: reports of devices by name, STORED_FEATURES, ORACLE_GAIN in simulations, EQUAL_UPDATES,
    # QUEUES_FROM_ZERO.
    needs: ClassVar[frozenset[str]] = frozenset()
    prefers: ClassVar[str | None] = None  # what Decision.score is the negative of, as explanations call it

    size: Count = Field(default=2, description="devices scheduled per round (at most, where the rule says so); ≥ 1")

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        super().__pydantic_init_subclass__(**more)
        cls.equal_shares = cls.transmit is Policy.transmit

    def model_post_init(self, context: Any) -> None:
        """What its metric `needs`, this policy needs too."""
        name = getattr(self, "metric", "combined")
        if name not in METRICS.ours and not isinstance(name, StoredName):
            own: Any = self.__dict__  # that of the object goes before that of its class
            own["needs"] = frozenset(self.needs) | frozenset(getattr(METRICS.lookup(name), "needs", ()))

    @property
    def smallest_plan(self) -> int:
        """The least number of devices, above none, that this policy ever plans to put on the band."""
        return self.size

    @property
    def probes(self) -> frozenset[str]:
        """The reports that it needs, by the names of their probes; with any, rounds begin with a slot for them."""
        return frozenset(self.needs) - {ORACLE_GAIN, STORED_FEATURES, EQUAL_UPDATES, QUEUES_FROM_ZERO}

    def init(self, system: System) -> State:
        """The state before the first round: arrays by name; by default none."""
        return {}

    def start(self, system: System, rng: np.random.Generator) -> State:
        """The state before the first round, for a policy that draws lots once and for all; otherwise `init`."""
        return self.init(system)

    @default
    def asks(self, state: State, observation: Observation, rng: np.random.Generator) -> Flags:
        """(K,) whom it asks for reports; all that are available, unless it says otherwise."""
        return observation.available

    @abstractmethod
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        """Choose the devices of a round.

        Args:
            state: What `init` or the last `update` gave.
            observation: What the server knows of every device.
            rng: The only random numbers to use, so that a run can be repeated.
        """

    @default
    def transmit(self, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
        """Who sends, with what and at which cost, once the gains of the scheduled are known.

        By default the scenario's admission rule, with equal shares of the band, at the frequencies of the decision.
        """
        ids = decision.schedule
        f_hz = observation.f_hz[ids] if decision.f_hz is None else decision.f_hz
        return transmission.transmit(observation.system, ids, f_hz, observation.beta[ids], gain)

    @default
    def most_power_w(self, system: System, beta: Reals) -> Reals:
        """(K,) the power, W, that no device exceeds in a round with these mean gains; by default P0/β_k, as sent with.

        Where devices have batteries, only those are available whose charge covers E_cmp + this for all that computing
        at full frequency leaves of the round. A policy with a `transmit` of its own must say it to be used there.
        """
        return system.received_power_w / beta

    @default
    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking | None:
        """What `device` was ranked by in a decision, in the terms of the rule; None for a rule without such terms.

        If the device was no candidate although it meets the deadline, the ranking may say why (`refusal`).

        For explanations only (`feelstream explain RUN`); where it is None, they fall back on Decision.score.
        """
        return None

    @default
    def update(self, state: State, outcome: Outcome) -> State:
        """The state for the next round, after what became of this one; by default the same."""
        return state
