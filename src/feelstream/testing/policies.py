"""The contract of a policy: `feelstream check my_policy.py:Mine`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feelstream.arrays import Flags, Reals
from feelstream.model.admission import Transmission
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.policies.lawful import broken_law
from feelstream.testing.contract import Kind, Promise, read_only, same, state_problem, stored_and_read
from feelstream.testing.trials import CASES, Case


@dataclass(frozen=True)
class Scheduled:
    """A round: what was decided, also the second time and from a stored state, and what came of it."""

    policy: Policy
    observation: Observation
    gain: Reals
    decision: Decision
    again: Decision
    from_store: Decision
    spent: Transmission | None = None  # None until it is known that the decision is lawful
    state: State | None = None
    state_from_store: State | None = None


def _play(policy: Policy, case: Case) -> Iterator[tuple[str, Scheduled]]:
    policy = type(policy).model_validate({**dict(policy), "size": case.size})
    state = policy.start(case.system, np.random.default_rng(0))
    for observation, gain, losses in case.rounds():
        when = f"round {observation.round}"
        stored = stored_and_read(state, nested=False)
        observation = _reported(policy, read_only(state), observation, gain)
        decision, again, from_store = (_select(policy, read_only(each), observation) for each in (state, state, stored))
        played = Scheduled(policy, observation, gain, decision, again, from_store)
        yield when, played
        spent = policy.transmit(observation, played.decision, gain[played.decision.schedule])
        yield when, replace(played, spent=spent)
        outcome = _outcome(observation, played.decision, spent, gain, losses)
        state, restored = policy.update(read_only(state), outcome), policy.update(read_only(stored), outcome)
        yield when, replace(played, spent=spent, state=state, state_from_store=restored)


def _reported(policy: Policy, state: State, observation: Observation, gain: Reals) -> Observation:
    """The same with what the policy needs, of four in five of those that it asks and that hold data."""
    if not policy.needs:
        return observation
    drawn = np.random.default_rng([9, observation.round])
    asked = policy.asks(state, observation, drawn)
    if not isinstance(asked, np.ndarray) or asked.shape != gain.shape or asked.dtype != bool:
        raise TypeError(f"asks must return one truth value for each of {len(gain)} devices")
    silent = ~(asked & observation.available & (observation.stored > 0) & (drawn.random(len(gain)) < 0.8))
    usual = {"gain": gain, "embedding": drawn.normal(size=(len(gain), 4))}
    reports = {need: np.array(usual.get(need, drawn.exponential(size=len(gain)))) for need in sorted(policy.needs)}
    for values in reports.values():
        values[silent] = np.nan
    return replace(observation, reports=reports)


def _select(policy: Policy, state: State, observation: Observation) -> Decision:
    decision = policy.select(state, observation, np.random.default_rng(observation.round))
    if not isinstance(decision, Decision):
        raise TypeError(f"select must return a Decision, not {type(decision).__name__}")
    chosen = np.asarray(decision.schedule)
    return replace(decision, schedule=chosen if chosen.size else chosen.astype(np.int64))  # of floats by default


def _outcome(observation: Observation, decision: Decision, spent: Transmission, gain: Reals, losses: bool) -> Outcome:
    ids = decision.schedule
    drawn = np.random.default_rng(observation.round).random((len(ids), 2, 3)).astype(np.float32)
    energy_j = spent.e_cmp_j + spent.e_tr_j
    return Outcome(observation.round, ids, spent.sent, gain[ids], energy_j, drawn if losses else None, observation)


def _feasible(step: Scheduled) -> str | None:
    chosen, devices = step.decision.schedule, step.observation.system.devices
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        return "the schedule must be a one-dimensional array of device numbers"
    feasible = _feasible_set(step)
    inside = bool(((chosen >= 0) & (chosen < devices)).all()) and len(np.unique(chosen)) == len(chosen)
    if inside and feasible[chosen].all():
        return None
    return f"scheduled {chosen.tolist()} of {np.flatnonzero(feasible).tolist()}"


def _feasible_set(step: Scheduled) -> Flags:
    """Whom it may schedule: who is in time at the planned rate, or at all where it splits the band itself."""
    known = step.observation
    if step.policy.equal_shares:
        return known.plan(step.decision.plan.n).feasible
    return known.available & (known.compute_time_s < known.system.round_s)


def _plan(step: Scheduled) -> str | None:
    plan, chosen, devices = step.decision.plan, step.decision.schedule, step.observation.system.devices
    expected = step.observation.plan(plan.n)
    if not (0 <= plan.n <= devices and chosen.size <= plan.n):
        return f"planned for {plan.n} and scheduled {chosen.size} of {devices} devices"
    own = plan.feasible & ~_feasible_set(step)
    right = not own.any() and np.array_equal(plan.energy_j, expected.energy_j)
    if step.policy.equal_shares:
        right = right and np.array_equal(plan.feasible, expected.feasible)
    return None if right else f"the plan is not observation.plan({plan.n})"


def _figures(step: Scheduled) -> str | None:
    feasible = step.decision.plan.feasible
    for name, figure in (("importance", step.decision.importance), ("score", step.decision.score)):
        if figure is not None and (figure.shape != feasible.shape or not np.isfinite(figure[feasible]).all()):
            return f"{name} is {figure!r}"
    return None


def _repeatable(step: Scheduled) -> str | None:
    return _same_schedule(step.decision, step.again)


def _checkpoint(step: Scheduled) -> str | None:
    if step.state is not None and step.state_from_store is not None and not same(step.state, step.state_from_store):
        return "its next state differs after a stored one"
    return _same_schedule(step.decision, step.from_store)


def _same_schedule(first: Decision, second: Decision) -> str | None:
    if np.array_equal(first.schedule, second.schedule):
        return None
    return f"scheduled {first.schedule.tolist()}, and the second time {second.schedule.tolist()}"


def _transmission(step: Scheduled) -> str | None:
    if step.spent is None:
        return None
    spent, share = step.spent, step.spent.bandwidth_share
    energy = spent.e_cmp_j + spent.e_tr_j
    lawful = spent.sent.shape == step.decision.schedule.shape
    lawful = lawful and share.sum() <= 1 + 1e-9 and bool((share[~spent.sent] == 0).all())
    if lawful and np.isfinite(energy).all() and (energy >= 0).all() and (share[spent.sent] > 0).all():
        return broken_law(step.observation, step.decision, spent, step.gain[step.decision.schedule])
    return f"shares {share.tolist()}, energies {energy.tolist()} J"


def _state(step: Scheduled) -> str | None:
    return None if step.spent is None or step.state_from_store is None else state_problem(step.state, nested=False)


POLICY: Kind[Scheduled] = Kind(
    "policy",
    POLICIES,
    CASES,
    _play,
    (
        Promise("state", "its state is a dictionary of plain, finite arrays", _state),
        Promise(
            "plan",
            "its plan is the observation's for the planned size, and not smaller than the schedule",
            _plan,
        ),
        Promise("feasible", "it schedules feasible devices only, each once", _feasible),
        Promise("figures", "its importance and scores are one finite number per device", _figures),
        Promise(
            "repeatable",
            "the same state, observation and random numbers give the same schedule",
            _repeatable,
        ),
        Promise(
            "transmission",
            "it shares out no more than the band, and only to scheduled devices, at a finite cost",
            _transmission,
        ),
        Promise("checkpoint", "it goes on the same from a stored state", _checkpoint),
    ),
)
