"""Callbacks for the experiment trackers that people already use, each an extra: `pip install 'feelstream[mlflow]'`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from feelstream.errors import FeelstreamError
from feelstream.plugins import did_you_mean
from feelstream.run.callbacks import Callback

LOGGERS = ("tensorboard", "mlflow", "wandb")


def logger(name: str, directory: Path) -> Callback:
    """The callback of that name, which keeps its files in `directory` and sends nothing anywhere by itself."""
    if name == "tensorboard":
        from feelstream.callbacks.tensorboard import TensorBoard

        return TensorBoard(directory)
    if name == "mlflow":
        from feelstream.callbacks.mlflow import MLflow

        return MLflow(directory)
    if name == "wandb":
        from feelstream.callbacks.wandb import WandB

        return WandB(directory)
    raise FeelstreamError(
        f"--log: there is no '{name}'; {did_you_mean(name, list(LOGGERS))}allowed: {', '.join(LOGGERS)}"
    )


def needed(module: str, extra: str) -> ModuleType:
    """A module of an extra, or a sentence that says how to get it."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise FeelstreamError(f"{extra} is not installed; get it with pip install 'feelstream[{extra}]'") from problem
