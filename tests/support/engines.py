"""Learners on every engine and instruction set of this machine, on small models and random images."""

from __future__ import annotations

import numpy as np
import pytest
from float64 import data_set, needs_torch

from feelstream.data.datasets import Dataset
from feelstream.learning.contract import Learner
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU, build
from feelstream.learning.native import ISA_VARIABLE, NativeLearner, instruction_sets

SMALL = Model((2, 9, 11), (Conv(5, 3), ReLU(), MaxPool(), Conv(4, (2, 3), same=True), MaxPool(1, 2), Dense(6)))
PAPER = build("paper-cnn", (1, 28, 28), 10)
# Without ReLU and maximum, which side of a corner a float32 is on cannot decide anything.
SMOOTH = Model((2, 9, 11), (Conv(5, 3), Conv(4, (2, 3), same=True), Dense(6)))
LARGE = Model((1, 28, 28), (Conv(10, 5), Dense(30), Dense(10)))  # 173,000 parameters
SAMPLES = 120  # of the training set
TESTS = 60

NATIVE = [f"native {isa}" for isa in instruction_sets()]
every_engine = pytest.mark.parametrize("engine", [*NATIVE, "torch"])
every_instruction_set = pytest.mark.parametrize("engine", NATIVE)


def learner_of(engine: str, model: Model, threads: int = 1, data: Dataset | None = None) -> Learner:
    """engine: "torch", or "native" and an instruction set."""
    data = data or data_set(model, SAMPLES, TESTS)
    name, _, isa = engine.partition(" ")
    if name == "native":
        with pytest.MonkeyPatch.context() as patch:  # read when the learner is made
            patch.setenv(ISA_VARIABLE, isa)
            return NativeLearner(model, data, threads)
    needs_torch()
    from feelstream.learning.torch_engine import TorchLearner

    return TorchLearner(model, data, threads)


def draw(*shape: int) -> np.ndarray:
    """Numbers of samples of the training set, which may repeat."""
    return np.random.default_rng(7).integers(0, SAMPLES, shape)
