"""Images the package makes itself: a smooth pattern per class, mixed with another class's, plus noise.

    pixel = 255 · clip(0.5 + CONTRAST · ((1−a)·P[label] + a·P[other]) + NOISE · z, 0, 1)

with P[c] the pattern of class c (coarse standard normal values, repeated COARSE×COARSE times), a from
U(0, MIXING), other a class at random and z standard normal per pixel. Sample i's label is i mod classes. Its
image depends on the part (training or test), the number of classes, the shape and i, and on no other sample.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import DataError
from feelstream.randomness import Purpose, generator

SEED = 20230501  # part of the data set, like its formula: never the run's seed
VERSION = 1  # raise it when the formula changes, so that the digest changes too
CHUNK = 1024  # images per stream of randomness
COARSE = 4
CONTRAST, NOISE, MIXING = 0.1, 0.25, 0.45  # a linear model learns it to 97 or 98 %

Part = Literal["train", "test"]


@dataclass(frozen=True)
class Synthetic:
    """The settings of a synthetic data set; `shape` is channels, rows, columns."""

    samples: int = 6000
    test_samples: int = 1000
    classes: int = 10
    shape: tuple[int, int, int] = (1, 28, 28)

    def __post_init__(self) -> None:
        for field, least, most in (("samples", 1, 10**8), ("test_samples", 1, 10**8), ("classes", 2, 256)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise DataError(f"synthetic data: {field} is {value!r}, allowed are whole numbers {least} to {most}")

    @property
    def digest(self) -> str:
        """SHA-256 of everything the images and labels follow from."""
        formula = [VERSION, SEED, CHUNK, COARSE, CONTRAST, NOISE, MIXING]
        return hashlib.sha256(json.dumps(["synthetic", formula, asdict(self)]).encode()).hexdigest()

    def labels(self, part: Part) -> NDArray[np.uint8]:
        """(samples,) labels 0, 1, …, classes−1, 0, 1, …: as balanced as can be."""
        count = self.samples if part == "train" else self.test_samples
        return np.tile(np.arange(self.classes, dtype=np.uint8), -(-count // self.classes))[:count]

    def images(self, part: Part) -> NDArray[np.uint8]:
        """(samples, C, H, W), made in chunks of CHUNK images."""
        patterns, labels = self._patterns(), self.labels(part)
        images = np.empty((len(labels), *self.shape), np.uint8)
        for chunk, start in enumerate(range(0, len(labels), CHUNK)):
            own = labels[start : start + CHUNK]
            rng = generator(SEED, Purpose.SYNTHETIC_DATA, chunk, device=1 if part == "train" else 2)
            # Always draws for a whole chunk, so that an image does not depend on how many follow it.
            other = rng.integers(self.classes, size=CHUNK)[: len(own)]
            share = rng.uniform(0, MIXING, (CHUNK, 1, 1, 1)).astype(np.float32)[: len(own)]
            value = rng.standard_normal((CHUNK, *self.shape), np.float32)[: len(own)]
            value *= NOISE
            value += 0.5 + CONTRAST * ((1 - share) * patterns[own] + share * patterns[other])
            images[start : start + CHUNK] = np.rint(255 * value.clip(0, 1))
        return images

    def _patterns(self) -> NDArray[np.float32]:
        channels, rows, columns = self.shape
        rng = generator(SEED, Purpose.SYNTHETIC_DATA, device=0)
        coarse = rng.standard_normal((self.classes, channels, -(-rows // COARSE), -(-columns // COARSE)), np.float32)
        return coarse.repeat(COARSE, axis=2).repeat(COARSE, axis=3)[:, :, :rows, :columns]
