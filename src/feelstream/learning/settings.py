"""What a scenario says of learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from feelstream.evaluation.evaluators import EvaluatorNames
from feelstream.learning.local import LOCAL_TRAININGS, LocalTraining
from feelstream.learning.server import SERVER_UPDATES, ServerUpdate
from feelstream.plugins import Count, NamesCode, Settings

LOCAL_FIELDS = ("steps", "batch", "lr")  # of [learning.local] that may be written in [learning] too
BatchNorm = Literal["average", "batch"]


class LearningSettings(Settings):
    """[learning]"""

    engine: Literal["auto", "native", "torch", "none"] = Field(
        default="auto", description="auto: native if it can run the model, else torch; none: schedule only"
    )
    model: Annotated[str, NamesCode()] = Field(
        default="paper-cnn",
        description="paper-cnn, lenet5, cifar-cnn, har-cnn, mlp, softmax, or your own as file.py:Name",
    )
    device: str = Field(
        default="cpu", description="where PyTorch computes: cpu, or a device of torch's (cuda, mps); only cpu is tested"
    )
    batch_norm: BatchNorm = Field(
        default="average",
        description="BatchNorm layers of a torch model: average: running statistics are averaged like weights; "
        "batch: none are kept, every batch is normalised by itself",
    )
    eval_every: Count = Field(default=1, description="evaluate after every this many rounds, and the last; ≥ 1")
    evaluators: EvaluatorNames = ("test",)
    local: Annotated[LocalTraining, LOCAL_TRAININGS] = LOCAL_TRAININGS.chosen()
    server: Annotated[ServerUpdate, SERVER_UPDATES] = SERVER_UPDATES.chosen()

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, table: Any) -> Any:
        return with_local(table) if isinstance(table, Mapping) else table


def with_local(table: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of [learning] with steps, batch and lr in [learning.local], where they belong.

    >>> with_local({"model": "mlp", "lr": 0.1})
    {'model': 'mlp', 'local': {'lr': 0.1}}
    """
    moved = {field: table[field] for field in LOCAL_FIELDS if field in table}
    rest = {field: value for field, value in table.items() if field not in moved}
    if not moved:
        return rest
    local = rest.get("local", {})
    if not isinstance(local, Mapping):
        raise ValueError(f".{next(iter(moved))}: belongs to learning.local, which is given as an object; set it there")
    for field in moved:
        if field in local:
            raise ValueError(f".{field}: is learning.local.{field}, which is given too; leave one of them out")
    return {**rest, "local": {**local, **moved}}
