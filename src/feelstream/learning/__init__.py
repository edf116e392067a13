"""Learning: which engine runs which model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from feelstream.data.datasets import Dataset
from feelstream.errors import EngineError, ScenarioError
from feelstream.learning.contract import Learner
from feelstream.learning.models import STACKS, Layer, Model, build
from feelstream.learning.settings import LearningSettings
from feelstream.plugins import import_object, in_a_sentence, near_or_all


def make(settings: LearningSettings, dataset: Dataset, threads: int | None = None) -> Learner | None:
    """The learner that a scenario asks for; None with engine `none`.

    `auto` takes the native engine for every model it can express, a stack of our layers, and PyTorch for an nn.Module,
    for local training by a function of the user's own, and on any device but the CPU.
    """
    if settings.engine == "none":
        return None
    model = describe(settings.model, dataset)
    native = isinstance(model, Model)
    if native and dataset.vocabulary is not None:
        raise EngineError(
            f"learning.model: the data set holds tokens, and '{settings.model}' takes real numbers; name an nn.Module "
            "that begins with nn.Embedding"
        )
    if settings.engine == "native" and settings.device != "cpu":
        raise EngineError(f"learning.device: the native engine computes on the CPU alone, not on '{settings.device}'")
    if settings.engine == "native" and not native:
        raise EngineError(
            f"learning.engine: the native engine runs stacks of feelstream layers, and '{settings.model}' is not one; "
            'use engine = "torch"'
        )
    if settings.engine == "native" and settings.local.needs_torch:
        raise EngineError(
            f"learning.engine: '{settings.local.plugin_name()}' of learning.local trains nn.Modules, and the native "
            'engine has none; use engine = "torch"'
        )
    if native and settings.device == "cpu" and settings.engine != "torch" and not settings.local.needs_torch:
        from feelstream.learning.native import NativeLearner

        return NativeLearner(model, dataset, threads)
    from feelstream.learning.torch_engine import TorchLearner

    return TorchLearner(model, dataset, threads or cores(), settings.device, settings.batch_norm)


def blank(dataset: Dataset) -> Dataset:
    """The same with one blank sample: a learner made with it answers questions about itself at no cost."""
    one = np.zeros((1, *dataset.shape), np.uint8 if dataset.vocabulary is None else np.int64)
    return replace(
        dataset, train_labels=dataset.train_labels[:1], test_labels=dataset.test_labels[:1],
        train_source=one, test_source=one, normalisation=(0.0, 1.0),
    )  # fmt: skip


def describe(name: str, dataset: Dataset) -> Any:
    """A Model for a named stack or a user's own one, else what makes the user's torch nn.Module.

    A user's class or function may have parameters `shape` and `classes`, and `vocabulary` where the data set holds
    tokens; they are filled from the data set.
    """
    if name in STACKS:
        return _fitting(build(name, dataset.shape, dataset.classes), name, dataset)
    if ":" not in name:
        meant = near_or_all(name, list(STACKS), ", or package.module:Name")
        raise ScenarioError(f"learning.model: '{name}' is not known; {meant}")
    try:
        found = import_object(name)
    except ScenarioError as problem:
        raise ScenarioError(f"learning.model: {problem}") from problem
    if isinstance(found, type):
        return _filled(found, name, dataset)
    if callable(found):
        make = _filled(found, name, dataset)
        try:
            found = make()
        except Exception as problem:  # a foreign function may raise anything
            raise ScenarioError(f"learning.model: '{name}' failed: {in_a_sentence(problem)}") from problem
        if not isinstance(found, Model | list | tuple):
            return make
    if isinstance(found, Model):
        return _fitting(found, name, dataset)
    if isinstance(found, list | tuple) and all(isinstance(layer, Layer) for layer in found):
        return _fitting(Model(dataset.shape, tuple(found)), name, dataset)
    raise ScenarioError(
        f"learning.model: '{name}' must be an nn.Module class, a Model, a list of layers, or a function that makes one"
    )


def _fitting(model: Model, name: str, dataset: Dataset) -> Model:
    if model.input != dataset.shape:
        raise ScenarioError(
            f"learning.model: '{name}' is for samples of shape {model.input}, and those of the data set have "
            f"{dataset.shape}"
        )
    try:
        model.check(dataset.classes)
    except ScenarioError as problem:
        raise ScenarioError(f"learning.model: '{name}' does not fit samples of shape {dataset.shape}: {problem}") from (
            problem
        )
    return model


def _filled(make: Callable[..., object], name: str, dataset: Dataset) -> Callable[[], object]:
    """`make` with those of its parameters filled in that the data set tells; others must have defaults."""
    try:
        parameters = signature(make).parameters.values()
    except (TypeError, ValueError):  # a class whose signature is not known takes nothing
        return make
    known: dict[str, Any] = {"shape": dataset.shape, "classes": dataset.classes}
    if dataset.vocabulary is not None:
        known["vocabulary"] = dataset.vocabulary
    given = {parameter.name: known[parameter.name] for parameter in parameters if parameter.name in known}
    for parameter in parameters:
        optional = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not optional and parameter.name not in known:
            raise ScenarioError(
                f"learning.model: '{name}' needs an argument {parameter.name}, and only {' and '.join(known)} can be "
                "given; let the others have defaults"
            )
    return partial(make, **given) if given else make


def cores() -> int:
    """How many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
