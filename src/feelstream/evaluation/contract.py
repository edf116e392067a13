"""Evaluators: what is measured of the model after a round, beside what the round itself cost.

An evaluator is handed the model's predictions, the test set of the round and what each device holds, and gives
named numbers, which become columns of rounds.parquet, and named arrays, which become rows of evaluations.parquet.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Frozen, Ints, Nested, read_only
from feelstream.display.quantities import Quantity
from feelstream.guard import STATE, One, Out, Pair
from feelstream.plugins import Named

Part = Literal["train", "test"]  # of a data set


@dataclass(frozen=True)
class Predictions(Frozen):
    """What a model says of m samples, in the order they were asked for.

    losses: float32 (m,), the cross-entropy of each.
    classes: int32 (m,), the most probable class of each, the first of equals.
    labels: int32 (m,), the true ones.
    """

    losses: NDArray[np.float32]
    classes: NDArray[np.int32]
    labels: NDArray[np.int32]

    @property
    def correct(self) -> NDArray[np.bool_]:
        return self.classes == self.labels

    def of(self, rows: NDArray) -> Predictions:
        """Those of some of the samples, by their places."""
        return Predictions(self.losses[rows], self.classes[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class TestSet(Frozen):
    """The samples that a round is tested on, or all of which `of` gives those of a round.

    The test set of round t is those samples whose `first` is the largest that is not above t: a later one takes the
    place of an earlier one.

    Attributes:
        labels: (M,).
        x: (M, C, H, W), the features as the data set has them; read from `source` when first asked for.
        first: int64 (M,), from which round on a sample counts; None: all do in every round.
    """

    __test__ = False  # keeps pytest from collecting it

    labels: NDArray[Any]
    source: Callable[[], NDArray[Any]] = field(repr=False)
    first: Ints | None = field(default=None, repr=False)

    @cached_property
    def x(self) -> NDArray[Any]:
        return read_only(self.source())

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, round: int) -> tuple[TestSet, Ints | None]:
        """That of a round, and which samples of the whole these are; None: all."""
        if self.first is None:
            return self, None
        rows = np.flatnonzero(self.first == self.first[self.first <= round].max())
        return TestSet(self.labels[rows], lambda: self.x[rows]), rows


@dataclass(frozen=True, eq=False, repr=False)
class Held(Sequence[Ints]):
    """What each device holds: held[k] is S_k(t) as numbers of training samples; a number may repeat.

    Attributes:
        gather: Gives the samples of each device; called when they are first asked for.
        overlaps: Whether several devices may hold the same sample.

    >>> held = Held(lambda: [np.array([4, 2]), np.array([], np.int64), np.array([2])])
    >>> held[0].tolist(), held.counts.tolist(), held.mean(np.array([1.0, 2.0, 5.0])).tolist()
    ([4, 2], [2, 0, 1], [1.5, nan, 5.0])
    """

    gather: Callable[[], Iterable[Ints]]
    overlaps: bool = False

    @cached_property
    def _each(self) -> list[Ints]:
        return [read_only(samples) for samples in self.gather()]

    @cached_property
    def samples(self) -> Ints:
        """int64 (Σ|S_k|,), those of device 0, then those of device 1, …"""
        return read_only(np.concatenate([np.empty(0, np.int64), *self._each]))

    @cached_property
    def counts(self) -> Ints:
        """int64 (K,), |S_k(t)|."""
        return read_only(np.array([len(samples) for samples in self._each], np.int64))

    @property
    def distinct(self) -> int:
        """|∪ S_k(t)|; where devices share no sample, Σ|S_k(t)|."""
        return len(np.unique(self.samples)) if self.overlaps else len(self.samples)

    def __len__(self) -> int:
        return len(self._each)

    def __getitem__(self, device: Any) -> Any:
        return self._each[device]

    def mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """(K,) the mean of each device's part of values, one per entry of `samples`; NaN where it holds nothing."""
        sums = np.bincount(np.repeat(np.arange(len(self)), self.counts), values.astype(np.float64), len(self))
        return np.divide(sums, self.counts, out=np.full(len(self), np.nan), where=self.counts > 0)


