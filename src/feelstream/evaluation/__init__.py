"""Evaluation: what is measured of the model after a round (docs/evaluators.md)."""

from feelstream.evaluation.contract import EvaluationContext, Evaluator, Held, Predict, Predictions, TestSet, evaluator
from feelstream.evaluation.evaluators import EVALUATORS, EvaluatorNames, Evaluators, Measured

__all__ = [
    "EVALUATORS", "EvaluationContext", "Evaluator", "EvaluatorNames", "Evaluators", "Held", "Measured", "Predict",
    "Predictions", "TestSet", "evaluator",
]  # fmt: skip
