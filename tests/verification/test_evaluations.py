"""`verify` on what evaluators measured: every number that follows from another is caught where it is changed."""

from __future__ import annotations

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
    "learning.engine=native",
    "learning.eval_every=3",
    'learning.evaluators=["test", "stream", "devices", "classes"]',
    "learning.steps=2",
    "learning.lr=0.3",
    "data.partition.kind=digits",
)
MEASURED = [name for name, column in ROUND_COLUMNS.items() if column.when]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluations") / "run"
    run = simulate_in(path, SCENARIO, 4)
    assert run.rounds["forgetting"].drop_nulls().max() > 0  # type: ignore[operator]  # there is something to forget
    assert verify(path).ok
    return path


def changed(stored: Path, to: Path, table: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Path:
    """A copy of the run with another table, sealed as if it had been written so."""
    shutil.copytree(stored, to)
    change(pl.read_parquet(to / table)).write_parquet(to / table)
    return seal(to)


@pytest.mark.parametrize("column", MEASURED)
@pytest.mark.parametrize("by", [1e-6, None, "in every round"])
def test_a_changed_number_is_found(stored: Path, tmp_path: Path, column: str, by: float | str | None) -> None:
    here = pl.col("round") == 6
    value = pl.col(column).fill_null(0.5) if isinstance(by, str) else pl.col(column) + by if by else pl.lit(None)
    when = pl.lit(True) if isinstance(by, str) else here
    told = changed(
        stored,
        tmp_path / "run",
        "rounds.parquet",
        lambda rounds: rounds.with_columns(pl.when(when).then(value).otherwise(pl.col(column)).alias(column)),
    )
    found = verify(told).disagreement
    assert found is not None
    assert (found.round, found.field) == (1 if isinstance(by, str) else 6, column)


ARRAYS = {
    "the loss of a device": ("stream", "loss", 0.1, "stream_loss"),
    "its accuracy": ("stream", "accuracy", 0.01, "stream_accuracy"),
    "its accuracy for another evaluator": ("devices", "accuracy", 0.01, "device_accuracy_mean"),
    "recall": ("classes", "recall", -1e-3, "forgetting"),
    "the confusion matrix": ("classes", "confusion", 1.0, "forgetting"),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_a_changed_array_is_found(stored: Path, tmp_path: Path, what: str) -> None:
    evaluator, name, by, field = ARRAYS[what]

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        here = (pl.col("evaluator") == evaluator) & (pl.col("name") == name) & (pl.col("round") == 8)
        first = here & pl.col("value").is_not_null() & (here & pl.col("value").is_not_null()).cum_sum().eq(1)
        value = pl.when(first).then(pl.col("value") + by).otherwise(pl.col("value"))
        assert rows.select(first.sum()).item() == 1
        return rows.with_columns(value.alias("value"))

    found = verify(changed(stored, tmp_path / "run", "evaluations.parquet", change)).disagreement
    assert found is not None
    assert (found.round, found.field) == (8, field)


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
def test_a_table_that_is_not_whole_is_refused(
    stored: Path, tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], expected: str
) -> None:
    with pytest.raises(RunError, match=expected):
        verify(changed(stored, tmp_path / "run", "evaluations.parquet", change))


def test_the_table_must_be_there_and_be_the_one_that_was_written(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "gone")
    (tmp_path / "gone" / "evaluations.parquet").unlink()
    with pytest.raises(RunError, match=r"evaluations\.parquet is missing"):
        verify(tmp_path / "gone")
    shutil.copytree(stored, tmp_path / "damaged")
    content = bytearray((tmp_path / "damaged" / "evaluations.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "damaged" / "evaluations.parquet").write_bytes(content)
    with pytest.raises(RunError, match=r"evaluations\.parquet is damaged or was changed"):
        verify(tmp_path / "damaged")
    shutil.copytree(stored, tmp_path / "unlisted")
    (tmp_path / "unlisted" / "evaluations.parquet").unlink()
    seal(tmp_path / "unlisted")
    with pytest.raises(RunError, match=r"lacks the SHA-256 of .*evaluations.parquet"):
        verify(tmp_path / "unlisted")


def test_without_device_rows_there_are_no_arrays_and_the_numbers_are_checked(tmp_path: Path) -> None:
    run = simulate_in(tmp_path / "run", SCENARIO.with_(level="rounds"), 4)
    assert run.evaluations is None
    assert not (tmp_path / "run" / "evaluations.parquet").exists()
    report = verify(tmp_path / "run")
    assert report.ok, str(report)
    told = changed(
        tmp_path / "run",
        tmp_path / "changed",
        "rounds.parquet",
        lambda rounds: rounds.with_columns(worst_tenth=pl.lit(1.5)),
    )
    found = verify(told).disagreement
    assert found is not None
    assert found.field == "worst_tenth"


def test_a_run_that_learns_nothing_has_empty_columns(tmp_path: Path) -> None:
    run = simulate_in(tmp_path / "run", SCENARIO.with_(engine="none"), 4)
    assert all(run.rounds[name].null_count() == 8 for name in MEASURED)
    assert verify(tmp_path / "run").ok
