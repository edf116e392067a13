"""What evaluators measured: numbers of rounds.parquet against arrays of evaluations.parquet, and both by themselves."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import polars as pl

from feelstream.columns import EVALUATION_COLUMNS, ROUND_COLUMNS, columns_of
from feelstream.errors import RunError
from feelstream.verification.findings import RELATIVE, Array, Checker, Findings, Stage
from feelstream.verification.reading import Block, Table
from feelstream.verification.stored import StoredSettings

FILE = "evaluations.parquet"
COLUMNS = {name: column.kind for name, column in EVALUATION_COLUMNS.items()}
HAVE_ARRAYS = ("stream", "devices", "classes")  # from which their numbers are recomputed


def evaluated(s: StoredSettings, rounds: Array) -> Array:
    """[R], whether the model was evaluated after each of these rounds."""
    return ((rounds % s.eval_every == 0) | (rounds == s.T)) & s.learns


def has_arrays(s: StoredSettings) -> bool:
    """Whether the run must have an evaluations.parquet; with a user's own evaluator it may have one in any case."""
    return s.trace_level == "full" and s.learns and any(name in s.evaluators for name in HAVE_ARRAYS)


def check_numbers(found: Findings, s: StoredSettings, rounds: Table) -> None:
    """Null where nothing was evaluated, and in their range; of a user's own, the first alone."""
    if "deployed" in s.facts:
        return
    check, due = found.at(Stage.EVALUATION, rounds), evaluated(s, rounds.rounds)
    for name in (name for name in rounds.values if name not in columns_of(ROUND_COLUMNS, ())):
        value, null = rounds[name], rounds.nulls[name]
        rule = f"{name} is stored after every {s.eval_every}. round and the last only"
        check.flag(name, ~null & ~due, np.where(due, "a value", "null"), rule)
        low, high = (0.0, ROUND_COLUMNS[name].most) if name in ROUND_COLUMNS else (-np.inf, np.inf)
        outside = ~null & ~((value >= low) & (value <= high) & np.isfinite(value))
        check.flag(name, outside, np.clip(value, low, high), f"{name} is within its range, and finite")
    if "classes" in s.evaluators:
        missing = rounds.nulls["forgetting"] & due
        check.flag("forgetting", missing, np.array("a value"), "forgetting is never missing where it was evaluated")


