"""Replay of a recorded trace: arrivals read from a CSV or Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from feelstream.data.streaming.arrivals import ArrivalContext, Arrivals, ArrivalSchedule, events_by_round
from feelstream.data.streaming.order import Shards, offsets_of
from feelstream.errors import DataError
from feelstream.randomness import Purpose, generator
from feelstream.tables import can_be_read


class Trace(Arrivals):
    """Arrivals as recorded; the file replaces partition and order.

    Columns: time (s from the start), device (0 to K − 1), and either sample (0 to N − 1) or label. With
    labels, the samples of each label are taken in time order, cyclically, from an order of the data set drawn
    from the seed. Rows may come in any order; equal times keep the order of the file. Rows after the end
    never arrive.
    """

    tag: ClassVar[str] = "trace"

    path: Annotated[
        str,
        Field(
            strict=True,
            min_length=1,
            description="CSV or Parquet file with columns time (s), device, and sample or label",
        ),
    ]

    def plan(self, context: ArrivalContext) -> ArrivalSchedule:
        times, devices, samples, by_label = self._read(context)
        ahead = np.argsort(times, kind="stable")
        ahead = ahead[times[ahead] <= context.rounds * context.round_s]
        times, devices, samples = times[ahead], devices[ahead], samples[ahead]
        if by_label:
            samples = _samples_of(samples, context)
        place = np.argsort(devices, kind="stable")
        sizes = np.bincount(devices, minlength=context.devices)
        shards = Shards(offsets_of(sizes), samples[place].astype(np.int32))
        return ArrivalSchedule(shards, events_by_round(times, devices.astype(np.int32), context))

    def _read(self, context: ArrivalContext) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], bool]:
        """Times, devices, samples or labels as checked arrays, and whether the third is labels."""
        table = self._table()
        what = [name for name in ("sample", "label") if name in table.columns]
        for name in ("time", "device"):
            if name not in table.columns:
                raise DataError(f"Trace {self.path} has no column {name}; it needs time, device, and sample or label.")
        if len(what) != 1:
            raise DataError(
                f"Trace {self.path} has {'both columns' if what else 'no column'} sample "
                f"{'and' if what else 'or'} label; it needs exactly one of them."
            )
        times = self._column(table, "time", float)
        if not (np.isfinite(times) & (times >= 0)).all():
            raise DataError(f"Trace {self.path}: every time must be a finite number of seconds, 0 or later.")
        limit = len(context.labels) if what == ["sample"] else context.classes
        devices = self._number(table, "device", context.devices)
        return times, devices, self._number(table, what[0], limit), what == ["label"]

    def _table(self) -> pl.DataFrame:
        path = Path(self.path)
        if not path.is_file():
            raise DataError(f"Trace {self.path} is not a file; give a CSV or Parquet file.")
        try:
            if path.suffix.lower() == ".csv":
                return pl.read_csv(path, infer_schema_length=None, glob=False)
            if path.suffix.lower() == ".parquet":
                if not can_be_read(path):
                    raise DataError(f"Trace {self.path} cannot be read as parquet: it is damaged.")
                return pl.read_parquet(path, glob=False)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).strip().splitlines()[0]
            raise DataError(f"Trace {self.path} cannot be read as {path.suffix[1:]}: {reason}.") from error
        raise DataError(f"Trace {self.path} must end in .csv or .parquet.")

    def _column(self, table: pl.DataFrame, name: str, kind: type[float] | type[int]) -> NDArray:
        column = table[name]
        # A file without rows has columns without a type; that is a legal, if quiet, trace.
        if len(column) and not (column.dtype.is_integer() or (kind is float and column.dtype.is_float())):
            raise DataError(
                f"Trace {self.path}: column {name} must hold {'whole ' if kind is int else ''}numbers, "
                f"not {column.dtype}."
            )
        if column.null_count():
            raise DataError(f"Trace {self.path}: column {name} has empty cells; every row needs a number.")
        return column.cast(pl.Float64 if kind is float else pl.Int64, strict=False).fill_null(-1).to_numpy()

    def _number(self, table: pl.DataFrame, name: str, limit: int) -> NDArray[np.int64]:
        values = self._column(table, name, int)
        wrong = (values < 0) | (values >= limit)
        if wrong.any():
            raise DataError(
                f"Trace {self.path}: {name} {table[name][int(wrong.argmax())]} does not exist; "
                f"it must be 0 to {limit - 1}."
            )
        return values


def _samples_of(labels: NDArray[np.int64], context: ArrivalContext) -> NDArray[np.int64]:
    """A sample for each label of a sequence: the next of that label, cyclically, in a random order."""
    rng = generator(context.seed, Purpose.PARTITION)
    samples = np.empty_like(labels)
    for label in np.unique(labels):
        pool = rng.permutation(np.flatnonzero(context.labels == label))
        if not len(pool):
            raise DataError(
                f"data.arrivals.path: the trace asks for label {label}, of which the data set has no sample."
            )
        here = np.flatnonzero(labels == label)
        samples[here] = pool[np.arange(len(here)) % len(pool)]
    return samples
