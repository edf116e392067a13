"""The server's core: a round decided and settled, the same for simulated and for real devices.

observation   = state.aware(observation)
decision      = decide(policy, state.policy_state, observation, seed)
…             the scheduled devices train, and only then is the channel known
transmission  = transmit(policy, observation, decision, gain)
state, record = settle(policy, state, observation, decision, transmission, …)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ints, LabelCounts, Nested, Reals, read_only
from feelstream.evaluation import Measured
from feelstream.guard import ask, broken, freeze
from feelstream.model.reporting import Reliability, Reporting
from feelstream.model.system import System
from feelstream.model.transmission import Transmission, next_queue_j
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.randomness import Purpose, generator

Real = TypeVar("Real", np.float32, np.float64)


@dataclass(frozen=True)
class ServerState:
    """What the server carries from one round to the next."""

    queue_j: Reals  # (K,) Q_k
    policy_state: State  # what the policy carries
    reliability: Reliability | None = None  # None: nothing is learned of it

    @staticmethod
    def first(policy: Policy, system: System, seed: int, learn_reliability: bool = False) -> ServerState:
        """Before the first round: empty queues, and the policy's own beginning."""
        begun = ask(policy, "start", system, generator(seed, Purpose.POLICY, 0), at=0)
        reliability = Reliability.first(system.devices) if learn_reliability else None
        return ServerState(read_only(np.zeros(system.devices)), begun, reliability)

    def ready(self, able: Flags, round: int) -> Flags:
        """(K,) of those who may be scheduled, the ones that do not rest."""
        return able if self.reliability is None else self.reliability.ready(able, round)

    def aware(self, observation: Observation) -> Observation:
        """What is observed, as a server sees it that knows who delivers: p_k, and nobody who rests."""
        if self.reliability is None:
            return observation
        ready = self.ready(observation.available, observation.round)
        return replace(observation, available=ready, reliability=self.reliability.expected)

    def snapshot(self) -> Nested:
        """For a checkpoint; `restored` gives the state back."""
        learned = {} if self.reliability is None else {"reliability": self.reliability.snapshot()}
        return {"queue_j": self.queue_j, "policy": self.policy_state, **learned}

    @staticmethod
    def restored(saved: Nested) -> ServerState:
        learned = Reliability(**saved["reliability"]) if "reliability" in saved else None
        return ServerState(read_only(saved["queue_j"]), freeze(saved["policy"]), learned)


@dataclass(frozen=True)
class RoundRecord:
    """Everything that was known, decided and spent in one round; arrays over all devices unless said otherwise.

    Label counts may be views of the data stream's: they are valid until the next round begins.
    """

    observation: Observation
    used_by_device: LabelCounts  # (K, m) each device's part of L(X), before the round
    decision: Decision
    importance: Reals
    gain: Reals
    transmission: Transmission  # one entry per scheduled device
    energy_j: Reals  # E_k of this round
    queue_next_j: Reals
    measured: Measured = field(default_factory=Measured)  # by the evaluators
    theta: NDArray[np.float32] | None = None  # the model after the round, read-only, where there is one here
    more: Mapping[str, NDArray] = field(default_factory=dict)  # further columns of devices, as `columns` fills each
    e_report_j: Reals | None = None  # (K,) of reports, where the policy asked for them


def eligible(system: System, stored: Ints) -> Flags:
    """(K,) who may be scheduled, by data.eligible: everyone, as in the paper, or those that hold data."""
    return stored >= 1 if system.eligible == "with_data" else np.ones(system.devices, bool)


def decide(policy: Policy, state: State, observation: Observation, seed: int) -> Decision:
    """The policy's decision, with the round's own random numbers; the schedule as int64."""
    t, rng = observation.round, generator(seed, Purpose.POLICY, observation.round)
    decision = ask(policy, "select", state, observation, rng, at=t, K=len(observation.f_hz))
    chosen = np.asarray(decision.schedule).astype(np.int64, copy=False)  # an empty array is one of floats by default
    return decision if chosen is decision.schedule else replace(decision, schedule=chosen)


def transmit(policy: Policy, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
    """Who sends and at which cost, once gain, (scheduled,), is known."""
    return ask(policy, "transmit", observation, decision, gain, at=observation.round, n=len(decision.schedule))


def settle(
    policy: Policy,
    state: ServerState,
    observation: Observation,
    decision: Decision,
    transmission: Transmission,
    *,
    gain: Reals,
    used_by_device: LabelCounts,
    losses: NDArray[np.float32] | None,
    update_norm: Reals | None = None,
    reporting: Reporting | None = None,
    cut: Flags | None = None,
) -> tuple[ServerState, RoundRecord]:
    """Close the round: queues, the policy's memory, and the record of it all.

    gain: (K,), 0 for a scheduled device whose update did not arrive. used_by_device: (K, m) before the round. losses,
    update_norm: of the scheduled, None without learning. The policy sees those of the devices that got through.
    reporting: who answered before, where the policy asked. cut: (scheduled,) who was not waited for.
    """
    t, system, schedule, arrived = observation.round, observation.system, decision.schedule, transmission.arrived
    delivered = gain[schedule] > 0
    if state.reliability is not None and (transmission.sent & ~delivered).any():
        raise broken(policy, "let a device transmit whose update did not arrive")
    energy_j = np.zeros(system.devices)
    energy_j[schedule] = transmission.e_cmp_j + transmission.e_tr_j + system.download_j[schedule]
    e_report_j = None if reporting is None else read_only(reporting.energy_j(schedule))
    if e_report_j is not None:
        energy_j = energy_j + e_report_j
    outcome = Outcome(
        round=t,
        schedule=schedule,
        transmitted=arrived,
        gain=gain[schedule],
        energy_j=energy_j[schedule],
        losses=_of_senders(losses, arrived),
        observation=observation,
        update_norm=_of_senders(update_norm, arrived),
        report_j=e_report_j,
    )
    waited = slice(None) if cut is None else ~cut
    after = ServerState(
        queue_j=read_only(next_queue_j(state.queue_j, energy_j, system.energy_budget_j, system.signed_queues)),
        policy_state=ask(policy, "update", state.policy_state, outcome, at=t),
        reliability=state.reliability and state.reliability.after(t, schedule[waited], delivered[waited]),
    )
    importance = decision.importance
    if importance is None:  # the trace shows the paper's metric for policies that have none of their own
        importance = read_only(observation.importance("combined", decision.plan))
    record = RoundRecord(
        observation,
        used_by_device,
        decision,
        importance,
        read_only(gain),
        transmission,
        read_only(energy_j),
        after.queue_j,
        more={} if observation.reliability is None else {"reliability": observation.reliability},
        e_report_j=e_report_j,
    )
    return after, record


def _of_senders(values: NDArray[Real] | None, sent: Flags) -> NDArray[Real] | None:
    """What arrived: NaN in the rows of devices that did not get through."""
    if values is None or sent.all():
        return values
    return np.where(sent.reshape(-1, *[1] * (values.ndim - 1)), values, np.array(np.nan, values.dtype))
