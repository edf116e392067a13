"""Trace replay: what the file says is what arrives, and a bad file is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from streams import held_by_round, stream_of

from feelstream.data.streaming.processes import Trace
from feelstream.data.streaming.stream import Stream
from feelstream.errors import ScenarioError

LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1], np.uint8)  # classes 0 to 3, of which 3 has no sample


def stream(path: Path, devices: int = 3, rounds: int = 4, round_s: float = 0.1, seed: int = 0) -> Stream:
    arrivals, fields = Trace(path=str(path)), {"devices": devices, "rounds": rounds, "round_s": round_s, "seed": seed}
    return stream_of(arrivals, labels=LABELS, classes=4, **fields)


def write(path: Path, table: pl.DataFrame) -> Path:
    if path.suffix == ".csv":
        table.write_csv(path)
    else:
        table.write_parquet(path)
    return path


@pytest.mark.parametrize("name", ["trace.csv", "trace.parquet"])
def test_samples_arrive_as_recorded(tmp_path: Path, name: str) -> None:
    rows = pl.DataFrame(
        {
            # 3·0.1 is the float just above 0.3: the end of round 3, by the same arithmetic as the intervals.
            "time": [0.35, 0.0, 0.1, 0.1000001, 3 * 0.1, 0.3, 0.41, 0.05],
            "device": [0, 2, 0, 0, 0, 0, 1, 2],
            "sample": [7, 5, 1, 2, 4, 3, 0, 5],
        }
    )
    world = stream(write(tmp_path / name, rows))
    assert held_by_round(world, 4, 3) == [
        [[1], [], [5, 5]],
        [[1, 2], [], [5, 5]],
        [[1, 2, 3, 4], [], [5, 5]],
        [[1, 2, 3, 4, 7], [], [5, 5]],
    ]
    assert world.stored_labels.tolist() == [[1, 3, 1, 0], [0, 0, 0, 0], [0, 0, 2, 0]]


def test_labels_are_served_in_turn_by_their_samples(tmp_path: Path) -> None:
    rows = pl.DataFrame({"time": [4, 1, 2, 3, 1], "device": [0, 0, 0, 0, 1], "label": [1, 1, 1, 1, 0]})
    path = write(tmp_path / "trace.csv", rows)
    seen = set()
    for seed in range(60):
        world = stream(path, rounds=4, round_s=1.0, seed=seed)
        ones, zeros, _ = held_by_round(world, 4, 3)[-1]
        assert sorted(ones[:3]) == [1, 4, 7]
        assert ones[3] == ones[0]
        assert zeros[0] in (0, 3, 6)
        seen.add(tuple(ones))
    assert len(seen) == 6  # every order of three samples turns up in 60 seeds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("device,sample\n0,1\n", "has no column time"),
        ("time,sample\n0,1\n", "has no column device"),
        ("time,device\n0,1\n", "has no column sample or label"),
        ("time,device,sample,label\n0,1,0,0\n", "has both columns sample and label"),
        ("time,device,sample\n0,3,1\n", "says device 3 in row 1; it must be 0 to 2"),
        ("time,device,sample\n-1,0,1\n", "it must be 0 or more"),
        ("time,device,sample\n0,0,8\n", "says sample 8 in row 1; it must be 0 to 7"),
        ("time,device,sample\n9,0,8\n", "says sample 8"),  # wrong even if it would never arrive
        ("time,device,label\n0,0,4\n", "says label 4 in row 1; it must be 0 to 3"),
        ("time,device,label\n0,0,3\n", "label 3, of which the data set has no sample"),
        ("time,device,sample\n0,0\n1,2,3,4,5\n", "cannot be read as csv"),
        ("", "cannot be read as csv"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=says) as caught:
        stream(path)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text("time,device,sample\n")
    (tmp_path / "trace.parquet").write_text("no parquet")
    for name, says in [
        ("none.csv", "is not a file"),
        ("trace.txt", "must end in .csv, .jsonl or .parquet"),
        ("trace.parquet", "cannot be read as parquet"),
    ]:
        with pytest.raises(ScenarioError, match=says):
            stream(tmp_path / name)


def test_numbers_beyond_64_bits_do_not_wrap_around(tmp_path: Path) -> None:
    rows = pl.DataFrame({"time": [0.0], "device": [2**64 - 1], "sample": [0]}, schema_overrides={"device": pl.UInt64})
    with pytest.raises(ScenarioError, match="says device 18446744073709551615"):
        stream(write(tmp_path / "trace.parquet", rows))
