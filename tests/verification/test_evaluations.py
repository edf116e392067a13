"""`verify` on what evaluators measured: every number and every array is whole, and within its range."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from builders import small
from sealing import seal

from feelstream import verify
from feelstream.columns import ROUND_COLUMNS
from feelstream.errors import RunError
from feelstream.run import simulate_in

SCENARIO = small(
    "learning.engine=native", "learning.eval_every=3", 'learning.evaluators=["test", "stream", "devices", "classes"]',
    "learning.steps=2", "learning.lr=0.3",
)  # fmt: skip
MEASURED = ["accuracy", "loss", *(name for name, column in ROUND_COLUMNS.items() if column.when)]
WRONG = [(6, -1e-6), (6, 1.01), (6, math.inf), (6, math.nan), (6, None), (8, None), (1, 0.5)]  # 8 is the last round
Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluations") / "run"
    simulate_in(path, SCENARIO, 4)
    assert verify(path).ok
    return path


def changed(stored: Path, to: Path, table: str, change: Change) -> Path:
    """A copy of the run with another table, sealed as if it had been written so."""
    shutil.copytree(stored, to)
    change(pl.read_parquet(to / table)).write_parquet(to / table)
    return seal(to)


@pytest.mark.parametrize(
    ("column", "round", "value"),
    [(c, *wrong) for c in MEASURED for wrong in WRONG if not (c.endswith("loss") and wrong[1] == 1.01)],  # any size
)
def test_numbers_are_where_and_what_they_may_be(
    stored: Path, tmp_path: Path, column: str, round: int, value: float | None
) -> None:
    told = pl.when(pl.col("round") == round).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    found = verify(changed(stored, tmp_path / "run", "rounds.parquet", lambda rows: rows.with_columns(told)))
    assert found.disagreement is not None
    assert (found.disagreement.round, found.disagreement.field) == (round, column)


@pytest.mark.parametrize(
    ("evaluator", "name", "value"),
    [
        ("stream", "loss", -0.1), ("stream", "accuracy", 1.1), ("devices", "accuracy", None),
        ("classes", "recall", 2.0), ("classes", "confusion", -1.0), ("classes", "tested", None),
    ],
)  # fmt: skip
def test_an_entry_of_an_array_beyond_its_range_is_found(
    stored: Path, tmp_path: Path, evaluator: str, name: str, value: float | None
) -> None:
    here = (pl.col("evaluator") == evaluator) & (pl.col("name") == name) & (pl.col("round") == 8)
    first = here & pl.col("value").is_not_null() & (here & pl.col("value").is_not_null()).cum_sum().eq(1)
    told = pl.when(first).then(pl.lit(value)).otherwise(pl.col("value")).alias("value")
    found = verify(changed(stored, tmp_path / "run", "evaluations.parquet", lambda rows: rows.with_columns(told)))
    assert found.disagreement is not None
    field = f"{evaluator}: {name}" if evaluator != "classes" else name
    assert (found.disagreement.round, found.disagreement.field) == (8, field)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: rows.head(len(rows) - 1), "not whole"),
        (lambda rows: rows.filter(pl.col("name") != "recall"), "must give 10 values of 'recall'"),
        (lambda rows: rows.with_columns(round=pl.col("round") - 1), "not whole"),
        (lambda rows: rows.with_columns(index=pl.col("index") + 1), "not counted from 0"),
        (lambda rows: rows.with_columns(value=pl.lit(float("inf"))), "a value that is not finite"),
        (lambda rows: rows.with_columns(evaluator=pl.lit("theirs")), "arrays of 'theirs'"),
        (lambda rows: rows.drop("index"), "must have the columns"),
    ],
)
def test_a_table_that_is_not_whole_is_refused(stored: Path, tmp_path: Path, change: Change, expected: str) -> None:
    with pytest.raises(RunError, match=expected):
        verify(changed(stored, tmp_path / "run", "evaluations.parquet", change))


def test_a_table_that_belongs_to_the_run_must_be_listed(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "run")
    (tmp_path / "run" / "evaluations.parquet").unlink()
    with pytest.raises(RunError, match=r"lacks the SHA-256 of .*evaluations.parquet"):
        verify(seal(tmp_path / "run"))


def test_without_device_rows_there_are_no_arrays_and_without_learning_no_numbers(tmp_path: Path) -> None:
    run = simulate_in(tmp_path / "rounds", SCENARIO.with_(level="rounds"), 4)
    assert run.evaluations is None
    assert not (tmp_path / "rounds" / "evaluations.parquet").exists()
    assert verify(tmp_path / "rounds").ok
    run = simulate_in(tmp_path / "run", SCENARIO.with_(engine="none"), 4)
    assert all(run.rounds[name].null_count() == 8 for name in MEASURED)
    assert verify(tmp_path / "run").ok
