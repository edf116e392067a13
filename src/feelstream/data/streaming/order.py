"""Orders: in which sequence a device receives the samples of its shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Frozen, Ints, read_only
from feelstream.data.datasets.dataset import Labels
from feelstream.data.streaming.partition import Owner

Order = Literal["label", "label_from_any", "label_ascending", "label_random", "shuffled", "markov"]


@dataclass(frozen=True)
class Shards(Frozen):
    """Every device's samples in the order of arrival, one after another.

    offsets: int64 (K+1,); samples: int32 (n,), device k owns samples[offsets[k]:offsets[k+1]].
    """

    offsets: Ints
    samples: NDArray[np.int32]

    @property
    def sizes(self) -> Ints:
        """Samples per device, int64 (K,)."""
        return read_only(np.diff(self.offsets))


def offsets_of(sizes: Ints) -> Ints:
    """Where each of consecutive blocks begins, and where the last one ends: int64 (K+1,)."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def arrange(
    owner: Owner, labels: Labels, devices: int, classes: int, order: Order, stay: float, rng: np.random.Generator
) -> Shards:
    """The shards of all devices in arrival order.

    label: by label, cyclic, from a first label drawn among those the device holds (the paper's order, which leaves
      open what follows the first label; the next three are other readings of it).
    label_from_any: by label, cyclic, from a first label drawn among all, whether the device holds it or not.
    label_ascending: by label, a first one drawn among those the device holds, then the others from the lowest.
    label_random: by label, in a random order of labels.
    shuffled: a uniformly random order.
    markov: with probability `stay` the label of the sample before, otherwise another of the labels the device
      still has, uniformly. Edge rules: the first label is uniform among the device's; a label that has run
      out is left for one of the remaining, uniformly; the only remaining label stays.
    Within one label the order is always random.
    """
    owned = np.flatnonzero(owner >= 0)
    sizes = np.bincount(owner[owned], minlength=devices)
    if order == "shuffled":
        samples = _grouped(owned, owner.astype(np.int64), rng)
    elif order != "markov":
        turns = _turns(order, owner[owned], labels[owned], devices, classes, rng)
        samples = _grouped(owned, owner * np.int64(classes) + turns[owner, labels], rng)
    else:
        by_label = _grouped(owned, owner * np.int64(classes) + labels, rng)
        samples = _markov(by_label, owner, labels, sizes, classes, stay, rng)
    return Shards(offsets_of(sizes), samples.astype(np.int32))


def _turns(order: Order, owner: Owner, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Ints:
    """When each label's turn comes on each device, int64 (K, classes), one of 0 … classes − 1."""
    every = np.arange(classes)
    if order == "label_random":
        return rng.permuted(np.tile(every, (devices, 1)), axis=1)
    if order == "label_from_any":
        first = rng.integers(0, classes, devices)
    else:
        first = _first_labels(owner, labels, devices, classes, rng)
    if order == "label_ascending":
        before = every < first[:, None]  # these come one turn later, behind the first
        return np.where(every == first[:, None], 0, every + before)
    return (every - first[:, None]) % classes


def _first_labels(owner: Owner, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Ints:
    """For each device one of the labels it holds, all equally likely; 0 for a device without samples."""
    held = np.zeros((devices, classes), bool)
    held[owner, labels] = True
    rank = (rng.random(devices) * held.sum(axis=1)).astype(np.int64)
    return (np.cumsum(held, axis=1) > rank[:, None]).argmax(axis=1)


def _grouped(members: Ints, group: Ints, rng: np.random.Generator) -> Ints:
    """`members` sorted by their group number, in random order within each group."""
    mixed = rng.permutation(members)
    # Group and place in one number: all differ, so every sort gives the same and the fastest may do.
    keys = group[mixed] * len(mixed) + np.arange(len(mixed))
    keys.sort()
    return mixed[keys % max(len(mixed), 1)]


def _markov(
    by_label: Ints, owner: Owner, labels: Labels, sizes: Ints, classes: int, stay: float, rng: np.random.Generator
) -> Ints:
    """Reorder samples grouped by (device, label) along a Markov chain of labels, all devices at once."""
    flat = owner[by_label] * np.int64(classes) + labels[by_label]
    left = np.bincount(flat, minlength=len(sizes) * classes).reshape(-1, classes)
    following = offsets_of(left.ravel())[:-1].reshape(-1, classes)  # next unused place of each (device, label)
    offsets = offsets_of(sizes)
    ordered = np.empty_like(by_label)

    active = np.flatnonzero(sizes)
    label = np.full(len(sizes), -1)
    for place in range(int(sizes.max(initial=0))):
        active = active[sizes[active] > place]
        now = label[active]
        # The chance to stay is drawn for all, so that the draws do not depend on who has run out.
        leaves = rng.random(len(active)) >= stay
        leaves |= now < 0
        leaves |= left[active, now] == 0
        movers = active[leaves]
        choice = left[movers] > 0
        # −1, before the first sample, would index the last label: hide a present label where there is one.
        had = np.flatnonzero(now[leaves] >= 0)
        choice[had, now[leaves][had]] = False
        options = choice.sum(axis=1)
        can = options > 0
        rank = (rng.random(len(movers)) * options).astype(np.int64)
        chosen = (np.cumsum(choice, axis=1) > rank[:, None]).argmax(axis=1)
        label[movers[can]] = chosen[can]

        now = label[active]
        ordered[offsets[active] + place] = by_label[following[active, now]]
        following[active, now] += 1
        left[active, now] -= 1
    return ordered
