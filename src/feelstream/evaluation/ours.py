"""The evaluators that come with feelstream."""

from __future__ import annotations

from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from feelstream.evaluation.contract import EvaluationContext, Evaluator, State, Values
from feelstream.quantities import QUANTITIES, Quantity


class Test(Evaluator):
    """Mean cross-entropy and share of correct answers on the test set: accuracy, loss."""

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        loss, accuracy = context.predict.score()
        return {"accuracy": accuracy, "loss": loss}, state


class Stream(Evaluator):
    """The paper's time-varying loss, its eq. (2), over what the devices hold, and the accuracy on the same samples.

    F(θ, t) = Σ_k |S_k(t)| F_k(θ, t) / Σ_j |S_j(t)|, F_k the mean loss over S_k(t). Arrays: F_k and accuracy by device.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = (QUANTITIES["stream_loss"], QUANTITIES["stream_accuracy"])

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        held = context.held
        said = context.predict("train", held.samples)
        loss, accuracy = held.mean(said.losses), held.mean(said.correct)
        weights = held.counts / held.counts.sum() if held.counts.any() else None

        def over_all(values: NDArray[np.float64]) -> float:
            return float("nan") if weights is None else float(np.nansum(weights * values))

        return {
            "stream_loss": over_all(loss),
            "stream_accuracy": over_all(accuracy),
            "loss": loss,
            "accuracy": accuracy,
        }, state


class Devices(Evaluator):
    """Accuracy of the one model on what each device holds: mean, standard deviation, and mean of the worst tenth.

    Over the n devices that hold a sample; the worst tenth are the ⌈n/10⌉ with the lowest accuracy. Array: by device.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = tuple(
        QUANTITIES[name] for name in ("device_accuracy_mean", "device_accuracy_std", "worst_tenth")
    )

    def evaluate(self, context: EvaluationContext, state: State) -> tuple[Values, State]:
        held = context.held
        accuracy = held.mean(context.predict("train", held.samples).correct)
        there = np.sort(accuracy[held.counts > 0])
        none = float("nan")
        return {
            "device_accuracy_mean": float(there.mean()) if len(there) else none,
            "device_accuracy_std": float(there.std()) if len(there) else none,
            "worst_tenth": float(there[: ceil(len(there) / 10)].mean()) if len(there) else none,
            "accuracy": accuracy,
        }, state


class Classes(Evaluator):
    """Recall by class on the test set, and how much of it was lost: forgetting = mean_c (max_{s≤t} r_c(s) − r_c(t)).

    r_c is the share of the test samples of class c that are recognised; classes without any are left out. Arrays:
    recall by class, and after the last round how many samples of each class were tested, and the confusion matrix,
    entry true class · m + predicted class.
    """

    quantities: ClassVar[tuple[Quantity, ...]] = (QUANTITIES["forgetting"],)

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
