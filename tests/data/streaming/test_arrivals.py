"""In which order a shard arrives, and when: the laws of orders and processes, and plans that are kept.

In which round what arrives is in test_stream.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare, kstest, truncnorm
from streams import context, held_by_round, stream_of

from feelstream.data.streaming.arrivals import Arrivals, ArrivalSchedule, schedule_of
from feelstream.data.streaming.order import Order, Shards, arrange
from feelstream.data.streaming.partition import Digits
from feelstream.data.streaming.processes import Bursts, Poisson, Trace, TruncatedNormal, Uniform


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


@pytest.mark.parametrize("sigma", [0.001, 0.03, 0.5, 1000.0])
def test_truncated_normal_follows_its_law(sigma: float) -> None:
    devices, each, run_s = 50, 400, 160.0
    sizes = np.full(devices, each)
    times = TruncatedNormal(sigma=sigma).times(sizes, run_s, np.random.default_rng(5)).reshape(devices, each)
    mean = np.random.default_rng(5).random(devices)[:, None] * run_s  # the means are the first draws
    scale = sigma * run_s
    uniform = truncnorm.cdf(times, -mean / scale, (run_s - mean) / scale, loc=mean, scale=scale)
    assert kstest(uniform.ravel(), "uniform").pvalue > 1e-3
    assert kstest(mean.ravel() / run_s, "uniform").pvalue > 1e-3


def test_uniform_follows_its_law() -> None:
    times = Uniform().times(np.array([3000, 0, 2000]), 8.0, np.random.default_rng(6))
    assert kstest(times / 8.0, "uniform").pvalue > 1e-3


def test_poisson_has_its_mean_and_variance() -> None:
    n = 100_000
    counts, _ = Poisson(rate=5.0).counts(1, np.empty(0), n, np.random.default_rng(7))
    assert counts.mean() == pytest.approx(5, abs=5 * (5 / n) ** 0.5)
    assert counts.var() == pytest.approx(5, rel=0.05)


def test_bursts_start_stationary_and_switch_with_their_probabilities() -> None:
    n, rng = 100_000, np.random.default_rng(8)
    bursts = Bursts(rate=50.0, p_on=0.1, p_off=0.3)  # e⁻⁵⁰: a device that is on has arrivals
    state = bursts.init(n, rng)
    seen = []
    for round in range(1, 5):
        counts, state = bursts.counts(round, state, n, rng)
        assert (counts > 0).mean() == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / n) ** 0.5)
        assert counts[counts > 0].mean() == pytest.approx(50, rel=0.01)
        seen.append(counts > 0)
    for before, after in pairwise(seen):
        assert after[~before].mean() == pytest.approx(0.1, abs=0.01)
        assert after[before].mean() == pytest.approx(0.7, abs=0.02)


LABELS = np.arange(300, dtype=np.uint8) % 10
USUAL = context(labels=LABELS, classes=10, devices=5, rounds=12, seed=3)


def arrays(plan: ArrivalSchedule) -> list[NDArray]:
    assert plan.events is not None
    return [plan.shards.samples, plan.shards.offsets, plan.events.devices, plan.events.starts]


@pytest.mark.parametrize(
    ("arrivals", "changed"),
    [
        (TruncatedNormal(sigma=0.2), {}),
        (TruncatedNormal(bounds="clip"), {}),
        (TruncatedNormal(order="shuffled"), {}),
        (Uniform(), {}),
        (TruncatedNormal(), {"seed": 4}),
        (TruncatedNormal(), {"rounds": 13}),
        (TruncatedNormal(), {"round_s": 5.0}),
        (TruncatedNormal(), {"devices": 6}),
        (TruncatedNormal(), {"partition": Digits(per_device=2)}),
        (TruncatedNormal(), {"labels": LABELS[::-1].copy()}),
    ],
)
def test_a_plan_is_kept_until_anything_differs(arrivals: Arrivals, changed: dict[str, Any]) -> None:
    first = schedule_of(TruncatedNormal(), USUAL)
    assert schedule_of(TruncatedNormal(), replace(USUAL)) is first
    assert not any(array.flags.writeable for array in arrays(first))
    other = replace(USUAL, **changed)
    for ours, theirs in zip(arrays(schedule_of(arrivals, other)), arrays(arrivals.plan(other)), strict=True):
        assert np.array_equal(ours, theirs)


def test_labels_of_a_trace_are_served_in_turn_by_their_samples(tmp_path: Path) -> None:
    path, seen = tmp_path / "trace.csv", set()
    path.write_text("time,device,label\n4,0,1\n1,0,1\n2,0,1\n3,0,1\n1,1,0\n")
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 1], np.uint8)
    for seed in range(60):
        stream = stream_of(Trace(path=str(path)), labels=labels, classes=3, rounds=4, round_s=1.0, seed=seed)
        ones, zeros, _ = held_by_round(stream, 4, 3)[-1]
        assert sorted(ones[:3]) == [1, 4, 7]
        assert ones[3] == ones[0]
        assert zeros[0] in (0, 3, 6)
        seen.add(tuple(ones))
    assert len(seen) == 6  # every order of three samples turns up in 60 seeds
