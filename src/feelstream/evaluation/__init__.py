"""Evaluation: what is measured of the model after a round (docs/evaluators.md)."""

from feelstream.evaluation.contract import EvaluationContext, Evaluator, evaluator
from feelstream.evaluation.registry import EVALUATORS, EvaluatorNames
from feelstream.evaluation.running import Evaluators, Measured
from feelstream.evaluation.samples import Held, Predict, Predictions, TestRounds, TestSet

__all__ = [
    "EVALUATORS", "EvaluationContext", "Evaluator", "EvaluatorNames", "Evaluators", "Held", "Measured", "Predict",
    "Predictions", "TestRounds", "TestSet", "evaluator",
]  # fmt: skip
