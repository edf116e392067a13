"""Evaluators: what is measured of the model after a round, beside what the round itself cost.

An evaluator is handed predictions, the test set, what each device holds and the round, and gives named numbers, which
become columns of rounds.parquet, and named arrays, which become rows of evaluations.parquet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from feelstream.arrays import Nested
from feelstream.evaluation.samples import Held, Predict, TestSet
from feelstream.quantities import Quantity

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


class Evaluator(ABC):
    """Base of evaluators that remember something between rounds, or say how their numbers are shown.

    All memory is the state that `evaluate` is handed and gives back: a run that is stopped and goes on keeps it.

    Attributes:
        quantities: How its numbers are shown; a number not named here is shown too.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = ()

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
