"""The evaluators that come with feelstream, and those of a run: by name, what they measure and what they remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from feelstream.arrays import Nested
from feelstream.columns import ROUND_COLUMNS
from feelstream.display.quantities import Quantity
from feelstream.errors import PluginError
from feelstream.evaluation.contract import EvaluationContext, Evaluator, FunctionEvaluator, State, Values
from feelstream.guard import ask, broken, freeze
from feelstream.plugins import Kind, name_of


class Test(Evaluator):
    """Mean cross-entropy and share of correct answers on the test set: accuracy, loss."""

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        loss, accuracy = context.predict.score()
        return {"accuracy": accuracy, "loss": loss}, state


class Stream(Evaluator):
    """The paper's time-varying loss, its eq. (2), over what the devices hold, and the accuracy on the same samples.

    F(θ, t) = Σ_k |S_k(t)| F_k(θ, t) / |∪ S_j(t)|, F_k the mean loss over S_k(t). Arrays: F_k and accuracy by device.
    """

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        held = context.held
        said = context.predict("train", held.samples)
        loss, accuracy = held.mean(said.losses), held.mean(said.correct)
        if not held.counts.any():
            return {"stream_loss": np.nan, "stream_accuracy": np.nan, "loss": loss, "accuracy": accuracy}, state
        over_all = {
            "stream_loss": np.nansum(held.counts / held.distinct * loss),
            "stream_accuracy": np.nansum(held.counts / held.counts.sum() * accuracy),
        }
        return {**over_all, "loss": loss, "accuracy": accuracy}, state


class Devices(Evaluator):
    """Accuracy of the one model on what each device holds: mean, standard deviation, and mean of the worst tenth.

    Over the n devices that hold a sample; the worst tenth are the ⌈n/10⌉ with the lowest accuracy. Array: by device.
    """

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        held = context.held
        accuracy = held.mean(context.predict("train", held.samples).correct)
        there = np.sort(accuracy[held.counts > 0]) if held.counts.any() else np.array([np.nan])
        return {
            "device_accuracy_mean": there.mean(),
            "device_accuracy_std": there.std(),
            "worst_tenth": there[: ceil(len(there) / 10)].mean(),
            "accuracy": accuracy,
        }, state


class Classes(Evaluator):
    """Recall by class on the test set, and how much of it was lost: forgetting = mean_c (max_{s≤t} r_c(s) − r_c(t)).

    r_c is the share of the test samples of class c that are recognised; classes without any are left out. Arrays:
    recall by class, and after the last round how many samples of each class were tested, and the confusion matrix,
    entry true class · m + predicted class.
    """

    def init(self, devices: int, classes: int) -> State:
        return {"best": np.zeros(classes)}

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        m, said = context.classes, context.predict("test")
        # A model may have more logits than there are classes; whatever it says there is wrong.
        known = said.classes < m
        pairs = said.labels[known].astype(np.int64) * m + said.classes[known]
        confusion = np.bincount(pairs, minlength=m * m).reshape(m, m)
        tested = np.bincount(said.labels, minlength=m)
        recall = np.divide(np.diag(confusion), tested, out=np.full(m, np.nan), where=tested > 0)
        best = np.fmax(state["best"], recall)
        lost = (best - recall)[tested > 0]
        values = {"forgetting": float(lost.mean()), "recall": recall}
        return values | ({"tested": tested, "confusion": confusion} if context.last else {}), {"best": best}


EVALUATORS: Kind[Any] = Kind(
    "evaluator",
    "evaluators",
    Evaluator,
    {"test": Test, "stream": Stream, "devices": Devices, "classes": Classes},
    FunctionEvaluator,
)


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("each evaluator must be named once")
    return names


EvaluatorName = Annotated[str, BeforeValidator(name_of), EVALUATORS]
EvaluatorNames = Annotated[
    tuple[EvaluatorName, ...],
    AfterValidator(_each_once),
    Field(description=f"measured after a round: {', '.join(EVALUATORS.ours)}, or your own as file.py:function"),
]


@dataclass(frozen=True)
class Measured:
    """What the evaluators of a run measured after a round: numbers by column, None where there is none; and arrays."""

    numbers: Mapping[str, float | None] = field(default_factory=dict)
    arrays: tuple[tuple[str, str, NDArray[np.float64]], ...] = ()  # evaluator, name, values (n,)


class Evaluators:
    """The evaluators that a scenario names, in their order, with their states.

    nothing: what they make of a round after which nothing is measured.
    """

    def __init__(self, names: Sequence[str], devices: int, classes: int) -> None:
        self._all: dict[str, Evaluator] = {name: EVALUATORS.instance(name) for name in names}
        self._states: dict[str, State] = {}
        for name, each in self._all.items():
            self._states[name] = ask(each, "init", devices, classes, at=0)
        # Column → evaluator; "" for a column of every run.
        self._owner = {name: column.when.removeprefix("evaluates_") for name, column in ROUND_COLUMNS.items()}
        self._owner |= {"accuracy": "test", "loss": "test"}
        for name, each in self._all.items():
            for quantity in each.quantities:
                if self._owner.setdefault(quantity.name, name) != name:
                    raise self._taken(name, quantity.name)
        stated = self._owner.items()
        self.nothing = Measured({column: None for name in self._all for column, owner in stated if owner == name})

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """How the numbers of users' own evaluators are shown, as far as they say it; columns.py says it of ours."""
        return tuple(quantity for each in self._all.values() for quantity in each.quantities)

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
                if self._owner.setdefault(column, name) != name:
                    raise self._taken(name, column)
                numbers[column] = None if np.isnan(array) else float(array)
        return Measured(numbers, tuple(arrays))

    def _taken(self, name: str, column: str) -> PluginError:
        """A column belongs to one evaluator."""
        whose = f"'{self._owner[column]}'" if self._owner[column] else "every run"
        return broken(self._all[name], f"gives '{column}', which is a column of {whose}; choose another name")

    def snapshot(self) -> Nested:
        return {name: dict(state) for name, state in self._states.items()}

    def restore(self, saved: Nested) -> None:
        self._states = {name: freeze(saved[name]) for name in self._states}
