"""What a scenario says of learning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from feelstream.evaluation.registry import EvaluatorNames
from feelstream.plugins import Count, NamesCode, Positive, Settings


class LearningSettings(Settings):
    """[learning]"""

    engine: Literal["auto", "native", "torch", "none"] = Field(
        default="auto", description="auto: native if it can run the model, else torch; none: schedule only"
    )
    model: Annotated[str, NamesCode()] = Field(
        default="paper-cnn",
        description="paper-cnn, lenet5, cifar-cnn, har-cnn, mlp, softmax, or your own as file.py:Name",
    )
    steps: Count = Field(default=20, description="mini-batch SGD steps of a scheduled device per round; ≥ 1")
    batch: Count = Field(default=32, description="samples of a mini-batch, drawn with replacement; ≥ 1")
    lr: Positive = Field(default=0.02, description="learning rate; > 0")
    eval_every: Count = Field(default=1, description="evaluate after every this many rounds, and the last; ≥ 1")
    evaluators: EvaluatorNames = ("test",)
