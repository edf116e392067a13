"""Orders: every order is a permutation of each shard with the label sequence it promises."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from feelstream.data.streaming.order import Order, Shards, arrange


def sequences(shards: Shards, labels: np.ndarray) -> list[np.ndarray]:
    """The labels of each device in order of arrival."""
    return [labels[part] for part in np.split(shards.samples, shards.offsets[1:-1])]


@pytest.mark.parametrize("order", get_args(Order))
@settings(max_examples=40, deadline=None)
@given(
    owner=st.lists(st.integers(-1, 5), max_size=60),
    stay=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_a_device_gets_its_own_samples_once_each(order: Order, owner: list[int], stay: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    owners = np.array(owner, np.int32)
    labels = rng.integers(0, 3, len(owners)).astype(np.uint8)
    shards = arrange(owners, labels, 6, 3, order, stay, rng)
    assert shards.offsets[0] == 0
    assert shards.offsets[-1] == len(shards.samples)
    for device in range(6):
        mine = shards.samples[shards.offsets[device] : shards.offsets[device + 1]]
        assert sorted(mine) == list(np.flatnonzero(owners == device))

    for sequence in sequences(shards, labels):
        repeats = sequence[1:] == sequence[:-1]
        runs = 1 + np.count_nonzero(~repeats) if len(sequence) else 0
        if order in ("label", "label_from_any"):
            steps = np.diff(sequence.astype(int)) % 3
            assert steps.sum() <= 2  # once around the cycle at most
        if order == "label_ascending" and len(sequence):
            rest = sequence[sequence != sequence[0]]
            assert (np.diff(rest.astype(int)) >= 0).all()
        if order.startswith("label"):
            assert runs == len(set(sequence))
        if order == "markov" and stay == 1.0:
            assert runs == len(set(sequence))
        if order == "markov" and stay == 0.0:
            for place in np.flatnonzero(repeats):
                assert len(set(sequence[place:])) == 1  # repeats only when nothing else is left


def test_every_sequence_of_labels_has_the_share_that_its_rule_says() -> None:
    """Devices that hold one sample each of the labels 1, 3 and 4 of five."""
    devices, held = 6000, (1, 3, 4)
    owner = np.repeat(np.arange(devices, dtype=np.int32), 3)
    labels = np.tile(np.array(held, np.uint8), devices)
    sixth, third = 1 / 6, 1 / 3
    cyclic, ascending = [(1, 3, 4), (3, 4, 1), (4, 1, 3)], [(1, 3, 4), (3, 1, 4), (4, 1, 3)]
    expected: dict[Order, dict[tuple[int, ...], float]] = {
        "label": dict.fromkeys(cyclic, third),
        # of five first labels, 0 and 1 lead to 1, 2 and 3 to 3, and 4 to itself
        "label_from_any": dict(zip(cyclic, (2 / 5, 2 / 5, 1 / 5), strict=True)),
        "label_ascending": dict.fromkeys(ascending, third),
        **dict.fromkeys(("label_random", "shuffled", "markov"), dict.fromkeys(permutations(held), sixth)),
    }
    for order, shares in expected.items():
        shards = arrange(owner, labels, devices, 5, order, 0.5, np.random.default_rng(3))
        found = Counter(tuple(sequence.tolist()) for sequence in sequences(shards, labels))
        assert set(found) == set(shares)
        assert chisquare([found[each] for each in shares], [devices * share for share in shares.values()]).pvalue > 1e-3


@pytest.mark.parametrize("stay", [0.0, 0.3, 0.9])
def test_markov_stays_with_its_probability_and_moves_uniformly(stay: float) -> None:
    devices, classes, each = 300, 5, 200
    owner = np.repeat(np.arange(devices, dtype=np.int32), classes * each)
    labels = np.tile(np.repeat(np.arange(classes, dtype=np.uint8), each), devices)
    shards = arrange(owner, labels, devices, classes, "markov", stay, np.random.default_rng(2))
    # Of the first 150 samples no label can have run out, so this is the chain itself.
    begin = labels[shards.samples].reshape(devices, -1)[:, :150].astype(int)
    steps = (begin[:, 1:] - begin[:, :-1]) % classes
    n = steps.size
    assert (steps == 0).mean() == pytest.approx(stay, abs=5 * (stay * (1 - stay) / n) ** 0.5)
    assert chisquare(np.bincount(steps.ravel(), minlength=classes)[1:]).pvalue > 1e-3
