"""A policy's methods, guarded: policies may be users' own, and whatever one of them does wrong becomes a PolicyError.

Each function here calls the method of the same name and checks what it returns against the contract of base.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Reals, frozen, read_only
from feelstream.errors import FeelstreamError
from feelstream.guard import guarded
from feelstream.model.admission import Transmission
from feelstream.model.system import System
from feelstream.plugins import MOST
from feelstream.policies.base import Decision, Observation, Outcome, Policy, RoundPlan, State
from feelstream.policies.lawful import broken_law
from feelstream.policies.ranking import Ranking


class PolicyError(FeelstreamError):
    """A policy broke its contract."""


def start(policy: Policy, system: System, rng: np.random.Generator) -> State:
    """The policy's state before the first round."""
    with guarded(broken, policy, at=0):
        state = policy.start(system, rng)
    return _checked_state(policy, state, "init")


def asks(policy: Policy, state: State, observation: Observation, rng: np.random.Generator) -> Flags:
    """(K,) whom the policy asks for reports, of those that are available."""
    when = f"in round {observation.round}"
    with guarded(broken, policy, at=observation.round):
        asked = policy.asks(frozen(state), observation, rng)
    if not isinstance(asked, np.ndarray) or asked.shape != observation.available.shape or asked.dtype != bool:
        raise broken(policy, f"must say of each of {observation.system.devices} devices whether it asks it, {when}")
    return asked & observation.available


