"""What evaluators measured: arrays that are whole, with entries that are within their range."""

from __future__ import annotations

import numpy as np
import polars as pl

from feelstream.columns import EVALUATION_COLUMNS, ROUND_COLUMNS
from feelstream.errors import RunError
from feelstream.verification.files import Stored, rows_of, schema_of
from feelstream.verification.findings import Array, Findings, Stage
from feelstream.verification.rounds import Totals
from feelstream.verification.rules import Rule, apply, exact, holds
from feelstream.verification.totals import evaluated

FILE = "evaluations.parquet"
KINDS = {name: column.kind for name, column in EVALUATION_COLUMNS.items()}
# Arrays of ours with an entry for every device, and the most that an entry may be.
OF_DEVICES = {"stream": {"loss": np.inf, "accuracy": 1.0}, "devices": {"accuracy": 1.0}}


class Arrays:
    """The arrays of a run, block by block of its rounds: what they lack, and what is beyond its range."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.run, self.path = stored, stored.run, stored.directory / FILE
        self.there = self.path.is_file() and "deployed" not in stored.facts
        if not self.there:
            return
        if schema_of(self.path) != KINDS:
            raise RunError(f"{self.path} must have the columns {', '.join(KINDS)} and no others.")
        names = rows_of(self.path, pl.scan_parquet(self.path, glob=False).select("evaluator").unique())["evaluator"]
        if unknown := sorted(set(names) - set(self.run.learning.evaluators), key=str):
            raise RunError(f"{self.path} holds arrays of {unknown[0]!r}, which learning.evaluators does not name.")

    def check(self, found: Findings, rounds: Totals) -> None:
        """The arrays of the rounds of a block of rounds.parquet."""
        if not self.there:
            return
        due = rounds.rounds[evaluated(self.stored, rounds.rounds)]
        between = pl.col("round").is_between(int(rounds.rounds[0]), int(rounds.rounds[-1]))
        rows = rows_of(self.path, pl.scan_parquet(self.path, glob=False).filter(between))
        self._check_whole(rows, due)
        if not len(due) or rounds.devices is None:
            return
        evaluators, held = self.run.learning.evaluators, rounds.devices.stored[np.isin(rounds.rounds, due)]
        rules = list[Rule]()
        for evaluator in [each for each in OF_DEVICES if each in evaluators]:
            for name, most in OF_DEVICES[evaluator].items():
                values = self._array(rows, evaluator, name, due, self.run.devices)
                rules.append(_of_devices(f"{evaluator}: {name}", values, most, held))
            rules += [_present(name, held) for name, of in ROUND_COLUMNS.items() if of.when == f"evaluates_{evaluator}"]
        apply(rules, found, rounds.of_rounds(due))
        if "classes" in evaluators and (m := self.run.data.classes):
            arrays = [("recall", m, 1.0, due)]
            if due[-1] == self.run.rounds:
                arrays += [("tested", m, np.inf, due[-1:]), ("confusion", m * m, np.inf, due[-1:])]
            for name, length, most, when in arrays:
                values = self._array(rows, "classes", name, when, length)
                apply([_of_classes(name, values, most)], found, rounds.of_rounds(when))

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


def _of_devices(name: str, values: Array, most: float, held: Array) -> Rule:
    """[R, K], missing for whom holds nothing, and only there."""
    true = np.where(held == 0, np.isnan(values), (values >= 0) & (values <= most))
    rule = f"{name} is between 0 and {most:g}, and missing where a device holds nothing, and only there"
    return holds(Stage.EVALUATION, name, rule, lambda r: true, None, stored=lambda r: values)


def _of_classes(name: str, values: Array, most: float) -> Rule:
    """[R, L], of which the first that is wrong is told; recall is missing where a class has no sample to test."""
    true = ((values >= 0) & (values <= most)) | (np.isnan(values) & (name == "recall"))
    wrong = values[np.arange(len(values)), true.argmin(axis=1)]
    rule = f"{name} is between 0 and {most:g} for every class"
    return holds(Stage.EVALUATION, name, rule, lambda r: true.all(axis=1), None, stored=lambda r: wrong)


def _present(name: str, held: Array) -> Rule:
    rule = f"{name} is missing where no device holds a sample, and only there"
    return exact(Stage.EVALUATION, name, rule, lambda r: ~held.any(axis=1), stored=lambda r: r.nulls[name])
