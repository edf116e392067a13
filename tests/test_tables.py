"""The one reader of tables that a scenario names: whatever is in the file, it is read, or refused in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from builders import small
from streams import stream_of

import feelstream as fs
from feelstream import tables
from feelstream.data.streaming.processes import Trace
from feelstream.errors import ScenarioError
from feelstream.scenario import Scenario
from feelstream.tables import TableFile, Wanted

ROUNDS = {"round": [1, 2, 3], "device": [0, 1, 5]}
# Every field that names a table, one that is right, and the settings that go with it.
FIELDS: dict[str, tuple[dict[str, list], list[str]]] = {
    "data.arrivals.path": (
        {"time": [0.5, 1.0, 9.0], "device": [0, 1, 2], "sample": [3, 4, 5]},
        ["data.arrivals.kind=trace"],
    ),
    "world.frequency.path": ({**ROUNDS, "f_hz": [1e9, 2e9, 1.2e9]}, ["world.frequency.kind=trace"]),
    "world.availability.path": ({**ROUNDS, "available": [0, 1, 0]}, ["world.availability.kind=trace"]),
    "devices.table": ({"device": list(range(6)), "cycles": [4e8] * 6, "energy_budget_j": [1e-3] * 6}, []),
}


def _scenario(field: str, path: Path) -> Scenario:
    return small(*FIELDS[field][1], f"{field}={path}")


def _written(field: str, path: Path, change: Callable[[pl.DataFrame], pl.DataFrame] = lambda table: table) -> Path:
    table = change(pl.DataFrame(FIELDS[field][0]))
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    return path


@pytest.mark.parametrize("field", FIELDS)
def test_the_same_table_gives_the_same_run_in_either_format(field: str, tmp_path: Path) -> None:
    runs = [
        fs.simulate(_scenario(field, _written(field, tmp_path / name)), 2) for name in ("table.csv", "table.parquet")
    ]
    assert runs[0].rounds.equals(runs[1].rounds)
    assert fs.verify(runs[1].save(tmp_path / "run")).ok


@pytest.mark.parametrize("field", FIELDS)
def test_damaged_parquet_never_ends_the_process(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong bytes all over the file: a table, or a sentence; nothing else is raised, not even a PanicException."""
    intact = _written(field, tmp_path / "table.parquet").read_bytes()
    rng = np.random.default_rng(0)
    outcomes = set()
    monkeypatch.setattr(tables, "_parsed_elsewhere", _parsed_as_elsewhere)
    for attempt in range(40):
        damaged = bytearray(intact)
        for place in rng.integers(0, len(damaged), 1 + attempt % 3):
            damaged[place] ^= int(rng.integers(1, 256))
        path = tmp_path / f"damaged-{attempt}.parquet"
        path.write_bytes(damaged[: len(damaged) - attempt % 5])
        try:
            fs.simulate(_scenario(field, path), 0)
            outcomes.add("read")
        except ScenarioError as problem:
            outcomes.add(str(problem).partition(str(path))[0])
    assert f"{field}: " in outcomes
    assert outcomes <= {"read", f"{field}: "}


def _parsed_as_elsewhere(content: bytes) -> pl.DataFrame:
    """What the other process does, without its start: it must not die of these files, or the test does."""
    try:
        return pl.read_parquet(content)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        raise OSError("it is damaged") from problem


def test_a_parser_that_dies_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written("devices.table", tmp_path / "table.parquet", lambda table: table.reverse())
    monkeypatch.setattr(tables, "PARSER", "import os; os.abort()")
    with pytest.raises(ScenarioError, match=r"^devices\.table: .* cannot be read as parquet: it is damaged"):
        _scenario("devices.table", path)


@pytest.mark.parametrize("field", ["world.frequency.path", "world.availability.path"])
@pytest.mark.parametrize("round", [0, -1, 2**31, 2**63 - 1, 2**64, -(2**100)])
def test_a_round_that_no_run_has_is_refused(field: str, round: int, tmp_path: Path) -> None:
    rounds = pl.Series(["1", "2", str(round)])  # more than 64 bits are read as a number of 128
    path = _written(field, tmp_path / "table.csv", lambda table: table.with_columns(round=rounds))
    with pytest.raises(ScenarioError, match=f"says round {round} in row 3; it must be 1 to 2147483647"):
        fs.simulate(_scenario(field, path))


