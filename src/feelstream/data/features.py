"""Features: the vector L(A) that the server is told of a data set, by which importance and balance are computed.

    L(A) = Σ_{a ∈ A} φ(a),   φ(a) ∈ R^m, ≥ 0,   so that L(A ∪ B) = L(A) + L(B) for disjoint A and B

A kind says what φ is. Where φ depends on the model, a device computes it anew for every report. Vectors are kept as
whole numbers, in units of 1/UNITS of the largest sum that one sample may have, so that sums are exact in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Frozen, Ids, Ints, Nested, Reals, read_only
from feelstream.data.datasets.dataset import Dataset
from feelstream.errors import ScenarioError
from feelstream.guard import STATE, Array, Out, ask
from feelstream.plugins import Count, Kind, NonNegative, Plugin

UNITS = 1024
BLOCK = 4096  # samples that are turned into vectors at a time
LogProbabilities = Callable[[Ids], NDArray[Any]]  # (n, classes) of samples, by the present model


@dataclass(frozen=True, eq=False)
class Samples(Frozen):
    """Training samples whose vectors are asked for.

    Attributes:
        ids: (n,) their numbers in the training set.
        dataset: The data set.
        predict: Of samples, by the present model; None where φ must not depend on it.
    """

    ids: Ids
    dataset: Dataset = field(repr=False)
    predict: LogProbabilities | None = field(default=None, repr=False)

    @property
    def labels(self) -> Ints:
        """(n,)"""
        return self.dataset.train_labels[self.ids].astype(np.int64)

    @cached_property
    def inputs(self) -> Reals:
        """(n, values) what the model is given of each, as one row: standardised, or tokens."""
        images = self.dataset.train_images
        rows = images[self.ids].reshape(len(self.ids), int(np.prod(images.shape[1:])))
        scaled = (rows / 255.0 - self.dataset.mean) / self.dataset.std if rows.dtype == np.uint8 else rows
        return read_only(np.asarray(scaled, float))

    @cached_property
    def probabilities(self) -> Reals:
        """(n, classes) by the present model; only for kinds that say `of_model`."""
        if self.predict is None:
            raise ValueError("probabilities are known only to features that say of_model = True")
        return read_only(np.exp(self.predict(self.ids).astype(float)))


def within_most(kind: Features, found: Reals, state: Nested, samples: Samples) -> str | None:
    """No sample counts for more than `most`, which noise and rounding rest on."""
    largest = float(found.sum(axis=1).max(initial=0.0))
    if largest > kind.most * (1 + 1e-6):
        return f"gives a sample numbers that add up to {largest:.6g}, above its `most` of {kind.most:g}"
    return None


def is_a_mix(kind: Features, found: Reals | None, state: Nested) -> str | None:
    """The shares of a mix add up to 1."""
    if found is None or abs(found.sum() - 1) < 1e-9:
        return None
    return f"gives a reference whose shares add up to {found.sum():.9g}, not to 1"


class Features(Plugin, ABC):
    """What φ is; derive from it for one of your own."""

    plugin_field: ClassVar[str] = "data.features"
    contract: ClassVar[Mapping[str, Out]] = {
        "fit": Out(STATE),
        "vectors": Out(Array(("n", "m"), least=0), within_most),
        "reference": Out(Array(("m",), least=0, above=True, most=1, none=True), is_a_mix),
    }
    plugin_traits: ClassVar[tuple[str, ...]] = ("reported", "of_model")
    of_model: ClassVar[bool] = False  # φ depends on the model, so that devices must compute it again for each report
    most: ClassVar[float] = 1.0  # the largest sum of φ(a) of one sample

    noise: NonNegative = Field(
        default=0.0,
        description="ε of the Laplace noise that a device adds before it reports (docs/features.md); ≥ 0; 0: no noise",
    )
    every: Count = Field(default=1, description="devices report in rounds 1, 1 + every, …; ≥ 1")

    @property
    def reported(self) -> bool:
        """Whether devices report vectors, at a cost; else the server has label counts at no cost (the paper)."""
        return True

    def size(self, classes: int) -> int:
        """m, of data with so many classes of labels; by default as many."""
        return classes

    def fit(self, dataset: Dataset, rng: np.random.Generator) -> Nested:
        """What the server settles before the first round, as arrays by name; by default nothing."""
        return {}

    @abstractmethod
    def vectors(self, state: Nested, samples: Samples) -> NDArray[Any]:
        """(n, m) φ of each sample. state: what `fit` gave."""

    def reference(self, state: Nested) -> Reals | None:
        """(m,) q, the mix against which balance is measured; above 0, sum 1. None: 1/m each."""
        return None


class Labels(Features):
    """L(A) counts labels, as in the paper's experiments: m classes."""

    @property
    def reported(self) -> bool:
        return self.noise > 0 or self.every > 1

    def vectors(self, state: Nested, samples: Samples) -> NDArray[Any]:
        return np.eye(samples.dataset.classes)[samples.labels]


