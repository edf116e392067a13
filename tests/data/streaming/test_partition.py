"""Partitions: who owns what, checked by counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feelstream.data.streaming.partition import IID, Digits, Dirichlet, Minority, Partition


def split(partition: Partition, labels: np.ndarray, devices: int, classes: int = 10, seed: int = 0) -> np.ndarray:
    owner = partition.split(labels.astype(np.uint8), devices, classes, np.random.default_rng(seed))
    assert owner.dtype == np.int32
    assert owner.shape == labels.shape
    return owner


def holdings(owner: np.ndarray, labels: np.ndarray, devices: int, classes: int = 10) -> np.ndarray:
    """Label counts of each device, one sample after another."""
    counts = np.zeros((devices, classes), int)
    for device, label in zip(owner, labels, strict=True):
        counts[device, label] += 1
    return counts


@pytest.mark.parametrize("partition", [IID(), Dirichlet(alpha=0.1), Dirichlet(alpha=100.0)])
@settings(max_examples=40, deadline=None)
@given(devices=st.integers(1, 30), samples=st.integers(0, 200), seed=st.integers(0, 2**32))
def test_every_sample_is_given_and_sizes_differ_by_at_most_one(
    partition: Partition, devices: int, samples: int, seed: int
) -> None:
    labels = np.random.default_rng(seed).integers(0, 10, samples)
    owner = split(partition, labels, devices, seed=seed)
    assert ((owner >= 0) & (owner < devices)).all()
    sizes = np.bincount(owner, minlength=devices)
    assert sizes.max() - sizes.min() <= 1


@settings(max_examples=60, deadline=None)
@given(devices=st.integers(1, 12), per_device=st.integers(1, 4), data=st.data())
def test_digits_never_gives_a_device_more_labels(devices: int, per_device: int, data: st.DataObject) -> None:
    shards, classes = devices * per_device, 10
    labels = np.array(data.draw(st.lists(st.integers(0, classes - 1), min_size=shards, max_size=200)), np.uint8)
    owner = split(Digits(per_device=per_device), labels, devices, seed=1)
    counts = holdings(owner[owner >= 0], labels[owner >= 0], devices)
    assert ((counts > 0).sum(axis=1) <= per_device).all()
    # Everyone holds something, and only labels that are too many for K·m shards are held by nobody.
    assert (counts.sum(axis=1) > 0).all()
    present = len(np.unique(labels))
    assert (counts.sum(axis=0) > 0).sum() == min(present, shards)
    assert (owner >= 0).all() or present > shards


@settings(max_examples=40, deadline=None)
@given(devices=st.integers(1, 12), per_device=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_equal_sizes_move_samples_within_labels_only(devices: int, per_device: int, seed: int) -> None:
    """No device gets another label or loses one, every sample keeps an owner, and sizes only come closer."""
    labels = np.random.default_rng(seed).integers(0, 10, 40 * devices).astype(np.uint8)
    before = split(Digits(per_device=per_device), labels, devices, seed=1)
    after = split(Digits(per_device=per_device, sizes="equal"), labels, devices, seed=1)
    assert ((before >= 0) == (after >= 0)).all()
    kept = before >= 0
    counts = [holdings(owner[kept], labels[kept], devices) for owner in (before, after)]
    assert ((counts[0] > 0) == (counts[1] > 0)).all()
    sizes = [each.sum(axis=1) for each in counts]
    assert np.abs(sizes[1] - sizes[1].mean()).sum() <= np.abs(sizes[0] - sizes[0].mean()).sum() + devices
    if per_device == 1:
        return  # a device can only exchange samples with others of its one label
    if devices * per_device >= 30:  # labels connect all devices by then
        assert sizes[1].max() - sizes[1].min() <= 1


@pytest.mark.parametrize("per_device", [2, 3])
def test_equal_sizes_are_the_papers_1500_with_the_counts_of_mnist(per_device: int) -> None:
    mnist = np.array([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
    labels = np.repeat(np.arange(10), mnist).astype(np.uint8)
    for seed in range(3):
        owner = split(Digits(per_device=per_device, sizes="equal"), labels, 40, seed=seed)
        counts = holdings(owner, labels, 40)
        assert set(counts.sum(axis=1)) == {1500}
        assert ((counts > 0).sum(axis=1) <= per_device).all()
    # Of the 120 shards a label with 5,421 samples gets 11 of 493 and one with 6,742 gets 13 of 519.
    sizes = holdings(split(Digits(per_device=3), labels, 40), labels, 40).sum(axis=1)
    assert sizes.max() <= 1.1 * sizes.min()


@pytest.mark.parametrize(("devices", "share", "few"), [(40, 0.2, 8), (10, 0.25, 2), (7, 0.5, 4), (3, 0.4, 1)])
def test_minority_labels_stay_with_the_minority(devices: int, share: float, few: int) -> None:
    labels = np.random.default_rng(3).integers(0, 10, 1000)
    counts = holdings(split(Minority(share=share, labels=(8, 9)), labels, devices), labels, devices)
    minority = counts[:, 8:].sum(axis=1) > 0
    assert minority.sum() == few
    assert (counts[minority, :8] == 0).all()
    for group in (minority, ~minority):
        sizes = counts[group].sum(axis=1)
        assert sizes.max() - sizes.min() <= 1


def test_who_is_in_the_minority_depends_on_the_seed() -> None:
    labels = np.arange(100) % 10
    groups = {frozenset(split(Minority(), labels, 10, seed=seed)[labels >= 8]) for seed in range(20)}
    assert len(groups) > 10


@pytest.mark.parametrize("alpha", [0.01, 0.5, 1e6])
def test_dirichlet_proportions_have_the_moments_of_the_law(alpha: float) -> None:
    # With labels in plenty no device is cut short, so the share p of a label has mean 1/m and
    # E[n(n−1)]/(s(s−1)) = E[p²] = (α+1)/(m(mα+1)) for the n of s samples that have it.
    classes, devices, size = 4, 4000, 20
    labels = np.arange(devices * size) % classes
    counts = holdings(split(Dirichlet(alpha=alpha), labels, devices, classes), labels, devices, classes)
    second = (counts * (counts - 1.0)).mean() / (size * (size - 1))
    assert second == pytest.approx((alpha + 1) / (classes * (classes * alpha + 1)), rel=0.05)
    assert counts.mean(axis=0) == pytest.approx(np.full(classes, size / classes))
