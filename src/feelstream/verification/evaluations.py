"""What evaluators measured: numbers of rounds.parquet against arrays of evaluations.parquet, and both by themselves."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np
import polars as pl

from feelstream.columns import EVALUATION_COLUMNS
from feelstream.errors import RunError
from feelstream.verification.files import DAMAGE, Stored, rows_of
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.rounds import Totals
from feelstream.verification.rules import Rule, apply, holds, same
from feelstream.verification.totals import evaluated

FILE = "evaluations.parquet"
KINDS = {name: column.kind for name, column in EVALUATION_COLUMNS.items()}
EVALUATION = Stage.EVALUATION


class Arrays:
    """The arrays of a run, block by block of its rounds: what they lack, and what follows from them."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.run, self.path = stored, stored.run, stored.directory / FILE
        self.best: Array | None = None  # recall by class, before the present block
        self.there = self.path.is_file() and not stored.deployed
        if self.there:
            self._check_shape()

    def _check_shape(self) -> None:
        """Of no evaluator that the run does not have, with the columns that any run writes."""
        try:
            schema = dict(pl.scan_parquet(self.path, glob=False).collect_schema())
        except DAMAGE:
            raise RunError(f"{self.path} is damaged: it cannot be read as a Parquet file.") from None
        if schema != KINDS:
            raise RunError(f"{self.path} must have the columns {', '.join(KINDS)} and no others.")
        names = rows_of(self.path, pl.scan_parquet(self.path, glob=False).select("evaluator").unique())["evaluator"]
        if unknown := sorted(set(names) - set(self.run.learning.evaluators), key=str):
            raise RunError(f"{self.path} holds arrays of {unknown[0]!r}, which learning.evaluators does not name.")

    def check(self, found: Findings, rounds: Totals) -> None:
        """The arrays of the rounds of a block of rounds.parquet."""
        if not self.there:
            return
        due = rounds.rounds[evaluated(self.stored, rounds.rounds)]
        first, last = int(rounds.rounds[0]), int(rounds.rounds[-1])
        rows = rows_of(
            self.path, pl.scan_parquet(self.path, glob=False).filter(pl.col("round").is_between(first, last))
        )
        self._check_whole(rows, due)
        if not len(due):
            return
        evaluators = self.run.learning.evaluators
        rules: list[Rule] = []
        if "stream" in evaluators:
            rules += self._of_stream(rows, due)
        if "devices" in evaluators:
            rules += self._of_devices(rows, due)
        if "classes" in evaluators and self.run.data.classes:
            rules += self._of_classes(rows, due)
        apply(rules, found, rounds.of_rounds(due))

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

    def _shares(self, rows: pl.DataFrame, evaluator: str, due: Array) -> tuple[Array, list[Rule]]:
        """Accuracy by device [R, K]: none where a device holds nothing, else a whole number of what it holds."""
        share = self._array(rows, evaluator, "accuracy", due, self.run.devices)
        name = f"{evaluator}: accuracy"

        def whole(r: Totals) -> Array:
            held = _held(r)
            of_whole = share * held
            counts = np.abs(of_whole - np.round(of_whole)) <= 1e-6 * held
            return np.where(held == 0, np.isnan(share), counts & (share >= 0) & (share <= 1))

        rule = f"{name} is missing where a device holds nothing, and else a share of what it holds"
        return share, [holds(EVALUATION, name, rule, whole, None, stored=lambda r: share)]

    def _of_stream(self, rows: pl.DataFrame, due: Array) -> list[Rule]:
        accuracy, rules = self._shares(rows, "stream", due)
        loss = self._array(rows, "stream", "loss", due, self.run.devices)
        rule = "stream: loss is missing where a device holds nothing, and not negative elsewhere"
        rules.append(
            holds(EVALUATION, "stream: loss", rule, lambda r: np.where(_held(r) == 0, np.isnan(loss), loss >= 0), 0.0,
                  stored=lambda r: loss)
        )  # fmt: skip

        def mean(r: Totals, by_device: Array) -> Array:
            held = _held(r)
            total = held.sum(axis=1)
            return np.where(total > 0, np.nansum(held * by_device, axis=1) / np.maximum(total, 1), np.nan)

        for name, by_device in (("stream_loss", loss), ("stream_accuracy", accuracy)):
            rule = f"{name} is the mean over devices, weighted by how much each holds"
            rules += _number(name, rule, lambda r, by_device=by_device: mean(r, by_device))
        return rules

    def _of_devices(self, rows: pl.DataFrame, due: Array) -> list[Rule]:
        accuracy, rules = self._shares(rows, "devices", due)
        ordered = [np.sort(row[~np.isnan(row)]) for row in accuracy]
        for name, number in {
            "device_accuracy_mean": lambda values: values.mean(),
            "device_accuracy_std": lambda values: np.sqrt(((values - values.mean()) ** 2).mean()),
            "worst_tenth": lambda values: values[: ceil(len(values) / 10)].mean(),
        }.items():
            wanted = np.array([number(values) if len(values) else np.nan for values in ordered])
            rules += _number(name, f"{name} follows from the accuracy by device", lambda r, wanted=wanted: wanted)
        return rules

    def _of_classes(self, rows: pl.DataFrame, due: Array) -> list[Rule]:
        m = self.run.data.classes or 0
        recall = self._array(rows, "classes", "recall", due, m)
        best = np.fmax.accumulate(np.concatenate([(np.zeros(m) if self.best is None else self.best)[None], recall]))[1:]
        self.best = best[-1]
        lost = np.nanmean(np.where(np.isnan(recall), np.nan, best - recall), axis=1)
        rules = [
            holds(EVALUATION, "forgetting", "recall is between 0 and 1",
                  lambda r: ~((recall < 0) | (recall > 1)).any(axis=1), "0 to 1", stored=lambda r: recall),
            same(EVALUATION, "forgetting", "forgetting is the best recall so far minus that of now, mean over classes",
                 lambda r: lost, scale=1.0),
        ]  # fmt: skip
        return rules if due[-1] != self.run.rounds else rules + self._of_the_last(rows, recall[-1])

    def _of_the_last(self, rows: pl.DataFrame, recall: Array) -> list[Rule]:
        """The confusion matrix, which is stored after the last round."""
        m, last = self.run.data.classes or 0, np.array([self.run.rounds])
        confusion = self._array(rows, "classes", "confusion", last, m * m).reshape(m, m)
        tested = self._array(rows, "classes", "tested", last, m)[0]
        whole = (confusion >= 0).all() and (confusion == np.round(confusion)).all()
        fits = bool(whole and (confusion.sum(axis=1) <= tested).all())
        wanted = np.divide(np.diag(confusion), tested, out=np.full(m, np.nan), where=tested > 0)
        alike = bool(
            np.array_equal(np.isnan(recall), np.isnan(wanted)) and np.nanmax(np.abs(recall - wanted)) <= RELATIVE
        )
        right = np.trace(confusion) / tested.sum()
        rules = [
            holds(EVALUATION, "forgetting",
                  "the confusion matrix counts samples of the test set, by true class at most as many as there are",
                  lambda r: (r.rounds != last) | fits, "counts", stored=lambda r: np.array("confusion")),
            holds(EVALUATION, "forgetting", "recall is the diagonal of the confusion matrix over how many were tested",
                  lambda r: (r.rounds != last) | alike, lambda r: wanted[None], stored=lambda r: recall[None]),
        ]  # fmt: skip
        if "test" in self.run.learning.evaluators:
            rule = "accuracy is the share of the confusion matrix on its diagonal"
            rules.append(
                same(
                    EVALUATION,
                    "accuracy",
                    rule,
                    lambda r: np.full(len(r.rounds), right),
                    where=lambda r: r.rounds == last,
                )
            )
        return rules


def _held(r: Totals) -> Array:
    """What each device holds in these rounds. [R, K]"""
    assert r.devices is not None
    return r.devices.stored[np.isin(r.devices.rounds, r.rounds)]


def _number(name: str, rule: str, wanted: Callable[[Totals], Array]) -> list[Rule]:
    """A number that is missing exactly where none is wanted, and the wanted one elsewhere."""
    return [
        holds(EVALUATION, name, rule, lambda r: r.nulls[name] == np.isnan(wanted(r)), wanted),
        same(EVALUATION, name, rule, wanted, scale=1.0, where=lambda r: ~r.nulls[name] & ~np.isnan(wanted(r))),
    ]
