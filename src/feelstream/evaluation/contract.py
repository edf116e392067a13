"""Evaluators: what is measured of the model after a round, beside what the round itself cost.

An evaluator is handed the model's word on samples, the test set of the round and what each device holds, and gives
named numbers, which become columns of rounds.parquet, and named arrays, which become rows of evaluations.parquet.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Frozen, Ints, Nested, read_only
from feelstream.guard import STATE, One, Out, Pair
from feelstream.quantities import Quantity

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
    """The samples that a round is tested on.

    Attributes:
        labels: (M,).
        x: (M, C, H, W), the features as the data set has them; read from `source` when first asked for.
    """

    __test__ = False  # no test of pytest's

    labels: NDArray[Any]
    source: Callable[[], NDArray[Any]] = field(repr=False)

    @cached_property
    def x(self) -> NDArray[Any]:
        return read_only(self.source())

    def __len__(self) -> int:
        return len(self.labels)


def _no_features() -> NDArray[Any]:
    return np.empty((0, 1, 1, 1), np.uint8)


@dataclass(frozen=True, eq=False)
class TestRounds(Frozen):
    """The test set of every round: all of it in each, or by `first`, int64 (M,), which says when samples come in.

    The test set of round t is those samples whose `first` is the largest that is not above t: a later one takes the
    place of an earlier one.
    """

    __test__ = False  # no test of pytest's

    labels: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.uint8), repr=False)
    source: Callable[[], NDArray[Any]] = field(default=_no_features, repr=False)
    first: Ints | None = field(default=None, repr=False)

    def rows(self, round: int) -> Ints | None:
        """Which samples of the whole test set are those of this round; None: all."""
        if self.first is None:
            return None
        return np.flatnonzero(self.first == self.first[self.first <= round].max())

    def of(self, round: int) -> TestSet:
        rows = self.rows(round)
        if rows is None:
            return TestSet(self.labels, self.source)
        return TestSet(self.labels[rows], lambda: self.source()[rows])


@dataclass(frozen=True, eq=False)
class Held(Frozen, Sequence[Ints]):
    """What each device holds: held[k] is S_k(t) as numbers of training samples; a number may repeat.

    Attributes:
        samples: int64 (Σ|S_k|,), those of device 0, then those of device 1, …
        counts: int64 (K,), |S_k(t)|.

    >>> held = Held.of([np.array([4, 2]), np.array([], np.int64), np.array([2])])
    >>> held[0].tolist(), held.counts.tolist(), held.mean(np.array([1.0, 2.0, 5.0])).tolist()
    ([4, 2], [2, 0, 1], [1.5, nan, 5.0])
    """

    samples: Ints
    counts: Ints

    @classmethod
    def of(cls, devices: Sequence[Ints]) -> Held:
        counts = np.array([len(samples) for samples in devices], np.int64)
        samples = np.concatenate([np.empty(0, np.int64), *devices])
        return cls(samples, counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, device: Any) -> Any:
        if isinstance(device, slice):
            return [self[k] for k in range(*device.indices(len(self)))]
        end = int(self.counts[: range(len(self))[device] + 1].sum())
        return self.samples[end - int(self.counts[device]) : end]

    @cached_property
    def devices(self) -> Ints:
        """(Σ|S_k|,), whose sample each of `samples` is."""
        return read_only(np.repeat(np.arange(len(self.counts)), self.counts))

    def mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """(K,) the mean of each device's part of values, one per entry of `samples`; NaN where it holds nothing."""
        sums = np.bincount(self.devices, values.astype(np.float64), len(self.counts))
        return np.divide(sums, self.counts, out=np.full(len(self.counts), np.nan), where=self.counts > 0)


class Predict:
    """What the model of a round says of samples: `predict("test")`, `predict("train", numbers)`.

    A training sample is computed once in a round, however many devices hold it and whoever asks; so is the test set.
    `theta` is the model itself, float32 (d,), read-only.
    """

    def __init__(
        self,
        theta: NDArray[np.float32],
        compute: Callable[[Part, Ints | None], Predictions],
        whole_test: Callable[[], tuple[float, float]],
        test_rows: Ints | None = None,
    ) -> None:
        """compute: by the engine. whole_test: loss and accuracy on all of it; test_rows: those of this round's test."""
        self.theta = read_only(theta)
        self._compute, self._whole_test, self._test_rows = compute, whole_test, test_rows
        self._train: tuple[Ints, Predictions] | None = None  # numbers, ascending, and what is known of them

    def __call__(self, of: Part = "test", samples: NDArray[Any] | None = None) -> Predictions:
        """Loss and class of each of these samples, by number; None: of all. Numbers of the test set are of this
        round's test set.
        """
        if of == "test":
            return self._test if samples is None else self._test.of(np.asarray(samples))
        if of != "train":
            raise ValueError(f"predict knows 'train' and 'test', not {of!r}")
        if samples is None:
            return self._compute("train", None)
        return self._of_train(np.asarray(samples, np.int64))

    @cached_property
    def _test(self) -> Predictions:
        return self._compute("test", self._test_rows)

    def _of_train(self, samples: Ints) -> Predictions:
        wanted, place = np.unique(samples, return_inverse=True)
        if self._train is None:
            self._train = wanted, self._compute("train", wanted)
        known, found = self._train
        new = np.setdiff1d(wanted, known, assume_unique=True)
        if len(new):
            parts = found, self._compute("train", new)
            joined = (np.concatenate([getattr(p, name) for p in parts]) for name in ("losses", "classes", "labels"))
            order = np.argsort(np.concatenate([known, new]))
            known, found = np.concatenate([known, new])[order], Predictions(*joined).of(order)
            self._train = known, found
        return found.of(np.searchsorted(known, wanted)[place.reshape(samples.shape)])

    def score(self) -> tuple[float, float]:
        """(mean loss, accuracy) on the test set of the round."""
        if self._test_rows is None:  # the engine's own sum, which needs no prediction by sample
            return self._whole_test()
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
        held: S_k(t), what the devices hold; gathered by `hold` when first asked for.
        round: t, from 1.
        rounds: How many there are in all.
        classes: How many there are.
    """

    predict: Predict
    test: TestSet
    hold: Callable[[], Held] = field(repr=False)
    round: int
    rounds: int
    classes: int

    @cached_property
    def held(self) -> Held:
        return self.hold()

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


class Evaluator(ABC):
    """Base of evaluators that remember something between rounds, or say how their numbers are shown.

    All memory is the state that `evaluate` is handed and gives back: a run that is stopped and goes on keeps it.

    Attributes:
        quantities: How its numbers are shown; a number not named here is shown too.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = ()
    plugin_field: ClassVar[str] = "learning.evaluators"
    contract: ClassVar[Mapping[str, Out]] = {"init": Out(STATE), "evaluate": Out(Pair(One(Mapping), STATE), has_names)}
    name: str = ""  # as the scenario has it

    def plugin_name(self) -> str:
        return self.name

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
