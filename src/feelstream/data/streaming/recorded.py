"""Arrivals at recorded times: those of the data set, or those in a CSV or Parquet file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.data.streaming.arrivals import ArrivalContext, Arrivals, ArrivalSchedule, events_by_round
from feelstream.data.streaming.order import Shards, offsets_of
from feelstream.errors import ScenarioError
from feelstream.randomness import Purpose, generator
from feelstream.tables import Column, TableFile


class RecordedArrivals(Arrivals):
    """Each sample arrives at its recorded time, for data sets that tell it (hapt, or time_train).

    A sample of device k recorded at s arrives at o_k + s / speed, or with speed "fit" at o_k + s · T_tot / S where S
    is the last recorded time of all. The offset o_k is 0 if all start together; if they are spread, it is drawn
    from U(0, max(T_tot − l_k, 0)), l_k being when the last sample of device k would arrive at offset 0.
    Samples whose time is beyond the run never arrive. Equal times keep the order of the data set.
    """

    tag: ClassVar[str] = "recorded"

    speed: Annotated[
        Literal["fit"] | Annotated[float, Field(strict=True, ge=1e-6, le=1e6)],
        Field(
            description="seconds of the recording per second of the run, 1 is true speed; 1e-6 to 1e6; "
            "fit: all of it in the run"
        ),
    ] = 1.0
    start: Annotated[
        Literal["together", "spread"],
        Field(description="together: all start with the run; spread: each at a random time that leaves room"),
    ] = "together"

    def plan(self, context: ArrivalContext) -> ArrivalSchedule:
        recorded_s = context.recording.time_s
        if recorded_s is None:
            raise ScenarioError(
                "data.arrivals.kind: recorded needs a data set that tells when each sample was recorded: hapt, or an "
                ".npz file with time_train"
            )
        owner = context.owners(generator(context.seed, Purpose.PARTITION))
        samples = np.flatnonzero(owner >= 0)
        devices = owner[samples].astype(np.int64)
        times = self._times(recorded_s[samples], devices, context)
        # By device, then by time; what comes after the end is left out, so that the j-th arrival is the j-th sample.
        place = np.lexsort((times, devices))
        place = place[times[place] <= context.rounds * context.round_s]
        sizes = np.bincount(devices[place], minlength=context.devices)
        shards = Shards(offsets_of(sizes), samples[place].astype(np.int32))
        return ArrivalSchedule(shards, events_by_round(times[place], devices[place].astype(np.int32), context))

    def _times(
        self, recorded_s: NDArray[np.float64], devices: NDArray[np.int64], context: ArrivalContext
    ) -> NDArray[np.float64]:
        run_s = context.rounds * context.round_s
        last_s = float(recorded_s.max(initial=0.0))
        if self.speed == "fit":
            # Rounding must not push the very last sample out of the run.
            times = np.minimum(recorded_s * (run_s / last_s), run_s) if last_s > 0 else recorded_s
        else:
            times = recorded_s / self.speed
        if self.start == "together":
            return times
        last = np.zeros(context.devices)
        np.maximum.at(last, devices, times)
        draws = generator(context.seed, Purpose.ARRIVALS).random(context.devices)
        return times + (draws * np.maximum(run_s - last, 0.0))[devices]


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
