"""The one reader of tables that a scenario names: whatever is in the file, it is read, or refused in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from builders import small

import feelstream as fs
from feelstream import tables
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


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["x", "y"], "must hold numbers in the column value, not String"),
        ([1.0, None], "empty cells in the column value"),
        ([1.0, float("nan")], "says value nan in row 2; it must be 0 to 5"),
        ([float("inf"), 1.0], "says value inf in row 1"),
        ([1.0, 2.5], "must hold whole numbers in the column value"),
        ([1, 6], "says value 6 in row 2"),
    ],
)
def test_a_column_is_what_is_asked_for_or_a_sentence(values: list, says: str, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pl.DataFrame({"value": values}).write_parquet(path)
    with pytest.raises(ScenarioError, match=says):
        TableFile("a.field", path).columns([Wanted("value", 0, 5, whole=True)])


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
