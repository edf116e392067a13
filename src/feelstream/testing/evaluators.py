"""The contract of an evaluator: `feelstream check my_evaluator.py:group_accuracy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ints
from feelstream.evaluation.contract import EvaluationContext, Evaluator, State
from feelstream.evaluation.registry import EVALUATORS, as_evaluator
from feelstream.evaluation.running import NAME
from feelstream.evaluation.samples import Held, Predict, Predictions, TestSet
from feelstream.testing.contract import Kind, Promise, copied, frozen, read_only, same, state_problem, stored_and_read

TRAIN, TESTED, ROUNDS = 60, 40, 3


@dataclass(frozen=True)
class Case:
    """A small federation: how many samples each device holds, how many classes there are, how right the model is."""

    holds: tuple[int, ...] = (5, 0, 12, 3)
    classes: int = 4
    right: float = 0.7


@dataclass(frozen=True)
class Evaluation:
    """What an evaluator makes of a round, of the same round again, and of it after its state was stored and read."""

    given: Any
    again: Any
    resumed: Any
    before: State  # a copy from before the call, and the state itself after it
    after: State
    next: Any


def _context(case: Case, round: int) -> EvaluationContext:
    """The same whoever asks, whenever; all that is handed out is read-only."""
    rng = np.random.default_rng([round, case.classes, len(case.holds)])
    labels = {"train": np.arange(TRAIN) % case.classes, "test": np.arange(TESTED) % case.classes}
    said: dict[str, Predictions] = {}
    for part, truth in labels.items():
        wrong = (truth + rng.integers(1, max(case.classes, 2), len(truth))) % case.classes
        classes = np.where(rng.random(len(truth)) < case.right, truth, wrong)
        arrays = rng.exponential(size=len(truth)).astype(np.float32), classes.astype(np.int32), truth.astype(np.int32)
        said[part] = Predictions(*(frozen(array) for array in arrays))
    held = Held.of([rng.integers(0, TRAIN, count) for count in case.holds])

    def compute(of: str, samples: Ints | None) -> Predictions:
        return said[of] if samples is None else said[of].of(samples)

    def whole() -> tuple[float, float]:
        return float(said["test"].losses.mean()), float(said["test"].correct.mean())

    x = frozen(rng.integers(0, 255, (TESTED, 1, 2, 2)).astype(np.uint8))
    test = TestSet(frozen(labels["test"].astype(np.uint8)), lambda: x)
    predict = Predict(np.zeros(3, np.float32), compute, whole)
    return EvaluationContext(predict, test, lambda: held, round, ROUNDS, case.classes)


def _play(plugin: Any, case: Case) -> Iterator[tuple[str, Evaluation]]:
    evaluator: Evaluator = as_evaluator(plugin, "it")
    state = evaluator.init(len(case.holds), case.classes)
    for round in range(1, ROUNDS + 1):
        if problem := state_problem(state):
            yield f"round {round}", Evaluation({}, {}, {}, {}, {}, problem)
            return
        before, state = copied(state), read_only(state)
        given, after = evaluator.evaluate(_context(case, round), state)
        again, _ = evaluator.evaluate(_context(case, round), state)
        resumed, _ = evaluator.evaluate(_context(case, round), stored_and_read(before))
        yield f"round {round}", Evaluation(given, again, resumed, before, state, after)
        state = after


def _named(step: Evaluation) -> str | None:
    if not isinstance(step.given, Mapping):
        return f"it gave {type(step.given).__name__}, not numbers by name"
    for name, value in step.given.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return f"the name {name!r} is not of small letters, digits and _"
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            return f"'{name}' is {value!r:.100}"
        if np.isinf(array).any():
            return f"'{name}' is infinite; NaN says that there is no number"
    return None


def _alike(one: Any, other: Any) -> bool:
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)) or list(one) != list(other):
        return False
    arrays: list[tuple[NDArray, NDArray]] = [(np.asarray(one[n], float), np.asarray(other[n], float)) for n in one]
    return all(np.array_equal(left, right, equal_nan=True) for left, right in arrays)


def _repeatable(step: Evaluation) -> str | None:
    if not _alike(step.given, step.again):
        return f"it gave {step.given!r:.100}, then {step.again!r:.100}"
    return None if _alike(step.given, step.resumed) else "after its state was stored and read, it gave something else"


def _state(step: Evaluation) -> str | None:
    if isinstance(step.next, str):
        return step.next
    if problem := state_problem(step.next):
        return problem
    return None if same(step.before, step.after) else "it changed the state that it was handed"


EVALUATOR: Kind[Evaluation] = Kind(
    "evaluator",
    EVALUATORS,
    {
        "ordinary": Case(),
        "nobody holds anything": Case(holds=(0, 0, 0)),
        "one device": Case(holds=(7,)),
        "two classes": Case(classes=2),
        "always right": Case(right=1.0),
        "never right": Case(right=0.0),
        "fifty devices": Case(holds=(2,) * 50),
    },
    _play,
    (
        Promise("state", "its state is a dictionary of plain, finite arrays, and is never changed in place", _state),
        Promise("numbers", "it gives numbers and arrays by name, none of them infinite", _named),
        Promise("repeatable", "the same round gives the same, also after its state was stored and read", _repeatable),
    ),
)
