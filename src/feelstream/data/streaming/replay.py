"""Replay of a recorded trace: arrivals read from a CSV or Parquet file."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.data.streaming.arrivals import ArrivalContext, Arrivals, ArrivalSchedule, events_by_round
from feelstream.data.streaming.order import Shards, offsets_of
from feelstream.errors import ScenarioError
from feelstream.randomness import Purpose, generator
from feelstream.tables import Column, TableFile


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
        file = TableFile("data.arrivals.path", self.path)
        for name in ("time", "device"):
            if name not in file.names:
                raise file.problem(f"has no column {name}; it needs time, device, and sample or label")
        what = [name for name in ("sample", "label") if name in file.names]
        if len(what) != 1:
            raise file.problem(
                f"has {'both columns' if what else 'no column'} sample {'and' if what else 'or'} label; it needs "
                "time, device and exactly one of them"
            )
        limit = len(context.labels) if what == ["sample"] else context.classes
        times, devices, things = file.columns(
            (
                Column("time", 0),
                Column("device", 0, context.devices - 1, whole=True),
                Column(what[0], 0, limit - 1, whole=True),
            )
        )
        return times, devices, things, what == ["label"]


def _samples_of(labels: NDArray[np.int64], context: ArrivalContext) -> NDArray[np.int64]:
    """A sample for each label of a sequence: the next of that label, cyclically, in a random order."""
    rng = generator(context.seed, Purpose.PARTITION)
    samples = np.empty_like(labels)
    for label in np.unique(labels):
        pool = rng.permutation(np.flatnonzero(context.labels == label))
        if not len(pool):
            raise ScenarioError(
                f"data.arrivals.path: the trace asks for label {label}, of which the data set has no sample."
            )
        here = np.flatnonzero(labels == label)
        samples[here] = pool[np.arange(len(here)) % len(pool)]
    return samples