def select(policy: Policy, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
    """The policy's decision; its schedule as int64."""
    system, when = observation.system, f"in round {observation.round}"
    with guarded(broken, policy, at=observation.round):
        decision = policy.select(frozen(state), observation, rng)
    if not isinstance(decision, Decision):
        raise broken(policy, f"must return a feelstream.Decision from select, not {type(decision).__name__}")
    chosen = np.asarray(decision.schedule)
    if not are_devices(chosen, system.devices):
        numbers = f"a list of different device numbers from 0 to {system.devices - 1}"
        raise broken(policy, f"must schedule {numbers}, not {chosen.tolist()!r:.100}, {when}")
    chosen = chosen.astype(np.int64, copy=False)  # an empty array is one of floats by default
    _check_plan(policy, decision.plan, observation)
    if len(chosen) > decision.plan.n:
        raise broken(policy, f"planned for {decision.plan.n} devices and scheduled {len(chosen)} {when}")
    if decision.f_hz is not None and not _are_frequencies(decision.f_hz, observation.f_hz[chosen]):
        raise broken(
            policy, f"must choose one frequency above 0 per scheduled device, at most its own f_hz, or None, {when}"
        )
    if not (observation.available[chosen] & _in_time(policy, observation, decision, chosen)).all():
        raise broken(policy, f"scheduled a device that is not feasible {when}")
    if decision.importance is not None and not _are_important(decision.importance, decision.plan.feasible):
        most = f"of a magnitude of at most {MOST:g}"
        raise broken(policy, f"must give one finite importance per feasible device, {most}, or None, {when}")
    score = decision.score
    if score is not None and not _are_scores(score, decision.plan.feasible):
        raise broken(policy, f"must give each feasible device a finite score or NaN, or None for all, {when}")
    if decision.probability is not None and not _are_probabilities(decision.probability, chosen, system.devices):
        raise broken(
            policy,
            f"must give each of {system.devices} devices a probability from 0 to 1, above 0 for those that it "
            f"scheduled, or None, {when}",
        )
    return decision if chosen is decision.schedule else replace(decision, schedule=chosen)


def transmit(policy: Policy, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
    """Who sends and at which cost, once gain, (scheduled,), is known."""
    when = f"in round {observation.round}"
    with guarded(broken, policy, at=observation.round):
        spent = policy.transmit(observation, decision, read_only(gain))
    if not isinstance(spent, Transmission):
        raise broken(policy, f"must return a Transmission from transmit, not {type(spent).__name__}")
    n, share = len(decision.schedule), spent.bandwidth_share
    figures = (share, spent.power_w, spent.t_cmp_s, spent.t_tr_s, spent.e_cmp_j, spent.e_tr_j)
    lawful = isinstance(spent.sent, np.ndarray) and spent.sent.shape == (n,) and spent.sent.dtype == bool
    lawful = lawful and all(_are_reals(values, n) and bool((values >= 0).all()) for values in figures)
    if not lawful or share.sum() > 1 + 1e-9 or share[~spent.sent].any() or not (share[spent.sent] > 0).all():
        raise broken(
            policy,
            f"must give each of the {n} scheduled devices finite, non-negative times and energies and, if it sends, "
            f"a share of the band, at most 1 in all, {when}",
        )
    if not policy.equal_shares and (law := broken_law(observation, decision, spent, gain)):
        raise broken(policy, f"returned a transmission that cannot be {when}: {law}")
    return spent


def _in_time(policy: Policy, observation: Observation, decision: Decision, chosen: NDArray) -> Flags:
    """(scheduled,) who meets the deadline: at the planned rate, or at all where the policy splits the band itself."""
    needed_s = observation.compute_time_s[chosen]
    if decision.f_hz is not None:
        needed_s = observation.system.device_cycles[chosen] / decision.f_hz
    if not policy.equal_shares:
        return needed_s < observation.system.time_of(chosen)
    sending_s = np.broadcast_to(decision.plan.transmit_time_s, observation.system.devices)[chosen]
    return needed_s + sending_s <= observation.system.time_of(chosen)


def _are_frequencies(f_hz: object, ceiling_hz: Reals) -> bool:
    if not _are_reals(f_hz, len(ceiling_hz)):
        return False
    return bool(((f_hz > 0) & (f_hz <= ceiling_hz * (1 + 1e-9))).all())  # pyright: ignore[reportOperatorIssue]


def most_power_w(policy: Policy, system: System, beta: Reals) -> Reals:
    """(K,) the power that no device exceeds in a round with these mean gains."""
    with guarded(broken, policy):
        power_w = policy.most_power_w(system, beta)
    if not _are_reals(power_w, system.devices) or not (power_w >= 0).all():
        raise broken(policy, "must give one finite, non-negative power per device from most_power_w")
    return power_w


def update(policy: Policy, state: State, outcome: Outcome) -> State:
    """The policy's state after a round."""
    with guarded(broken, policy, at=outcome.round):
        after = policy.update(frozen(state), outcome)
    return _checked_state(policy, after, "update")


def ranking(policy: Policy, state: State, observation: Observation, decision: Decision, device: int) -> Ranking | None:
    """What a device was ranked by; None where the policy has no terms, and where they do not fit its decision."""
    with guarded(broken, policy, at=observation.round):
        found = policy.ranking(frozen(state), observation, decision, device)
    if found is None:
        return None
    fits = isinstance(found, Ranking) and len(found.terms) > 0
    if not fits or not all(np.shape(term.values) == observation.f_hz.shape for term in found.terms):
        raise broken(
            policy, f"must rank by terms with one number per device, or return None, in round {observation.round}"
        )
    return found


def are_devices(chosen: NDArray, devices: int) -> bool:
    """Whether these are different numbers from 0 to devices − 1."""
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        return False
    return bool(((chosen >= 0) & (chosen < devices)).all()) and len(np.unique(chosen)) == len(chosen)


def broken(policy: Policy, what: str) -> PolicyError:
    return PolicyError(f"policy '{policy.plugin_name()}' {what}")


def _are_reals(values: object, length: int, where: Flags | None = None) -> bool:
    """Whether this is an array of so many numbers, finite (where asked for)."""
    if not isinstance(values, np.ndarray) or values.shape != (length,) or values.dtype.kind not in "fiu":
        return False
    return bool(np.isfinite(values if where is None else values[where]).all())


def _are_important(values: object, feasible: Flags) -> bool:
    """Whether these are importances: products and sums of a few of them are finite too."""
    if not _are_reals(values, len(feasible), where=feasible):
        return False
    return bool((np.abs(np.asarray(values, float)[feasible]) <= MOST).all())


def _are_probabilities(values: Reals, chosen: NDArray, devices: int) -> bool:
    return _are_reals(values, devices) and bool(((values >= 0) & (values <= 1)).all() and (values[chosen] > 0).all())


def _are_scores(values: object, feasible: Flags) -> bool:
    """Whether this is an array of one number per device, finite or NaN where feasible."""
    if not isinstance(values, np.ndarray) or values.shape != feasible.shape or values.dtype.kind not in "fiu":
        return False
    return not np.isinf(values[feasible]).any()


def _check_plan(policy: Policy, plan: object, observation: Observation) -> None:
    """The arrays must fit and the time be that of n; that feasible and energy_j are right is for `verify` to find."""
    devices = observation.system.devices
    right = (
        isinstance(plan, RoundPlan)
        and isinstance(plan.n, int | np.integer)
        and 0 <= plan.n <= devices
        and np.array_equal(plan.transmit_time_s, observation.system.planned_time_s(max(int(plan.n), 1)))
        and isinstance(plan.feasible, np.ndarray)
        and plan.feasible.shape == (devices,)
        and plan.feasible.dtype == bool
        and _are_reals(plan.amount, devices)
        and _are_reals(plan.energy_j, devices, where=plan.feasible)
    )
    if not right:
        raise broken(policy, f"must decide with a plan from observation.plan(n) in round {observation.round}")


def _checked_state(policy: Policy, state: object, method: str) -> State:
    plain = isinstance(state, dict) and all(
        isinstance(name, str) and isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
        for name, array in state.items()
    )
    if not plain:
        raise broken(policy, f"must return a dictionary of plain arrays from {method}")
    return state  # pyright: ignore[reportReturnType]