@pytest.mark.parametrize("field", ["world.frequency.path", "world.availability.path"])
def test_a_round_far_beyond_the_run_costs_nothing_and_changes_nothing(field: str, tmp_path: Path) -> None:
    near = _written(field, tmp_path / "near.csv", lambda table: table.head(2))
    far = _written(
        field, tmp_path / "far.csv", lambda table: table.with_columns(round=pl.Series([1, 2, 10**9]))
    )  # 8 GB, if memory were taken for every round
    one, other = (fs.simulate(_scenario(field, path), 1) for path in (near, far))
    assert one.rounds.equals(other.rounds)


# What one field says of what stands in its file, beyond what the reader says of any.
ARRIVALS, THERE, DEVICES = "data.arrivals.path", "world.availability.path", "devices.table"
TOLD = [
    (ARRIVALS, "device,sample\n0,1\n", "has no column time"),
    (ARRIVALS, "time,sample\n0,1\n", "has no column device"),
    (ARRIVALS, "time,device\n0,1\n", "has no column sample or label"),
    (ARRIVALS, "time,device,sample,label\n0,1,0,0\n", "has both columns sample and label"),
    (ARRIVALS, "time,device,sample\n0,6,1\n", "says device 6 in row 1; it must be 0 to 5"),
    (ARRIVALS, "time,device,sample\n-1,0,1\n", "it must be 0 or more"),
    (
        ARRIVALS,
        "time,device,sample\n9e9,0,240\n",
        "says sample 240 in row 1; it must be 0 to 239",
    ),  # though never there
    (ARRIVALS, "time,device,label\n0,0,10\n", "says label 10 in row 1; it must be 0 to 9"),
    (ARRIVALS, "time,device,sample\n0,0\n1,2,3,4,5\n", "cannot be read as csv"),
    (ARRIVALS, "time,device,sample\n0,18446744073709551615,1\n", "says device 18446744073709551615"),  # no wrap-around
    (ARRIVALS, "", "cannot be read as csv"),
    (THERE, "round,device\n1,0\n", "has no column available; it needs round, device, available"),
    (THERE, "round,device,available\n1,99,1\n", "says device 99 in row 1; it must be 0 to 5"),
    (DEVICES, "device,cycles\n0,1e8\n", "must have one row for each device from 0 to 5"),
    (DEVICES, "device,colour\n0,1\n", "has an unknown column 'colour'"),
    (
        DEVICES,
        "device,cycles\n" + "".join(f"{k},-1\n" for k in range(6)),
        "says cycles -1 in row 1; it must be 1e-100 to",
    ),
    (DEVICES, "device,gain_low_db\n" + "".join(f"{k},9\n" for k in range(6)), "puts gain_low_db above gain_high_db"),
    (DEVICES, "device,cycles\n0,\n", "has empty cells in the column cycles"),
    (DEVICES, "device,cycles\n0,x\n", "must hold numbers in the column cycles, not String"),
    (DEVICES, "device,cycles\n0,NaN\n", "says cycles nan in row 1; it must be 1e-100 to"),
    (DEVICES, "device,cycles\n0.5,1\n", "must hold whole numbers in the column device"),
]


@pytest.mark.parametrize(("field", "text", "says"), TOLD)
def test_a_bad_table_is_told_in_one_sentence(field: str, text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=f"^{field}: .*{says}") as caught:
        fs.simulate(_scenario(field, path))
    assert "\n" not in str(caught.value)


def test_a_label_of_which_there_is_no_sample_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("time,device,label\n0,0,3\n")
    with pytest.raises(ScenarioError, match="asks for label 3, of which the data set has no sample"):
        stream_of(Trace(path=str(path)), labels=np.array([0, 1, 2], np.uint8), classes=4)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none.csv", "is not a file"),
        ("a.txt", "must end in .csv, .jsonl or .parquet"),
        ("a.parquet", "cannot be read as"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("no table")
    (tmp_path / "a.parquet").write_text("no parquet")
    with pytest.raises(ScenarioError, match=says):
        TableFile("a.field", tmp_path / name)


def test_whole_numbers_may_be_written_as_floats_or_truth_values(tmp_path: Path) -> None:
    for number, values in enumerate(([1.0, 0.0], [True, False])):
        path = tmp_path / f"{number}.parquet"
        pl.DataFrame({"value": values}).write_parquet(path)
        (found,) = TableFile("a.field", path).columns([Wanted("value", 0, 1, whole=True)])
        assert (found.dtype, found.tolist()) == (np.int64, [1, 0])


def test_another_content_with_the_same_times_is_another_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    found = []
    for value in (1, 2):
        path.write_text(f"value\n{value}\n")
        os.utime(path, ns=(10**18, 10**18))
        found.append(TableFile("a.field", path).columns([Wanted("value")])[0].tolist())
    assert found == [[1.0], [2.0]]
