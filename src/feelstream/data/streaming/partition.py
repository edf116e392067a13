"""Partitions: which device may ever see which training sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from feelstream.arrays import Ints
from feelstream.data.datasets.dataset import Labels, Recording
from feelstream.errors import ScenarioError
from feelstream.guard import Array, Out
from feelstream.plugins import Count, Kind, Plugin

Owner = NDArray[np.int32]


def are_devices(partition: Any, owner: Owner, recording: Any, labels: Labels, devices: int, *more: Any) -> str | None:
    if len(owner) and owner.max() >= devices:
        return f"gives a sample to device {owner.max()}, of {devices} that are counted from 0"
    return None


class Partition(Plugin, ABC):
    """The contract: `split` names one owner for every sample, or −1 for a sample that nobody gets."""

    plugin_field: ClassVar[str] = "data.partition"
    contract: ClassVar[Mapping[str, Out]] = {"owners": Out(Array(("N",), "i", least=-1), are_devices)}

    repeats: ClassVar[bool] = False  # what is drawn follows from settings, labels and seed alone: no file

    @abstractmethod
    def split(self, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
        """Owner of each sample, int32 (N,), for labels (N,) below `classes`."""

    def owners(
        self, recording: Recording, labels: Labels, devices: int, classes: int, rng: np.random.Generator
    ) -> Owner:
        """The same, for a partition that goes by who recorded each sample; by default `split`, whoever did."""
        return self.split(labels, devices, classes, rng)


def _shares(samples: int, parts: int) -> Ints:
    """Part number of positions 0..samples−1, cut into contiguous parts whose sizes differ by at most 1."""
    return np.arange(samples, dtype=np.int64) * parts // max(samples, 1)


def _deal(members: Ints, to: Ints, owner: Owner, rng: np.random.Generator) -> None:
    """Deal the samples `members` evenly and at random to the devices `to`, writing into `owner`."""
    owner[rng.permutation(members)] = to[_shares(len(members), len(to))]


class IID(Partition):
    """An even split of a random permutation: device sizes differ by at most 1."""

    repeats: ClassVar[bool] = True

    def split(self, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
        owner = np.empty(len(labels), np.int32)
        _deal(np.arange(len(labels)), np.arange(devices), owner, rng)
        return owner


class Digits(Partition):
    """At most m labels on a device: every label is cut into shards, K·m in all, and each device gets m at random.

    A label gets shards in proportion to its samples (largest remainders, at least one), so shards of different labels
    differ a little in size: with MNIST, K = 40 and m = 3, device sizes differ by up to a tenth, unless they are made
    equal (`equalised`).
    Edge rule: K devices hold at most K·m labels; where there are more, K·m drawn at random are kept.
    """

    repeats: ClassVar[bool] = True

    per_device: Count = Field(
        default=3, description="m, most labels on a device, one for each of its shards; integer, at least 1"
    )
    sizes: Literal["shards", "equal"] = Field(
        default="shards",
        description="samples of a device: shards: those of its shards, large as they are; equal: as many as others "
        "have, by moving samples between devices of the same label",
    )

    def split(self, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
        shards = devices * self.per_device
        if shards > len(labels):
            raise ScenarioError(
                f"data.partition.per_device = {self.per_device} on {devices} devices needs {shards} "
                f"samples or more, but the data set has {len(labels)}."
            )
        sizes = np.bincount(labels, minlength=classes)
        present = np.flatnonzero(sizes)
        if shards < len(present):
            present = np.sort(rng.permutation(present)[:shards])
        holder = (rng.permutation(shards) // self.per_device).astype(np.int32)
        owner = np.full(len(labels), -1, np.int32)
        first = 0
        for label, parts in zip(present, _parts_by_size(sizes[present], shards), strict=True):
            members = rng.permutation(np.flatnonzero(labels == label))
            owner[members] = holder[first + _shares(len(members), parts)]
            first += parts
        return owner if self.sizes == "shards" else _equal_sizes(owner, labels, devices, classes, rng)


def _equal_sizes(owner: Owner, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
    """The same labels on each device, and as many samples on each as on any other, as far as labels allow."""
    given = owner >= 0
    flat = owner[given].astype(np.int64) * classes + labels[given]
    counts = equalised(np.bincount(flat, minlength=devices * classes).reshape(devices, classes))
    again = owner.copy()
    for label in np.flatnonzero(counts.sum(axis=0)):
        members = rng.permutation(np.flatnonzero(given & (labels == label)))
        again[members] = np.repeat(np.arange(devices, dtype=np.int32), counts[:, label])
    return again


def equalised(counts: Ints) -> Ints:
    """Label counts (K, m) with the same labels on each device, the same total of each label, and sizes that differ by
    at most 1, or as little as moving samples within labels allows.

    A maximum flow from devices with too many samples, through labels, to devices with too few. In one pass no count
    loses more than half of what it has, so that shards stay alike and no device loses a label; passes go on while they
    move anything.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow  # takes a while to come

    counts = counts.astype(np.int64)
    devices, labels = counts.shape
    size, rest = divmod(int(counts.sum()), devices)
    target = np.full(devices, size, np.int64)
    target[np.argsort(-counts.sum(axis=1), kind="stable")[:rest]] += 1  # the largest keep what cannot be divided
    k, label = np.nonzero(counts)
    source, sink = devices + labels, devices + labels + 1
    while True:
        over = counts.sum(axis=1) - target
        if not over.any():
            return counts
        half = counts[k, label] // 2
        give, take = np.flatnonzero(over > 0), np.flatnonzero(over < 0)
        rows = np.concatenate([np.full(len(give), source), k, devices + label, take])
        columns = np.concatenate([give, devices + label, k, np.full(len(take), sink)])
        capacity = np.concatenate([over[give], half, half, -over[take]]).astype(np.int32)
        graph = csr_array((capacity, (rows, columns)), shape=(sink + 1, sink + 1))
        found = maximum_flow(graph, source, sink)
        if not found.flow_value:
            return counts
        flow = found.flow.tocoo()  # net: what a device takes from a label is negative
        own = (flow.row < devices) & (flow.col >= devices) & (flow.col < source)
        counts[flow.row[own], flow.col[own] - devices] -= flow.data[own]


