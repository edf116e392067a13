"""What evaluators measured: numbers of rounds.parquet against arrays of evaluations.parquet, and both by themselves."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np
import polars as pl

from feelstream.columns import EVALUATION_COLUMNS
from feelstream.errors import RunError
from feelstream.verification.files import Stored, rows_of, schema_of
from feelstream.verification.findings import Array, Findings, Stage, close
from feelstream.verification.rounds import Totals
from feelstream.verification.rules import Rule, apply, exact, holds, same
from feelstream.verification.totals import evaluated

FILE = "evaluations.parquet"
KINDS = {name: column.kind for name, column in EVALUATION_COLUMNS.items()}
EVALUATION = Stage.EVALUATION


def _by_what_is_held(values: Array, held: Array) -> Array:
    """Mean over devices, weighted by how much each holds. [R, K] twice → [R], NaN where nobody holds anything"""
    return np.nansum(held * values, axis=1) / np.where(held.any(axis=1), held.sum(axis=1), np.nan)


def _by_device(number: Callable[[Array], float]) -> Callable[[Array, Array], Array]:
    """Of the devices that hold something, in ascending order."""
    return lambda values, held: np.array(
        [number(np.sort(row[there])) if there.any() else np.nan for row, there in zip(values, held > 0, strict=True)]
    )


# Numbers of rounds.parquet that follow from an array with an entry for every device.
NUMBERS: dict[str, tuple[str, str, Callable[[Array, Array], Array]]] = {
    "stream_loss": ("stream", "loss", _by_what_is_held),
    "stream_accuracy": ("stream", "accuracy", _by_what_is_held),
    "device_accuracy_mean": ("devices", "accuracy", _by_device(np.mean)),
    "device_accuracy_std": ("devices", "accuracy", _by_device(np.std)),
    "worst_tenth": ("devices", "accuracy", _by_device(lambda values: values[: ceil(len(values) / 10)].mean())),
}


class Arrays:
    """The arrays of a run, block by block of its rounds: what they lack, and what follows from them."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.run, self.path = stored, stored.run, stored.directory / FILE
        self.best: Array | None = None  # recall by class, before the present block
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
        held, rules = rounds.devices.stored[np.isin(rounds.rounds, due)], list[Rule]()
        for number, (evaluator, name, formula) in NUMBERS.items():
            if evaluator in self.run.learning.evaluators:
                values = self._array(rows, evaluator, name, due, self.run.devices)
                rules += _of_devices(f"{evaluator}: {name}", values, held)
                rules += _number(number, f"{number} follows from the array '{name}'", formula(values, held))
        if "classes" in self.run.learning.evaluators and self.run.data.classes:
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

    def _of_classes(self, rows: pl.DataFrame, due: Array) -> list[Rule]:
        """Forgetting by recall; after the last round, recall and accuracy by the confusion matrix."""
        m, last = self.run.data.classes or 0, np.array([self.run.rounds])
        recall = self._array(rows, "classes", "recall", due, m)
        before = np.zeros(m) if self.best is None else self.best
        best = np.fmax.accumulate(np.concatenate([before[None], recall]))[1:]
        self.best = best[-1]
        lost = np.nanmean(np.where(np.isnan(recall), np.nan, best - recall), axis=1)
        rules = _number("forgetting", "forgetting is the best recall so far minus that of now, mean over classes", lost)
        if due[-1] != last:
            return rules
        confusion = self._array(rows, "classes", "confusion", last, m * m).reshape(m, m)
        tested = self._array(rows, "classes", "tested", last, m)[0]
        counts = (confusion >= 0).all() and (confusion == np.round(confusion)).all()
        fits = bool(counts and (confusion.sum(axis=1) <= tested).all())
        by_matrix = np.where(tested > 0, np.diag(confusion) / tested, np.nan)
        alike = close(recall[-1], by_matrix, scale=1.0) | (np.isnan(recall[-1]) & np.isnan(by_matrix))
        rule = "recall is the diagonal of the confusion matrix, which counts those tested of a class, over their number"
        rules.append(holds(EVALUATION, "forgetting", rule, lambda r: (r.rounds != last) | (fits and alike.all())))
        if "test" in self.run.learning.evaluators:
            rule, right = (
                "accuracy is the share of the confusion matrix on its diagonal",
                np.trace(confusion) / tested.sum(),
            )
            rules.append(same(EVALUATION, "accuracy", rule, lambda r: right, where=lambda r: r.rounds == last))
        return rules


def _of_devices(name: str, values: Array, held: Array) -> list[Rule]:
    """Missing for who holds nothing and only there; not negative, and an accuracy a share of what is held."""
    right = values >= 0
    if name.endswith("accuracy"):
        of_whole = values * held
        right &= (values <= 1) & (np.abs(of_whole - np.round(of_whole)) <= 1e-6 * held)
    rule = f"{name} is missing where a device holds nothing, and only there, and else a share of that, or a loss"
    true = np.where(held == 0, np.isnan(values), right)
    return [holds(EVALUATION, name, rule, lambda r: true, None, stored=lambda r: values)]


def _number(name: str, rule: str, wanted: Array) -> list[Rule]:
    """A number that is missing exactly where none is wanted, and the wanted one elsewhere."""
    none = np.isnan(wanted)
    return [
        exact(EVALUATION, name, rule, lambda r: none, stored=lambda r: r.nulls[name]),
        same(EVALUATION, name, rule, lambda r: wanted, scale=1.0, where=lambda r: ~r.nulls[name] & ~none),
    ]
