"""Results of many runs are read from their index, and only where every file is the one that the index was made of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from feelstream import preset
from feelstream.experiment import Arm, Plan, Results, execute, gathering, index, load, store
from feelstream.report.origin import origin
from feelstream.run.files import read_json, write_sealed

SMALL = ("system.rounds=3", "system.devices=4", "data.samples=100", "learning.engine=none", "trace.level=rounds")
SEEDS = (3, 0, 1)


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "LEAST_RUNS", 1)


def plan(seeds: tuple[int, ...] = SEEDS, policies: tuple[str, ...] = ("lyapunov", "random")) -> Plan:
    arms = tuple(Arm(name, preset("tiny", [*SMALL, f"policy.name={name}"])) for name in policies)
    return Plan("a few", arms, seeds)


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, pl.DataFrame]:
    """Results with their index, and the rows that are in the runs' own files."""
    results = execute(plan(), tmp_path, workers=1)
    table = results.rounds()
    assert (tmp_path / "index" / "runs.json").is_file()
    return tmp_path, table


def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The run directories that are looked into from now on, other than by hashing."""
    seen: list[Path] = []

    def examined(directory: Path, original: Any = store.examined) -> Any:
        seen.append(directory)
        return original(directory)

    monkeypatch.setattr(store, "examined", examined)
    return seen


def by_files(out: Path) -> pl.DataFrame:
    """The same table without the index: run by run."""
    results = load(out)
    rows = [
        results.run(arm, seed).rounds.select(pl.lit(arm).alias("arm"), pl.lit(seed, pl.Int64).alias("seed"), pl.all())
        for arm, seed in results.finished
    ]
    return pl.concat(rows, how="diagonal")


def test_the_index_gives_what_the_files_hold(made: tuple[Path, pl.DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    out, table = made
    seen = parsed(monkeypatch)
    opened = load(out)
    assert_frame_equal(opened.rounds(), table)
    assert seen == []
    assert_frame_equal(by_files(out), table)
    assert opened.finished == [(arm, seed) for arm in ("lyapunov", "random") for seed in sorted(SEEDS)]
    fresh = Results(opened.plan, opened.directories, [])  # knows nothing, so it reads every run.json
    assert origin(opened) == origin(fresh)


def test_a_changed_run_is_read_from_its_own_files(
    made: tuple[Path, pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same length, same times of change: only the bytes say so."""
    out, table = made
    path = load(out).directories["random", 0]
    file = path / "rounds.parquet"
    other = pl.read_parquet(file).with_columns(pl.col("energy_mean_j") + 1)
    times = file.stat()
    other.write_parquet(file)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [failure.seed for failure in load(out).failures] == [0]
    assert "rounds.parquet is damaged" in load(out).failures[0].reason
    about = read_json(path / "run.json")
    about["digests"]["rounds.parquet"] = index._digest(str(file))
    write_sealed(path / "run.json", about)
    seen = parsed(monkeypatch)
    again = load(out)
    assert seen == [path]
    assert not again.failures
    changed = again.rounds().filter(arm="random", seed=0)["energy_mean_j"]
    assert_frame_equal(changed.to_frame(), (table.filter(arm="random", seed=0)["energy_mean_j"] + 1).to_frame())
    assert_frame_equal(load(out).rounds(), again.rounds())
    assert seen == [path]  # the index was brought up to date


def test_a_removed_run_is_missing(made: tuple[Path, pl.DataFrame]) -> None:
    out, table = made
    (load(out).directories["lyapunov", 3] / "rounds.parquet").unlink()
    (load(out).directories["lyapunov", 1] / "run.json").unlink()
    again = load(out)
    assert {failure.seed: failure.reason.partition(";")[0].rpartition("/")[2] for failure in again.failures} == {
        3: "rounds.parquet is missing", 1: "not finished yet",
    }  # fmt: skip
    left = table.filter(~((pl.col("arm") == "lyapunov") & pl.col("seed").is_in([1, 3])))
    assert_frame_equal(again.rounds(), left)


@pytest.mark.parametrize("name", ["runs.json", "rounds.parquet"])
@pytest.mark.parametrize("damage", ["cut", "letter", "gone", "directory"])
def test_a_damaged_index_is_not_used(made: tuple[Path, pl.DataFrame], name: str, damage: str) -> None:
    out, table = made
    file = out / "index" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.unlink()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "letter":
        file.write_bytes(content)
    elif damage == "directory":
        file.mkdir()
    assert_frame_equal(load(out).rounds(), table)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"feelstream": "0.0.0"},
        {"run_format": 1},
        {"runs": []},
        {"abouts": []},
        {"columns": [["round", "of another table"]]},
        {"runs": {"x": ["0", {}, 0, {}, 0, 7]}},
    ],
)
def test_an_index_of_another_kind_is_not_used(made: tuple[Path, pl.DataFrame], change: dict[str, Any]) -> None:
    out, table = made
    file = out / "index" / "runs.json"
    write_sealed(file, json.loads(file.read_text()) | change)
    assert_frame_equal(load(out).rounds(), table)


def test_new_runs_join_those_of_the_index(made: tuple[Path, pl.DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = made
    more = plan((0, 7, 1), ("random", "round_robin"))
    seen = parsed(monkeypatch)
    results = execute(more, out, workers=1)
    assert {path.name.partition("-")[0] for path in seen[: len(seen) // 2]} == {"random", "round_robin"}
    table = results.rounds()
    assert_frame_equal(load(out).rounds(), table)
    assert_frame_equal(by_files(out), table)
    assert set(read_json(out / "index" / "runs.json")["runs"]) == {path.name for path in results.directories.values()}


def test_arms_that_share_a_run(tmp_path: Path) -> None:
    scenario = preset("tiny", SMALL)
    results = execute(Plan("twins", (Arm("a", scenario), Arm("b", scenario)), (0, 1)), tmp_path, workers=1)
    table = results.rounds()
    assert table["arm"].unique(maintain_order=True).to_list() == ["a", "b"]
    assert_frame_equal(load(tmp_path).rounds(), table)
    assert_frame_equal(by_files(tmp_path), table)


def test_results_that_nobody_may_write_to_are_read(
    made: tuple[Path, pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, table = made
    (out / "index" / "runs.json").unlink()
    (out / "index" / "rounds.parquet").unlink()
    (out / "index").rmdir()
    (out / "index").write_text("in the way")
    assert_frame_equal(load(out).rounds(), table)
