"""The evaluators of a run: what they measure after a round, checked, and what they remember."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Nested
from feelstream.errors import PluginError, RunError
from feelstream.evaluation.contract import EvaluationContext, Evaluator, State
from feelstream.evaluation.registry import EVALUATORS
from feelstream.guard import ask, broken, freeze
from feelstream.quantities import Quantity


@dataclass(frozen=True)
class Measured:
    """What the evaluators of a run made of one round: numbers by column, None where there is none; and arrays."""

    numbers: Mapping[str, float | None] = field(default_factory=dict)
    arrays: tuple[tuple[str, str, NDArray[np.float64]], ...] = ()  # evaluator, name, values (n,)


class Evaluators:
    """The evaluators that a scenario names, in their order, with their states."""

    def __init__(self, names: Sequence[str], devices: int, classes: int) -> None:
        self._all: dict[str, Evaluator] = {name: EVALUATORS.instance(name) for name in names}
        self._states: dict[str, State] = {}
        for name, each in self._all.items():
            self._states[name] = ask(each, "init", devices, classes, at=0)
        self._owner = {"accuracy": "test", "loss": "test"}  # column → evaluator; "" where it is of no evaluator
        self._every = {name: EVALUATORS.instance(name) for name in EVALUATORS.ours} | self._all
        for name, each in self._every.items():
            for quantity in each.quantities:
                self._claim(name, quantity.name)

    def reserve(self, columns: Iterable[str]) -> None:
        """These columns of rounds.parquet are not to be used by any evaluator."""
        for column in columns:
            owner = self._owner.setdefault(column, "")
            if owner not in ("", *EVALUATORS.ours):
                raise self._taken(owner, column, "")

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """How the numbers of users' own evaluators are shown, as far as they say it."""
        own = (each for name, each in self._all.items() if name not in EVALUATORS.ours)
        return tuple(quantity for each in own for quantity in each.quantities)

    @property
    def nothing(self) -> Measured:
        """Of a round after which nothing is measured."""
        return Measured({quantity.name: None for each in self._all.values() for quantity in each.quantities})

    def measure(self, context: EvaluationContext) -> Measured:
        numbers: dict[str, float | None] = dict(self.nothing.numbers)
        arrays: list[tuple[str, str, NDArray[np.float64]]] = []
        for name, each in self._all.items():
            found, self._states[name] = ask(each, "evaluate", context, self._states[name], at=context.round)
            for column, value in found.items():
                array = np.asarray(value, np.float64)
                if array.ndim:
                    arrays.append((name, column, array.reshape(-1)))
                    continue
                self._claim(name, column)
                numbers[column] = None if np.isnan(array) else float(array)
        return Measured(numbers, tuple(arrays))

    def _claim(self, name: str, column: str) -> None:
        """A column belongs to one evaluator."""
        owner = self._owner.setdefault(column, name)
        if owner != name:
            raise self._taken(name, column, owner)

    def _taken(self, name: str, column: str, owner: str) -> PluginError:
        whose = f"'{owner}'" if owner else "every run"
        return broken(self._every[name], f"gives '{column}', which is a column of {whose}; choose another name")

    def snapshot(self) -> Nested:
        return {name: dict(state) for name, state in self._states.items()}

    def restore(self, saved: Nested) -> None:
        if saved.keys() != self._states.keys():
            raise RunError("The stored state of the evaluators does not fit this scenario; start the run afresh.")
        self._states = {name: freeze(saved[name]) for name in self._states}
