"""Arrival processes: their laws, and plans that are kept; in which round what arrives is in test_stream.py."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest, truncnorm
from streams import context, held_by_round, stream_of

from feelstream.data.streaming.arrivals import Arrivals, ArrivalSchedule, schedule_of
from feelstream.data.streaming.partition import Digits
from feelstream.data.streaming.processes import Bursts, Poisson, Trace, TruncatedNormal, Uniform


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
