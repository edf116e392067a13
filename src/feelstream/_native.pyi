"""The compiled kernel; feelstream.learning.native is its only caller, besides benchmarks and tests."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

def available() -> list[str]: ...

class Kind(Enum):
    CONVOLUTION = ...
    DENSE = ...
    POOL = ...
    RELU = ...
    PAD = ...

class Layer:
    def __init__(self, kind: Kind, size: int = 0, rows: int = 0, columns: int = 0) -> None: ...

class LocalSgd:
    def __init__(
        self,
        rates: list[float],
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        prox: float = 0.0,
        clip: float = 0.0,
        nesterov: bool = False,
    ) -> None: ...

class Engine:
    def __init__(self, channels: int, rows: int, columns: int, layers: list[Layer], isa: str) -> None: ...
    @property
    def parameters(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def stages(self) -> list[str]: ...
    def train(
        self,
        images: NDArray[np.uint8 | np.float32],
        labels: NDArray[np.int32],
        scale: float,
        shift: float,
        theta: NDArray[np.float32],
        batches: NDArray[np.int64],
        sgd: LocalSgd,
        velocity: NDArray[np.float32] | None,
        correction: NDArray[np.float32] | None,
        threads: int,
        updates: NDArray[np.float32],
        losses: NDArray[np.float32],
        profile: bool,
        /,
    ) -> list[float]: ...
    def gradients(
        self,
        images: NDArray[np.uint8 | np.float32],
        labels: NDArray[np.int32],
        scale: float,
        shift: float,
        theta: NDArray[np.float32],
        batches: NDArray[np.int64],
        threads: int,
        gradients: NDArray[np.float32],
        losses: NDArray[np.float32],
        /,
    ) -> None: ...
    def predict(
        self,
        images: NDArray[np.uint8 | np.float32],
        labels: NDArray[np.int32],
        scale: float,
        shift: float,
        theta: NDArray[np.float32],
        samples: NDArray[np.int64],
        threads: int,
        losses: NDArray[np.float32],
        classes: NDArray[np.int32],
        /,
    ) -> None: ...
    def evaluate(
        self,
        images: NDArray[np.uint8 | np.float32],
        labels: NDArray[np.int32],
        scale: float,
        shift: float,
        theta: NDArray[np.float32],
        threads: int,
        profile: bool,
        /,
    ) -> tuple[float, int, list[float]]: ...
    def peak(self, seconds: float) -> float: ...
