"""Ours among the arrival processes: times or counts that are drawn, and recorded ones."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Ints, Reals
from feelstream.data.streaming.arrivals import (
    ArrivalContext,
    Arrivals,
    ArrivalSchedule,
    EndlessArrivals,
    FiniteArrivals,
    events_by_round,
)
from feelstream.data.streaming.order import Shards, offsets_of
from feelstream.errors import ScenarioError
from feelstream.plugins import Kind, Probability
from feelstream.randomness import Purpose, generator
from feelstream.tables import TableFile, Wanted

Rate = Annotated[float, Field(strict=True, gt=0, le=1e6)]


class TruncatedNormal(FiniteArrivals):
    """Times of device k ~ N(μ_k, σ²) truncated to [0, T_tot] (or clipped to it), with μ_k ~ U(0, T_tot).

    By inversion: t = μ + σ·Φ⁻¹(Φ(a) + u·(Φ(b) − Φ(a))), a = −μ/σ, b = (T_tot − μ)/σ. As a ≤ 0 ≤ b,
    the mass between never vanishes and no tail case is needed; rounding is clipped to [0, T_tot].
    """

    repeats: ClassVar[bool] = True

    sigma: float = Field(
        default=0.03,
        strict=True,
        gt=0,
        le=1000,
        description="standard deviation of a device's arrival times, as a fraction of the run; above 0, at most 1000",
    )
    bounds: Literal["truncate", "clip"] = Field(
        default="truncate",
        description="times outside the run: truncate: drawn from the truncated distribution; "
        "clip: moved to its first or last moment",
    )

    def times(self, sizes: Ints, run_s: float, rng: np.random.Generator) -> Reals:
        mean = rng.random(len(sizes))
        if self.bounds == "clip":
            draws = rng.standard_normal(int(sizes.sum())) * self.sigma + np.repeat(mean, sizes)
            return np.clip(draws, 0, 1, out=draws) * run_s
        from scipy.special import ndtr, ndtri  # here: slow to import, and forms or tables need no arrivals

        low, high = ndtr(-mean / self.sigma), ndtr((1 - mean) / self.sigma)
        # In place, step by step: with 10^7 samples every temporary array is 80 MB.
        draws = rng.random(int(sizes.sum()))
        draws *= np.repeat(high - low, sizes)
        draws += np.repeat(low, sizes)
        ndtri(draws, out=draws)
        draws *= self.sigma
        draws += np.repeat(mean, sizes)
        return np.clip(draws, 0, 1, out=draws) * run_s


class Uniform(FiniteArrivals):
    """Times ~ U(0, T_tot)."""

    repeats: ClassVar[bool] = True

    def times(self, sizes: Ints, run_s: float, rng: np.random.Generator) -> Reals:
        return rng.random(int(sizes.sum())) * run_s


class Poisson(EndlessArrivals):
    """Counts ~ Poisson(rate), independent over devices and rounds."""

    rate: Rate = Field(default=5.0, description="mean samples per device and round; above 0, at most 1e6")

    def counts(self, round: int, state: NDArray, devices: int, rng: np.random.Generator) -> tuple[Ints, NDArray]:
        return rng.poisson(self.rate, devices), state


class Bursts(EndlessArrivals):
    """Two-state Markov chain per device: Poisson(rate) while on, nothing while off.

    Round 1 is in the stationary distribution, P(on) = p_on/(p_on + p_off), so the mean is always rate·P(on).
    """

    rate: Rate = Field(default=25.0, description="mean samples per device and round while on; above 0, at most 1e6")
    p_on: Probability = Field(default=0.1, description="probability per round to turn on when off; above 0, at most 1")
    p_off: Probability = Field(default=0.4, description="probability per round to turn off when on; above 0, at most 1")

    def init(self, devices: int, rng: np.random.Generator) -> NDArray:
        return rng.random(devices) < self.p_on / (self.p_on + self.p_off)

    def counts(self, round: int, state: NDArray, devices: int, rng: np.random.Generator) -> tuple[Ints, NDArray]:
        flips = rng.random(devices) < np.where(state, self.p_off, self.p_on)
        arrived = np.where(state, rng.poisson(self.rate, devices), 0)
        return arrived, state ^ flips  # flip after counting: round 1 sees the initial state


def recorded(times: Reals, devices: Ints, samples: Ints, context: ArrivalContext) -> ArrivalSchedule:
    """The plan in which each sample reaches a device at its time, in s; equal times keep their order.

    What comes after the end is left out, so that the j-th arrival of a device is the j-th sample of its shard.
    """
    place = np.lexsort((times, devices))
    place = place[times[place] <= context.rounds * context.round_s]
    times, devices = times[place], devices[place]
    offsets = offsets_of(np.bincount(devices, minlength=context.devices))
    events = events_by_round(times, devices.astype(np.int32), context)
    return ArrivalSchedule(Shards(offsets, samples[place].astype(np.int32)), events)


class RecordedArrivals(Arrivals):
    """Each sample arrives at its recorded time, for data sets that tell it (hapt, or time_train).

    A sample of device k recorded at s arrives at o_k + s / speed, or with speed "fit" at o_k + s · T_tot / S where S
    is the last recorded time of all. The offset o_k is 0 if all start together; if they are spread, it is drawn
    from U(0, max(T_tot − l_k, 0)), l_k being when the last sample of device k would arrive at offset 0.
    Samples whose time is beyond the run never arrive. Equal times keep the order of the data set.
    """

    speed: Literal["fit"] | Annotated[float, Field(strict=True, ge=1e-6, le=1e6)] = Field(
        default=1.0,
        description="seconds of the recording per second of the run, 1 is true speed; 1e-6 to 1e6; "
        "fit: all of it in the run",
    )
    start: Literal["together", "spread"] = Field(
        default="together",
        description="together: all start with the run; spread: each at a random time that leaves room",
    )

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
        return recorded(self._times(recorded_s[samples], devices, context), devices, samples, context)

    def _times(self, recorded_s: Reals, devices: Ints, context: ArrivalContext) -> Reals:
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

    path: str = Field(
        strict=True, min_length=1, description="CSV or Parquet file with columns time (s), device, and sample or label"
    )

    def plan(self, context: ArrivalContext) -> ArrivalSchedule:
        file = TableFile("data.arrivals.path", self.path)
        what = [name for name in ("sample", "label") if name in file.table.columns]
        if len(what) != 1:
            raise file.problem(
                f"has {'both columns' if what else 'no column'} sample {'and' if what else 'or'} label; it needs "
                "time, device and exactly one of them"
            )
        most = (len(context.labels) if what == ["sample"] else context.classes) - 1
        device, thing = Wanted("device", 0, context.devices - 1, whole=True), Wanted(what[0], 0, most, whole=True)
        times, devices, things = file.columns((Wanted("time", 0), device, thing))
        if what == ["label"]:
            ahead = np.argsort(times, kind="stable")
            ahead = ahead[times[ahead] <= context.rounds * context.round_s]
            times, devices, things = times[ahead], devices[ahead], _samples_of(things[ahead], context)
        return recorded(times, devices, things, context)


def _samples_of(labels: Ints, context: ArrivalContext) -> Ints:
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


ARRIVALS = Kind(
    "arrivals",
    "arrivals",
    Arrivals,
    {
        "truncated_normal": TruncatedNormal,
        "uniform": Uniform,
        "poisson": Poisson,
        "bursts": Bursts,
        "trace": Trace,
        "recorded": RecordedArrivals,
    },
)
