"""Evaluators: what is measured of the model after a round, beside what the round itself cost.

An evaluator is handed predictions, the test set, what each device holds and the round, and gives named numbers, which
become columns of rounds.parquet, and named arrays, which become rows of evaluations.parquet.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from feelstream.arrays import Nested
from feelstream.evaluation.samples import Held, Predict, TestSet
from feelstream.guard import STATE, One, Out, Pair
from feelstream.quantities import Quantity

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