class ArrayChecks:
    """The arrays of a run, block by block of its rounds: what they lack, and what follows from them."""

    def __init__(self, found: Findings, s: StoredSettings, directory: Path) -> None:
        self.found, self.s, self.path = found, s, directory / FILE
        self.best: Array | None = None  # recall by class, before the present block
        self.there = self.path.is_file()
        if self.there:
            self._check_shape()

    def _check_shape(self) -> None:
        try:
            table = pl.scan_parquet(self.path, glob=False)
            schema = dict(table.collect_schema())
            # Of an evaluator that the run does not have, or in an order that no run writes.
            names = table.select("evaluator").unique().collect().to_series().to_list() if schema == COLUMNS else []
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            raise RunError(f"{self.path} is damaged: it cannot be read as a Parquet file.") from None
        if schema != COLUMNS:
            raise RunError(f"{self.path} must have the columns {', '.join(COLUMNS)} and no others.")
        if unknown := sorted(set(names) - set(self.s.evaluators), key=str):
            raise RunError(f"{self.path} holds arrays of {unknown[0]!r}, which learning.evaluators does not name.")

    def block(self, block: Block, rounds: Table) -> None:
        """The arrays of the rounds of a block; `rounds` holds the same rounds of rounds.parquet."""
        if not self.there or "deployed" in self.s.facts:
            return
        due = rounds.rounds[evaluated(self.s, rounds.rounds)]
        rows = self._rows(int(rounds.rounds[0]), int(rounds.rounds[-1]))
        self._check_whole(rows, due)
        if not len(due):
            return
        part = _only(rounds, due)
        stored = block["stored"][np.isin(block.rounds, due)]
        check = self.found.at(Stage.EVALUATION, part)
        for name in ("stream", "devices"):
            if name in self.s.evaluators:
                accuracy = self._array(rows, name, "accuracy", due, self.s.K)
                self._check_share(check, f"{name}: accuracy", accuracy, stored)
                (_check_stream if name == "stream" else _check_devices)(self, check, rows, due, stored, accuracy)
        if "classes" in self.s.evaluators and self.s.classes:
            self._check_classes(check, rows, due)

    def _rows(self, first: int, last: int) -> pl.DataFrame:
        try:
            return pl.scan_parquet(self.path, glob=False).filter(pl.col("round").is_between(first, last)).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            raise RunError(f"{self.path} is damaged: its rows cannot be read.") from None

    def _check_whole(self, rows: pl.DataFrame, due: Array) -> None:
        """Every array belongs to a round that was evaluated, and counts its entries from 0."""
        counted = rows.select(
            pl.col("round").is_in(due.tolist()),
            (pl.int_range(pl.len()).over("round", "evaluator", "name") == pl.col("index")).alias("index"),
            (pl.col("value").is_null() | pl.col("value").is_finite()).alias("value"),
        )
        for column, rule in (
            ("round", "a row of a round that was not evaluated"),
            ("index", "an array whose entries are not counted from 0"),
            ("value", "a value that is not finite"),
        ):
            if not counted[column].all():
                raise RunError(f"{self.path} is not whole: it holds {rule}.")

    def _array(self, rows: pl.DataFrame, evaluator: str, name: str, due: Array, length: int) -> Array:
        """[R, length], NaN where there is no value."""
        found = rows.filter((pl.col("evaluator") == evaluator) & (pl.col("name") == name))
        whole = len(found) == len(due) * length
        if not whole or not np.array_equal(found["round"].to_numpy(), np.repeat(due, length)):
            raise RunError(
                f"{self.path} is not whole: {evaluator} must give {length} values of '{name}' for each of the "
                f"{len(due)} evaluated rounds from {due[0]} to {due[-1]}."
            )
        return found["value"].fill_null(float("nan")).to_numpy().reshape(len(due), length)

    @staticmethod
    def _check_share(check: Checker, name: str, share: Array, counts: Array) -> None:
        """A share of so many samples: none where there are none, else a whole number of them."""
        empty = counts == 0
        rule = f"{name} is missing where a device holds nothing, and only there"
        check.flag(name, np.isnan(share) != empty, np.where(empty, np.nan, 0.0), rule, stored=share)
        of_whole = np.where(empty, 0.0, share * counts)
        bad = ~empty & ~(np.abs(of_whole - np.round(of_whole)) <= 1e-6 * np.maximum(counts, 1))
        bad |= ~empty & ~((share >= 0) & (share <= 1))
        check.flag(name, bad, np.round(of_whole) / np.maximum(counts, 1), f"{name} is a share of what is held", share)

    def _check_classes(self, check: Checker, rows: pl.DataFrame, due: Array) -> None:
        m = self.s.classes or 0
        recall = self._array(rows, "classes", "recall", due, m)
        outside = np.asarray(((recall < 0) | (recall > 1)).any(axis=1))
        check.flag("forgetting", outside, np.array("0 to 1"), "recall is between 0 and 1", stored=recall)
        before = np.zeros(m) if self.best is None else self.best
        best = np.fmax.accumulate(np.concatenate([before[None], recall]))[1:]
        self.best = best[-1]
        lost = np.nanmean(np.where(np.isnan(recall), np.nan, best - recall), axis=1)
        rule = "forgetting is the best recall so far minus that of now, mean over classes"
        check.compare("forgetting", lost, rule, scale=1.0)
        if due[-1] == self.s.T:
            self._check_confusion(check, rows, recall[-1])

    def _check_confusion(self, check: Checker, rows: pl.DataFrame, recall: Array) -> None:
        m, last = self.s.classes or 0, np.array([self.s.T])
        confusion = self._array(rows, "classes", "confusion", last, m * m).reshape(m, m)
        tested = self._array(rows, "classes", "tested", last, m)[0]
        at_end = check.table.rounds == self.s.T
        whole = (confusion >= 0).all() and (confusion == np.round(confusion)).all()
        fits = whole and (confusion.sum(axis=1) <= tested).all()
        rule = "the confusion matrix counts samples of the test set, by true class at most as many as there are"
        check.flag("forgetting", at_end & (not fits), np.array("counts"), rule, stored=np.array("confusion"))
        wanted = np.divide(np.diag(confusion), tested, out=np.full(m, np.nan), where=tested > 0)
        same = np.array_equal(np.isnan(recall), np.isnan(wanted)) and np.nanmax(np.abs(recall - wanted)) <= RELATIVE
        rule = "recall is the diagonal of the confusion matrix over how many were tested"
        check.flag("forgetting", at_end & (not same), wanted[None], rule, stored=recall[None])
        if "test" in self.s.evaluators:
            right = np.full(len(at_end), np.trace(confusion) / tested.sum())
            rule = "accuracy is the share of the confusion matrix on its diagonal"
            check.compare("accuracy", right, rule, where=at_end)


def _check_stream(
    arrays: ArrayChecks, check: Checker, rows: pl.DataFrame, due: Array, stored: Array, accuracy: Array
) -> None:
    loss = arrays._array(rows, "stream", "loss", due, arrays.s.K)
    rule = "stream: loss is missing where a device holds nothing, and not negative elsewhere"
    check.flag("stream: loss", ~np.where(stored == 0, np.isnan(loss), loss >= 0), np.array(0.0), rule, stored=loss)
    total = stored.sum(axis=1)
    for name, by_device in (("stream_loss", loss), ("stream_accuracy", accuracy)):
        mean = np.nansum(stored * by_device, axis=1) / np.where(total > 0, total, 1)
        rule = f"{name} is the mean over devices, weighted by how much each holds"
        _compare(check, name, np.where(total > 0, mean, np.nan), rule)


def _check_devices(
    arrays: ArrayChecks, check: Checker, rows: pl.DataFrame, due: Array, stored: Array, accuracy: Array
) -> None:
    ordered = [np.sort(row[~np.isnan(row)]) for row in accuracy]
    of = {
        "device_accuracy_mean": lambda values: values.mean(),
        "device_accuracy_std": lambda values: np.sqrt(((values - values.mean()) ** 2).mean()),
        "worst_tenth": lambda values: values[: ceil(len(values) / 10)].mean(),
    }
    for name, number in of.items():
        wanted = np.array([number(values) if len(values) else np.nan for values in ordered])
        _compare(check, name, wanted, f"{name} follows from the accuracy by device")


def _compare(check: Checker, name: str, wanted: Array, rule: str) -> None:
    """A number that is missing exactly where none is wanted, and the wanted one elsewhere."""
    none, null = np.isnan(wanted), check.table.nulls[name]
    check.flag(name, null != none, wanted, rule)
    check.compare(name, wanted, rule, scale=1.0, where=~none & ~null)


def _only(rounds: Table, due: Array) -> Table:
    """Some of the rounds of a table."""
    there = np.isin(rounds.rounds, due)
    return Table(
        rounds.rounds[there],
        {name: column[there] for name, column in rounds.values.items()},
        {name: column[there] for name, column in rounds.nulls.items()},
    )
