"""What changes in the paper's world, and its laws: CPU frequencies, large-scale gains, small-scale fading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from feelstream.environment.base import Links, Process, ProcessContext, State, Step, gives
from feelstream.guard import Array, Out
from feelstream.model.physics import ratio


def in_its_range(process: Any, found: Step, round: int, state: State, context: ProcessContext, rng: Any) -> str | None:
    """Every frequency lies in the range of its device."""
    f_hz, low, high = found[0], context.frequency_low_hz, context.frequency_high_hz
    if (f_hz >= low).all() and (f_hz <= high).all():  # as mostly, in few passes through memory
        return None
    outside = (f_hz < low * (1 - 1e-12)) | (f_hz > high * (1 + 1e-12))
    if not outside.any():
        return None
    k = int(np.argmax(outside))
    return f"gives device {k} {f_hz[k]:g} Hz, which is not between {low[k]:g} and {high[k]:g}"


class Frequency(Process):
    """Values in Hz, within each device's range."""

    plugin_field: ClassVar[str] = "world.frequency"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(above=True, least=0), in_its_range)


class UniformFrequency(Frequency):
    """f_k(t) ~ U(lowest, highest), independent over devices and rounds: the paper's."""

    tag: ClassVar[str] = "uniform"

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return rng.uniform(context.frequency_low_hz, context.frequency_high_hz), state


def keeps_its_gains(process: Mobility, found: Step, round: int, state: State, context: Any, rng: Any) -> str | None:
    """Every gain is in the range that `gain_range_db` states."""
    low, high = 10 * np.log10(found[0].min()), 10 * np.log10(found[0].max())
    least, most = process.gain_range_db(float(context.gain_low_db.min()), float(context.gain_high_db.max()))
    if low >= least - 1e-6 and high <= most + 1e-6:
        return None
    return f"has gains from {low:.3g} to {high:.3g} dB, and gain_range_db says {least:.3g} to {most:.3g}"


class Mobility(Process):
    """Mean power gains β_k(t), linear."""

    plugin_field: ClassVar[str] = "world.mobility"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(above=True, least=0), keeps_its_gains)
    plugin_flags: ClassVar[tuple[str, ...]] = ("fixed", "within_gain_db")

    fixed: ClassVar[bool] = False  # a device has one β for the whole run
    within_gain_db: ClassVar[bool] = False  # every β_k lies in the range of radio.gain_db, or of the device's class

    @abstractmethod
    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        """The least and the largest β that can occur, given those of radio.gain_db."""

    def links(self, state: State) -> Links | None:
        """Where devices are in the round that begins with this state, and who is seen; None: it does not know."""
        return None


class Static(Mobility):
    """β_k in dB ~ U(radio.gain_db), drawn once and fixed for a run: the paper's."""

    tag: ClassVar[str] = "static"
    fixed: ClassVar[bool] = True
    within_gain_db: ClassVar[bool] = True

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        return low_db, high_db

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"beta": ratio(rng.uniform(context.gain_low_db, context.gain_high_db))}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return state["beta"], state


class Channel(Process):
    """Small-scale fading: power ratios |g_k(t)|² / β_k ≥ 0 with mean 1."""

    plugin_field: ClassVar[str] = "world.channel"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(least=0))

    needs_links: ClassVar[bool] = False  # it goes by context.links, which not every mobility knows


class IndependentChannel(Channel):
    """|h_k(t)|² ~ Exp(1), independent over rounds: block fading, the paper's."""

    tag: ClassVar[str] = "independent"

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return rng.standard_exponential(context.devices), state
