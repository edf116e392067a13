"""The contract of local training: `feelstream check my_training.py:Mine --kind local_training`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feelstream.arrays import Nested
from feelstream.learning.contract import Training
from feelstream.learning.local import LOCAL_TRAININGS, LocalTraining
from feelstream.learning.local.base import Cohort
from feelstream.testing.contract import Kind, Promise, frozen, read_only, same, state_problem, stored_and_read
from feelstream.testing.learning_cases import Case, learner


@dataclass(frozen=True)
class Round:
    """What a cohort brought back; the same a second time, from a stored state, and of its first device alone."""

    cohort: Cohort
    parameters: int
    training: Training
    again: Training
    from_store: Training
    alone: Training
    after: Nested
    state: Nested | None = None  # after the round; None until the training is known to be lawful
    state_from_store: Nested | None = None
    remembers: bool = True


def _play(local: LocalTraining, case: Case) -> Iterator[tuple[str, Round]]:
    engine = learner(local.needs_torch)
    theta, state = engine.init(0), {}
    for t in range(1, case.rounds + 1):
        stored, cohort = stored_and_read(state), case.cohort(t, frozen(case.ids(t)))
        first = case.cohort(t, cohort.ids[:1])
        (training, after), (again, _), (from_store, after_store), (alone, _) = (
            local.train(engine, frozen(theta.copy()), who, read_only(what))
            for who, what in ((cohort, state), (cohort, state), (cohort, stored), (first, state))
        )
        step = Round(cohort, len(theta), training, again, from_store, alone, after, remembers=local.remembers)
        yield f"round {t}", step
        sent = frozen(case.sent(t))
        state, restored = (
            local.update(read_only(before), now, cohort, sent)
            for before, now in ((state, after), (stored, after_store))
        )
        yield f"round {t}", replace(step, state=state, state_from_store=restored)
        theta = (theta + training.updates[sent].sum(axis=0) / case.size).astype(np.float32)


def _updates(step: Round) -> str | None:
    found, wanted = step.training.updates, (len(step.cohort.ids), step.parameters)
    if found.dtype != np.float32 or found.shape != wanted:
        return f"the updates are {found.dtype} of shape {found.shape}, not float32 of {wanted}"
    return None if np.isfinite(found).all() else "an update is not a finite number"


def _losses(step: Round) -> str | None:
    found, n = step.training.losses, len(step.cohort.ids)
    if found.ndim != 3 or len(found) != n or np.isinf(found).any():
        return f"the losses are of shape {found.shape}, not ({n}, steps, batch) of finite numbers or NaN"
    return None


def _repeatable(step: Round) -> str | None:
    return None if _same(step.training, step.again) else "the second time the updates or losses were others"


def _alone(step: Round) -> str | None:
    same_update = np.array_equal(step.training.updates[:1], step.alone.updates)
    return None if same_update else f"device {step.cohort.ids[0]} has another update when it trains alone"


def _checkpoint(step: Round) -> str | None:
    if not _same(step.training, step.from_store):
        return "from a stored state the updates or losses are others"
    if step.state is None or step.state_from_store is None:
        return None
    return None if same(step.state, step.state_from_store) else "its next state differs after a stored one"


def _state(step: Round) -> str | None:
    if step.state is None:
        return state_problem(step.after)
    if step.state and not step.remembers:
        return "`remembers` is false, and there is a state"
    return state_problem(step.state)


def _same(one: Training, other: Training) -> bool:
    return np.array_equal(one.updates, other.updates) and np.array_equal(one.losses, other.losses, equal_nan=True)


LOCAL_TRAINING: Kind[Round] = Kind(
    "local_training",
    LOCAL_TRAININGS,
    {
        "ordinary": Case(),
        "one device": Case(devices=1, size=1),
        "one sample each": Case(held=(1,)),
        "every update is lost": Case(lost=1.1),
        "many rounds": Case(rounds=40),
    },
    _play,
    (
        Promise("updates", "it gives a finite float32 update for every device that trains", _updates),
        Promise("losses", "its losses are of the samples of each step, NaN where there is none", _losses),
        Promise("state", "its state is nested dictionaries of plain, finite arrays, or empty", _state),
        Promise("repeatable", "the same devices, data and state give the same updates", _repeatable),
        Promise("alone", "what a device does depends on no other device of the round", _alone),
        Promise("checkpoint", "it goes on the same from a stored state", _checkpoint),
    ),
)
