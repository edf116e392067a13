"""Natural streams: the recorded owner and the recorded time of every sample, against lists in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import devices_of
from hypothesis import given
from hypothesis import strategies as st
from recorded import series_of_five
from streams import held_by_round, stream_of

import feelstream as fs
from feelstream.data.datasets.dataset import Recording
from feelstream.data.streaming.partition import Natural
from feelstream.data.streaming.processes import RecordedArrivals, Uniform
from feelstream.errors import ScenarioError
from feelstream.run import simulate_in

ROUNDS, ROUND_S = 6, 2.0


def arrived(owner: list[int], times: list[float], devices: int, arrivals: RecordedArrivals, seed: int = 0) -> Any:
    stream = stream_of(
        arrivals, partition=Natural(), samples=len(owner), devices=devices, rounds=ROUNDS, round_s=ROUND_S, seed=seed,
        recording=Recording(np.array(owner, np.int32), np.array(times)),
    )  # fmt: skip
    return held_by_round(stream, ROUNDS, devices)


recordings = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0, 20).map(lambda s: round(s, 2))), min_size=1, max_size=30
)


@given(recordings, st.sampled_from([0.5, 1.0, 3.0, "fit"]), st.integers(1, 3))
def test_every_sample_arrives_at_its_owner_in_the_round_of_its_time(recorded, speed, devices) -> None:
    owners = sorted({owner for owner, _ in recorded})
    owner = [owners.index(who) for who, _ in recorded]
    devices, times = min(devices, len(owners)), [time for _, time in recorded]
    # A sample counts to the scale if its owner takes part.
    last = max(time for who, time in zip(owner, times, strict=True) if who < devices)
    factor = (ROUNDS * ROUND_S / last if last else 0.0) if speed == "fit" else 1 / speed
    found = arrived(owner, times, devices, RecordedArrivals(speed=speed))
    for t in range(ROUNDS):
        for device in range(devices):
            mine = sorted((times[i], i) for i in range(len(owner)) if owner[i] == device)
            due = [i for time, i in mine if time * factor <= (t + 1) * ROUND_S * (1 + 1e-12)]
            assert found[t][device] == due
    if speed == "fit":
        assert sum(map(len, found[-1])) == sum(who < devices for who in owner)


def test_spread_recordings_move_as_a_whole_and_stay_within_the_run() -> None:
    owner, times = [0] * 5 + [1] * 5, [0.0, 1.0, 2.0, 3.0, 4.0] * 2
    starts = set()
    for seed in range(30):
        found = arrived(owner, times, 2, RecordedArrivals(start="spread"), seed)
        assert found == arrived(owner, times, 2, RecordedArrivals(start="spread"), seed)
        assert found[-1] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
        for device in (0, 1):
            counts = [len(found[t][device]) for t in range(ROUNDS)]
            first = next(t for t, count in enumerate(counts) if count)
            starts.add(first)
            # Samples a second apart and rounds of two seconds: all five are there within three rounds.
            assert counts[min(first + 2, ROUNDS - 1)] == 5
    assert starts == {0, 1, 2, 3}  # offsets are U(0, 8) s: four seconds of recording fit a run of twelve


def test_recorded_times_go_with_any_partition() -> None:
    times = np.arange(40, dtype=np.float64) * 0.25
    recording = Recording(None, times)
    stream = stream_of(RecordedArrivals(), samples=40, devices=4, rounds=ROUNDS, round_s=ROUND_S, recording=recording)
    for t, held in enumerate(held_by_round(stream, ROUNDS, 4), start=1):
        assert sorted(number for mine in held for number in mine) == [i for i in range(40) if times[i] <= t * ROUND_S]


def test_natural_owners_go_with_drawn_times() -> None:
    recording = Recording(np.arange(40, dtype=np.int32) // 10, None)
    stream = stream_of(Uniform(), partition=Natural(), samples=40, devices=4, rounds=1, recording=recording)
    [held] = held_by_round(stream, 1, 4)
    assert [sorted(mine) for mine in held] == [list(range(10 * k, 10 * k + 10)) for k in range(4)]


NATURAL = ["data.partition.kind=natural", "data.arrivals.kind=recorded", "data.arrivals.speed=fit"]


def natural(path: str, *overrides: str) -> fs.Scenario:
    own = [f"data.dataset={path}", "system.devices=5", "system.rounds=30", "learning.model=har-cnn"]
    return fs.preset("tiny", [*own, *NATURAL, *overrides])


def test_more_devices_than_owners_are_refused(tmp_path: Path) -> None:
    path = series_of_five(tmp_path / "a.npz")
    with pytest.raises(ScenarioError, match=r"system\.devices: must be at most 5 with the partition natural"):
        fs.simulate(natural(path, "system.devices=6"))
    assert fs.simulate(natural(path, "system.devices=2", "learning.engine=none")).rounds["round"].len() == 30


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["lyapunov", "random", "oort"])
def test_a_natural_stream_is_learned_and_verifies(policy: str, tmp_path: Path) -> None:
    scenario = natural(series_of_five(tmp_path / "a.npz"), f"policy.name={policy}", "learning.lr=0.1")
    run = simulate_in(tmp_path / "run", scenario, 1)
    assert run.rounds["accuracy"][-1] > 0.6  # three classes: chance is 0.33
    assert fs.verify(tmp_path / "run").ok


def test_many_classes_are_scheduled_and_learned(tmp_path: Path) -> None:
    """Beyond 256 classes labels take two bytes; counts must not wrap."""
    rng = np.random.default_rng(0)
    labels = np.arange(3000) % 300
    x = rng.normal(0, 4, (300, 20))[labels] + rng.normal(size=(3000, 20))
    np.savez(tmp_path / "m.npz", x_train=x, y_train=labels, x_test=x[:600], y_test=labels[:600])
    own = [f"data.dataset={tmp_path / 'm.npz'}", "data.arrivals.kind=uniform", "data.fresh=per_round"]
    run = fs.simulate(fs.preset("tiny", [*own, "learning.lr=1.0", "learning.steps=200", "policy.size=5"]))
    assert devices_of(run)["fresh_labels"].to_numpy().sum().tolist() == [10] * 300
    assert run.rounds["accuracy"][-1] > 0.5  # chance is 0.003
