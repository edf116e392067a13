"""Energy harvesting: what flows into the devices' batteries in a round, J.

A battery of capacity C starts at `start`·C and follows b(t+1) = min(b(t) − E(t) + H(t), C). A device is available only
if its charge covers the worst case of the round, λ c f² + P_max,k (T_rd − c/f), with the power that the policy says no
device exceeds: whoever transmits is on time, so no battery is ever overdrawn. This comes beside the average budget,
which the virtual queues keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from feelstream.environment.base import Process, ProcessContext, State, Step, gives
from feelstream.guard import Array, Out
from feelstream.plugins import Fraction, Kind, NonNegative, Positive


class Harvest(Process):
    """Energy that arrives in a round, J ≥ 0; it is lost unless there are batteries."""

    plugin_field: ClassVar[str] = "world.harvest"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(least=0))
    plugin_traits: ClassVar[tuple[str, ...]] = ("battery_j", "charge_j")

    @property
    def battery_j(self) -> float | None:
        """C, what the battery of a device holds, J; None: there are none, and no round is limited by its energy."""
        return None

    @property
    def charge_j(self) -> float:
        """What is in each battery before round 1, J; 0 to C."""
        return 0.0


class Battery(Harvest):
    """What every kind of harvest with a battery has."""

    capacity_j: Positive = Field(default=20.0, description="C, capacity of a battery, J; > 0")
    start: Fraction = Field(default=0.5, description="charge before round 1, share of C; 0 to 1")

    @property
    def battery_j(self) -> float | None:
        return self.capacity_j

    @property
    def charge_j(self) -> float:
        return self.start * self.capacity_j


class NoHarvest(Harvest):
    """No batteries: energy is limited by the average budget alone, as in the paper."""

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return np.zeros(context.devices), state


class PacketHarvest(Battery):
    """Packets of energy: H_k(t) = packet_j · Poisson(rate), independent over devices and rounds."""

    rate: float = Field(
        default=0.5, strict=True, ge=0, le=1e6, description="mean packets per device and round; 0 to 1e6"
    )
    packet_j: NonNegative = Field(default=1.0, description="energy of a packet, J; ≥ 0")

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return self.packet_j * rng.poisson(self.rate, context.devices), state


class SolarHarvest(Battery):
    """The sun: H_k(t) = peak_j · max(0, sin 2π t/day) · U_k(t), with clouds U ~ U(0, 1); nothing at night.

    Its mean over whole days is peak_j / (2π).
    """

    peak_j: NonNegative = Field(default=4.0, description="most energy that a round brings, J; ≥ 0")
    day: int = Field(default=24, strict=True, ge=2, le=2**31 - 1, description="rounds of a day; at least 2")

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        sun = max(0.0, float(np.sin(2 * np.pi * round / self.day)))
        return self.peak_j * sun * rng.random(context.devices), state


HARVESTS = Kind("harvest", "harvests", Harvest, {"none": NoHarvest, "packets": PacketHarvest, "solar": SolarHarvest})