def _parts_by_size(sizes: Ints, parts: int) -> list[int]:
    """How many of `parts` each block gets: its quota, rounded by largest remainders, but at least 1.

    len(sizes) ≤ parts ≤ Σ sizes, so no block gets more parts than it has samples.
    """
    quota = sizes * parts / sizes.sum()
    given = np.maximum(np.floor(quota).astype(np.int64), 1)
    while (left := parts - int(given.sum())) != 0:
        if left > 0:
            given[np.argsort(given - quota, kind="stable")[:left]] += 1
        else:  # blocks too small for a part of their own have taken one from the others
            given[np.argmax(np.where(given > 1, given - quota, -np.inf))] -= 1
    return given.tolist()


class Minority(Partition):
    """round(share·K) random devices share the samples of `labels` evenly, the rest all others."""

    repeats: ClassVar[bool] = True

    share: float = Field(
        default=0.2,
        strict=True,
        gt=0,
        lt=1,
        description="fraction of the devices that hold the minority labels; above 0, below 1",
    )
    labels: tuple[Annotated[int, Field(strict=True, ge=0, le=65535)], ...] = Field(
        default=(8, 9),
        min_length=1,
        description="the minority labels, which only those devices hold; each 0 to classes − 1",
    )

    @field_validator("labels")
    @classmethod
    def _distinct(cls, labels: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(labels)) < len(labels):
            raise ValueError("every label may be listed once only")
        return labels

    def split(self, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
        if max(self.labels) >= classes:
            raise ScenarioError(
                f"data.partition.labels: label {max(self.labels)} is not in the data set, "
                f"whose labels are 0 to {classes - 1}."
            )
        few = round(self.share * devices)
        if not 0 < few < devices:
            raise ScenarioError(
                f"data.partition.share = {self.share} of {devices} devices is {few} devices; "
                "it must leave at least one device on either side."
            )
        rare = np.isin(labels, self.labels)
        if rare.all() or not rare.any():
            raise ScenarioError(
                f"data.partition.labels = {list(self.labels)} must leave samples on either side, "
                f"but the data set has {'only' if rare.all() else 'no'} samples of them."
            )
        order = rng.permutation(devices)
        owner = np.empty(len(labels), np.int32)
        _deal(np.flatnonzero(rare), order[:few], owner, rng)
        _deal(np.flatnonzero(~rare), order[few:], owner, rng)
        return owner


class Dirichlet(Partition):
    """Each device wishes for label proportions p_k ~ Dir(α, …, α); all devices have the same size within 1.

    Devices draw their labels from p_k, and each sample goes to one device only. Once a label has run out, the
    places still open are drawn from p_k restricted to the labels left (Hsu, Qi, Brown 2019, arXiv 1909.06335,
    go device by device; here all draw at once, and a label too few is dealt among its takers at random).
    Edge rule: a device that wishes for none of the labels left draws in proportion to what is left.
    """

    repeats: ClassVar[bool] = True

    alpha: float = Field(
        default=0.5,
        strict=True,
        ge=1e-3,
        le=1e6,
        description="concentration of the label proportions, small is skewed; 0.001 to 1e6",
    )

    def split(self, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
        places = np.bincount(_shares(len(labels), devices), minlength=devices)
        wish = rng.dirichlet(np.full(classes, self.alpha), devices)
        pool = np.bincount(labels, minlength=classes)
        taken = np.zeros((devices, classes), np.int64)
        # Every pass fills all open places or exhausts a label, so there are at most `classes` passes.
        while places.any():
            weights = np.where(pool > 0, wish, 0.0)
            weights[weights.sum(axis=1) == 0] = pool
            drawn = rng.multinomial(places, weights / weights.sum(axis=1, keepdims=True))
            for label in np.flatnonzero(drawn.sum(axis=0) > pool):
                drawn[:, label] = rng.multivariate_hypergeometric(drawn[:, label], int(pool[label]))
            taken += drawn
            pool -= drawn.sum(axis=0)
            places -= drawn.sum(axis=1)
        owner = np.empty(len(labels), np.int32)
        for label in range(classes):
            members = rng.permutation(np.flatnonzero(labels == label))
            owner[members] = np.repeat(np.arange(devices, dtype=np.int32), taken[:, label])
        return owner


class Natural(Partition):
    """Device k holds what owner k of the data set recorded; for data sets that tell the owners (hapt, or owner_train).

    Edge rule: with fewer devices than owners, the samples of the owners K, K + 1, … reach nobody.
    """

    def split(self, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
        raise ScenarioError(
            "data.partition.kind: natural needs a data set that tells who recorded each sample: hapt, or an .npz file "
            "with owner_train"
        )

    def owners(
        self, recording: Recording, labels: Labels, devices: int, classes: int, rng: np.random.Generator
    ) -> Owner:
        if recording.owner is None:
            return self.split(labels, devices, classes, rng)  # which says what is missing
        known = int(recording.owner.max()) + 1
        if devices > known:
            raise ScenarioError(
                f"system.devices: must be at most {known} with the partition natural, one for each owner in the data "
                f"set, not {devices}"
            )
        return np.where(recording.owner < devices, recording.owner, np.int32(-1)).astype(np.int32)


PARTITIONS = Kind(
    "partition",
    "partitions",
    Partition,
    {"iid": IID, "digits": Digits, "minority": Minority, "dirichlet": Dirichlet, "natural": Natural},
)
