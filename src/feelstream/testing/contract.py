"""The contract of a policy as a test that anyone can run on their own: `feelstream check-policy my_policy.py:Mine`.

A policy is run through small rounds that are awkward in one way each. Whatever it is handed, the observation and
its own state, is read-only, so that a policy that writes where it must not is caught in the act.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.testing.trials import CASES, Case

CHECKS = {
    "settings": "its settings survive being stored and read",
    "runs": "it gets through every case without an error, and writes to nothing that it is handed",
    "feasible": "it schedules feasible devices only, each once",
    "plan": "its plan is the observation's for the planned size, and not smaller than the schedule",
    "figures": "its importance and scores are one finite number per device",
    "repeatable": "the same state, observation and random numbers give the same schedule",
    "global random": "it leaves the global random numbers alone",
    "transmission": "it shares out no more than the band, and only to scheduled devices, at a finite cost",
    "state": "its state is a dictionary of plain, finite arrays",
    "checkpoint": "it goes on the same from a stored state",
}


@dataclass(frozen=True)
class Result:
    """One promise of the contract: kept, or the first case in which it was broken and how."""

    name: str
    meaning: str
    problem: str | None

    @property
    def ok(self) -> bool:
        return self.problem is None


class _PromiseError(Exception):
    """A promise was not kept; `check` names it."""

    def __init__(self, check: str, problem: str) -> None:
        super().__init__(problem)
        self.check, self.problem = check, problem


def check_policy(policy: Policy) -> list[Result]:
    """Run a policy through all cases; one result per promise, in the order of CHECKS."""
    problems: dict[str, str] = {}
    for name, case in CASES.items():
        try:
            _play(policy, case)
        except _PromiseError as broken:
            problems.setdefault(broken.check, f"case '{name}', {broken.problem}")
    try:
        _check_settings(policy)
    except _PromiseError as broken:
        problems["settings"] = broken.problem
    return [Result(check, meaning, problems.get(check)) for check, meaning in CHECKS.items()]


def _check_settings(policy: Policy) -> None:
    with _runs("its settings", check="settings"):
        fields = json.loads(json.dumps(policy.model_dump()))
        fields.pop(policy.tag_field)
        again = type(policy).model_validate(fields)
    if again != policy:
        raise _PromiseError("settings", f"stored and read again they are {again!r}")


def _play(policy: Policy, case: Case) -> None:
    """Run one case from the first round to the last, and check everything on the way."""
    with _runs("before the first round"):
        policy = type(policy).model_validate({**dict(policy), "size": case.size})
        state = policy.start(case.system, np.random.default_rng(0))
    _check_state(state, "before the first round")
    for observation, gain, losses in case.rounds():
        when = f"round {observation.round}"
        state = _read_only(state)
        decision = _select(policy, state, observation, when)
        _check_decision(decision, observation, when)
        stored = _stored_and_read(state)
        for other, check in ((state, "repeatable"), (stored, "checkpoint")):
            again = _select(policy, _read_only(other), observation, when)
            if not np.array_equal(again.schedule, decision.schedule):
                was, now = decision.schedule.tolist(), again.schedule.tolist()
                raise _PromiseError(check, f"{when}: scheduled {was}, and the second time {now}")
        outcome = _transmit(policy, observation, decision, gain, losses, when)
        with _runs(when):
            state, restored = policy.update(state, outcome), policy.update(_read_only(stored), outcome)
        _check_state(state, when)
        if state.keys() != restored.keys() or any(not np.array_equal(state[k], restored[k]) for k in state):
            raise _PromiseError("checkpoint", f"{when}: its next state differs after a stored one")


def _select(policy: Policy, state: State, observation: Observation, when: str) -> Decision:
    before = _global_random()
    with _runs(when):
        decision = policy.select(state, observation, np.random.default_rng(observation.round))
        if not isinstance(decision, Decision):
            raise TypeError(f"select must return a Decision, not {type(decision).__name__}")
        decision = replace(decision, schedule=np.asarray(decision.schedule))
        if not decision.schedule.size:
            decision = replace(decision, schedule=decision.schedule.astype(np.int64))  # of floats by default
    if _global_random() != before:
        raise _PromiseError("global random", f"{when}: use the generator that select is given")
    return decision


def _global_random() -> tuple[object, ...]:
    numpys = np.random.get_state(legacy=False)  # noqa: NPY002
    return numpys["state"]["key"].tobytes(), numpys["state"]["pos"], random.getstate()


def _check_decision(decision: Decision, observation: Observation, when: str) -> None:
    devices, chosen, plan = observation.system.devices, np.asarray(decision.schedule), decision.plan
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise _PromiseError("feasible", f"{when}: the schedule must be a one-dimensional array of device numbers")
    expected = observation.plan(plan.n)
    if not (0 <= plan.n <= devices and len(chosen) <= plan.n):
        raise _PromiseError("plan", f"{when}: planned for {plan.n} and scheduled {len(chosen)} of {devices} devices")
    if not (np.array_equal(plan.feasible, expected.feasible) and np.array_equal(plan.energy_j, expected.energy_j)):
        raise _PromiseError("plan", f"{when}: the plan is not observation.plan({plan.n})")
    inside = bool(((chosen >= 0) & (chosen < devices)).all()) and len(np.unique(chosen)) == len(chosen)
    if not inside or not expected.feasible[chosen].all():
        raise _PromiseError(
            "feasible", f"{when}: scheduled {chosen.tolist()} of {np.flatnonzero(expected.feasible).tolist()}"
        )
    for name, figure in (("importance", decision.importance), ("score", decision.score)):
        if figure is not None and (figure.shape != (devices,) or not np.isfinite(figure[expected.feasible]).all()):
            raise _PromiseError("figures", f"{when}: {name} is {figure!r}")


def _transmit(
    policy: Policy, observation: Observation, decision: Decision, gain: np.ndarray, losses: bool, when: str
) -> Outcome:
    ids = decision.schedule
    with _runs(when):
        spent = policy.transmit(observation, decision, gain[ids])
    energy, share = spent.e_cmp_j + spent.e_tr_j, spent.bandwidth_share
    lawful = spent.sent.shape == ids.shape and share.sum() <= 1 + 1e-9 and (share[~spent.sent] == 0).all()
    if not (lawful and np.isfinite(energy).all() and (energy >= 0).all() and (share[spent.sent] > 0).all()):
        raise _PromiseError("transmission", f"{when}: shares {share.tolist()}, energies {energy.tolist()} J")
    drawn = np.random.default_rng(observation.round).random((len(ids), 2, 3)).astype(np.float32)
    return Outcome(observation.round, ids, spent.sent, gain[ids], energy, drawn if losses else None, observation)


def _check_state(state: State, when: str) -> None:
    if not isinstance(state, dict):
        raise _PromiseError("state", f"{when}: it is {type(state).__name__}, not a dictionary")
    for name, array in state.items():
        plain = isinstance(name, str) and isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
        if not plain or not np.isfinite(array).all():
            raise _PromiseError("state", f"{when}: '{name}' is {array!r}")


def _read_only(state: State) -> State:
    copies = {name: array.copy() for name, array in state.items()}
    for array in copies.values():
        array.flags.writeable = False
    return copies


def _stored_and_read(state: State) -> State:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **state)
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


@contextmanager
def _runs(when: str, check: str = "runs") -> Iterator[None]:
    """Whatever a policy raises is a finding, not a crash of the check."""
    try:
        yield
    except Exception as problem:
        raise _PromiseError(check, f"{when}: {type(problem).__name__}: {problem}") from problem
