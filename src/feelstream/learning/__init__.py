"""Learning: which engine runs which model."""

from __future__ import annotations

import os
from typing import Any

from feelstream.data.datasets import Dataset
from feelstream.errors import EngineError, ScenarioError
from feelstream.learning.contract import Learner
from feelstream.learning.models import STACKS, Model, build
from feelstream.plugins import did_you_mean, import_object
from feelstream.scenario import LearningSettings


def make(settings: LearningSettings, dataset: Dataset, threads: int | None = None) -> Learner | None:
    """The learner that a scenario asks for; None with engine `none`.

    `auto` takes the native engine for every model it can express, a stack of our layers, and PyTorch for an nn.Module.
    """
    if settings.engine == "none":
        return None
    model = describe(settings.model, dataset)
    native = isinstance(model, Model)
    if settings.engine == "native" and not native:
        raise EngineError(
            f"learning.engine: the native engine runs stacks of feelstream layers, and '{settings.model}' is not one; "
            'use engine = "torch"'
        )
    arrays = (
        dataset.train_images, dataset.train_labels, dataset.test_images, dataset.test_labels, dataset.mean, dataset.std,
    )  # fmt: skip
    if native and settings.engine != "torch":
        from feelstream.learning.native import NativeLearner

        return NativeLearner(model, *arrays, threads=threads or cores())
    from feelstream.learning.torch_engine import TorchLearner

    if isinstance(model, Model):
        return TorchLearner(model, *arrays, threads=threads or cores())
    return TorchLearner.from_class(model, *arrays, threads=threads or cores())


def describe(name: str, dataset: Dataset) -> Any:
    """A Model for a named stack or a user's own one, else whatever the import path gives (a torch nn.Module class)."""
    if name in STACKS:
        return build(name, dataset.shape, dataset.classes)
    if ":" not in name:
        known = list(STACKS)
        raise ScenarioError(
            f"learning.model: '{name}' is not known; {did_you_mean(name, known)}allowed: {', '.join(known)}, "
            "or package.module:Name"
        )
    try:
        found = import_object(name)
    except ScenarioError as problem:
        raise ScenarioError(f"learning.model: {problem}") from problem
    if isinstance(found, type | Model):
        return found
    if not isinstance(found, list | tuple):
        raise ScenarioError(f"learning.model: '{name}' must be an nn.Module class, a Model or a list of layers")
    return Model(dataset.shape, tuple(found))


def cores() -> int:
    """How many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
