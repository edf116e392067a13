"""Evaluators of one's own: a function, and a class that remembers.

feelstream run tiny --set 'learning.evaluators=["test", "stream", "examples/my_evaluator.py:gap"]'
"""

from __future__ import annotations

from typing import Any

import numpy as np

from feelstream import EvaluationContext, Evaluator, Quantity, evaluator
from feelstream.evaluation import Held, Predict, TestSet


@evaluator(Quantity("gap", "best minus worst device", "%", 100.0, group="learning", better="lower", most=100.0))
def gap(predict: Predict, test: TestSet, held: Held, round: int) -> dict[str, Any]:
    """How far apart the devices are in accuracy on what each holds; which device is which is an array."""
    accuracy = held.mean(predict("train", held.samples).correct)  # NaN for a device that holds nothing
    return {"gap": np.nanmax(accuracy) - np.nanmin(accuracy) if held.counts.any() else np.nan, "by_device": accuracy}


class Records(Evaluator):
    """How often the accuracy on the test set was the best so far."""

    def init(self, devices: int, classes: int) -> dict[str, Any]:
        return {"best": np.zeros(1), "records": np.zeros(1, int)}

    def evaluate(self, context: EvaluationContext, state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        accuracy = context.predict("test").correct.mean()
        records = state["records"] + (accuracy > state["best"])
        return {"records": records[0]}, {"best": np.maximum(state["best"], accuracy), "records": records}