class Sketch(Features):
    """L(A) counts the samples in each of m cells, without labels: which of m centres is nearest.

    Centres are those of k-means on the principal components of reference samples, which the server has; their mix is
    what balance is measured against.
    """

    cells: Count = Field(default=40, description="m, number of cells; ≥ 1")
    components: Count = Field(default=40, description="principal components in which distances are measured; ≥ 1")
    reference_samples: Count = Field(
        default=1000, description="reference samples, without labels, that the server draws of the training set; ≥ 1"
    )

    def size(self, classes: int) -> int:
        return self.cells

    def fit(self, dataset: Dataset, rng: np.random.Generator) -> Nested:
        from scipy.cluster.vq import kmeans2  # here: slow to import, and few runs need them
        from scipy.spatial.distance import cdist

        there = len(dataset.train_labels)
        drawn = np.sort(rng.choice(there, min(self.reference_samples, there), replace=False))
        inputs = Samples(drawn, dataset).inputs
        if len(np.unique(inputs, axis=0)) < self.cells:
            raise ScenarioError(
                f"data.features.cells: must be at most the number of different reference samples, not {self.cells}"
            )
        middle = inputs.mean(axis=0)
        _, _, axes = np.linalg.svd(inputs - middle, full_matrices=False)
        axes = axes[: self.components].T
        points = (inputs - middle) @ axes
        centres, _ = kmeans2(points, self.cells, iter=20, minit="++", rng=rng)
        found = np.bincount(cdist(points, centres).argmin(axis=1), minlength=self.cells)
        centres = centres[found > 0]  # an empty cell has no mix to be compared with
        if len(centres) < self.cells:
            raise ScenarioError(
                f"data.features.cells: only {len(centres)} of {self.cells} cells have a reference sample; take fewer, "
                "or more reference_samples"
            )
        return {"middle": middle, "axes": axes, "centres": centres, "mix": found / found.sum()}

    def vectors(self, state: Nested, samples: Samples) -> NDArray[Any]:
        return in_cells(samples.inputs, state)

    def reference(self, state: Nested) -> Reals | None:
        return state["mix"]


def in_cells(inputs: Reals, state: Nested) -> NDArray[Any]:
    """(n, m) φ of a sketch: of each sample a single 1, in the cell of the nearest centre.

    inputs: (n, values) as a model is given them. state: what `Sketch.fit` gave.
    """
    from scipy.spatial.distance import cdist

    points = (inputs - state["middle"]) @ state["axes"]
    return np.eye(len(state["centres"]))[cdist(points, state["centres"]).argmin(axis=1)]


class Outputs(Features):
    """L(A) sums the class probabilities that the present model gives each sample: no labels leave a device."""

    of_model: ClassVar[bool] = True

    def vectors(self, state: Nested, samples: Samples) -> NDArray[Any]:
        return samples.probabilities


FEATURES = Kind("features", "features", Features, {"labels": Labels, "sketch": Sketch, "outputs": Outputs})


class Vectors:
    """φ of the training samples by one kind, in whole numbers: what devices compute."""

    def __init__(self, kind: Features, dataset: Dataset, rng: np.random.Generator) -> None:
        self.kind, self.dataset, self.size = kind, dataset, kind.size(dataset.classes)
        self.state = ask(kind, "fit", dataset, rng, at=0)
        self.reference = ask(kind, "reference", self.state, at=0, m=self.size)

    def of(self, ids: Ids, predict: LogProbabilities | None = None, at: int = 0) -> NDArray[np.int32]:
        """(n, m) φ of these samples, in units of most/UNITS."""
        found = np.empty((len(ids), self.size), np.int32)
        for start in range(0, len(ids), BLOCK):
            block = ids[start : start + BLOCK]
            samples = Samples(block, self.dataset, predict)
            vectors = ask(self.kind, "vectors", self.state, samples, at=at, n=len(block), m=self.size)
            found[start : start + BLOCK] = _whole(vectors * (UNITS / self.kind.most))
        return found


def _whole(vectors: Reals) -> Reals:
    """To the nearest whole numbers; downwards where those would add up to more than UNITS, which noise rests on."""
    nearest = np.rint(vectors)
    over = nearest.sum(axis=1) > UNITS
    nearest[over] = np.floor(vectors[over])
    return nearest