class Predict:
    """What the model of a round says of samples: `predict("test")`, `predict("train", numbers)`.

    A training sample is computed once in a round, however many devices hold it and whoever asks; so is the test set.
    `theta` is the model itself, float32 (d,), read-only.
    """

    def __init__(self, theta: NDArray[np.float32], engine: Any, test_rows: Ints | None = None) -> None:
        """engine: a learner, or what predicts and evaluates like one. test_rows: those of this round; None: all."""
        self.theta = read_only(theta)
        self._engine, self._test_rows = engine, test_rows
        losses, classes = np.empty(0, np.float32), np.empty(0, np.int32)
        # Numbers of training samples, ascending, and what is known of them.
        self._train = np.empty(0, np.int64), Predictions(losses, classes, classes)

    def __call__(self, of: Part = "test", samples: NDArray[Any] | None = None) -> Predictions:
        """Loss and class of each of these samples, by number; None: of all. Numbers of the test set are of this
        round's test set.
        """
        if of == "test":
            return self._test if samples is None else self._test.of(np.asarray(samples))
        if of != "train":
            raise ValueError(f"predict knows 'train' and 'test', not {of!r}")
        if samples is None:
            return self._engine.predict(self.theta, "train", None)
        return self._of_train(np.asarray(samples, np.int64))

    @cached_property
    def _test(self) -> Predictions:
        return self._engine.predict(self.theta, "test", self._test_rows)

    def _of_train(self, samples: Ints) -> Predictions:
        wanted, place = np.unique(samples, return_inverse=True)
        known, found = self._train
        new = np.setdiff1d(wanted, known, assume_unique=True)
        if len(new):
            parts = found, self._engine.predict(self.theta, "train", new)
            joined = (np.concatenate([getattr(p, name) for p in parts]) for name in ("losses", "classes", "labels"))
            order = np.argsort(np.concatenate([known, new]))
            known, found = np.concatenate([known, new])[order], Predictions(*joined).of(order)
            self._train = known, found
        return found.of(np.searchsorted(known, wanted)[place.reshape(samples.shape)])

    def score(self) -> tuple[float, float]:
        """(mean loss, accuracy) on the test set of the round."""
        if self._test_rows is None:  # the engine's own sum, which needs no prediction by sample
            found = self._engine.evaluate(self.theta)
            return found.loss, found.accuracy
        return float(self._test.losses.mean(dtype=np.float64)), float(self._test.correct.mean())


NAME = re.compile(r"[a-z][a-z0-9_]*")
Values = Mapping[str, Any]  # a number or an array by name
State = Nested  # arrays by name


@dataclass(frozen=True)
class EvaluationContext:
    """What an evaluator may know after a round.

    Attributes:
        predict: The model θ(t+1), as a function of samples.
        test: The test set of this round.
        held: S_k(t), what the devices hold.
        round: t, from 1.
        rounds: How many there are in all.
        classes: How many there are.
    """

    predict: Predict
    test: TestSet
    held: Held
    round: int
    rounds: int
    classes: int

    @property
    def last(self) -> bool:
        return self.round == self.rounds


def has_names(evaluator: Evaluator, found: tuple[Values, State], *given: Any) -> str | None:
    """What it gives are numbers, or arrays of them, by name; NaN where there is none."""
    for name, value in found[0].items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return f"must give names of small letters, digits and _, not {name!r:.60}"
        try:
            numbers = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            return f"must give '{name}' as a number or an array of numbers, not {value!r:.60}"
        if np.isinf(numbers).any():
            return f"must give '{name}' as finite numbers, or NaN where there is none"
    return None


class Evaluator(Named, ABC):
    """Base of evaluators that remember something between rounds, or say how their numbers are shown.

    All memory is the state that `evaluate` is handed and gives back: a run that is stopped and goes on keeps it.

    Attributes:
        quantities: How its numbers are shown; a number not named here is shown too.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = ()
    plugin_field: ClassVar[str] = "learning.evaluators"
    contract: ClassVar[Mapping[str, Out]] = {"init": Out(STATE), "evaluate": Out(Pair(One(Mapping), STATE), has_names)}

    def init(self, devices: int, classes: int) -> State:
        """The state before the first round."""
        return {}

    @abstractmethod
    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        """Numbers (NaN: there is none) and arrays by name, and the state for the next evaluation."""


Function = Callable[[Predict, TestSet, Held, int], Values]


class FunctionEvaluator(Evaluator):
    """A user's function of (predict, test, held, round) as an evaluator without memory."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.quantities = getattr(function, "quantities", ())  # pyright: ignore[reportAttributeAccessIssue]

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        return self.function(context.predict, context.test, context.held, context.round), state


def evaluator(*quantities: Quantity) -> Callable[[Function], Function]:
    """Say how the numbers of a function of yours are shown.

    Args:
        *quantities: One for each number, by its name.

    >>> import numpy as np
    >>> @evaluator(Quantity("spread", "spread", "%", 100.0, better="lower"))
    ... def spread(predict, test, held, round):
    ...     return {"spread": float(np.nanstd(held.mean(predict("train", held.samples).correct)))}
    """

    def stated(function: Function) -> Function:
        function.quantities = quantities  # pyright: ignore[reportFunctionMemberAccess]
        return function

    return stated
