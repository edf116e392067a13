"""Devices that differ: classes of devices, and tables with one row per device."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from feelstream.arrays import Ints, Reals
from feelstream.errors import ScenarioError
from feelstream.plugins import NonNegative, Positive, Settings
from feelstream.tables import Column, TableFile

Decibels = Annotated[float, Field(strict=True, ge=-1000, le=1000)]
FromModel = Positive | Literal["auto"]  # auto: what learning.model asks for; a number by the time that it is run
Share = Annotated[float, Field(strict=True, gt=0, le=1)]
Priority = Annotated[float, Field(strict=True, gt=0, le=1000)]


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise ValueError(f"must be [lowest, highest], but {pair[0]:g} > {pair[1]:g}")
    return pair


FrequencyRange = Annotated[tuple[Positive, Positive], AfterValidator(_ordered)] | Literal["profile"]
GainRange = Annotated[tuple[Decibels, Decibels], AfterValidator(_ordered)]


def known_number(field: str, value: float | str) -> float:
    """The number, or ScenarioError where it is still auto."""
    if isinstance(value, str):
        raise ScenarioError(
            f"{field}: auto takes its number from learning.model when a scenario is simulated; give the number here"
        )
    return value


@dataclass(frozen=True, eq=False)
class Population:
    """The constants of every device, (K,) each."""

    cycles: Reals
    energy_budget_j: Reals
    frequency_low_hz: Reals
    frequency_high_hz: Reals
    gain_low_db: Reals
    gain_high_db: Reals
    arrivals: Reals  # share of the arriving samples that the device collects
    priority: Reals  # factor on the importance of its data
    deadline_s: Reals
    power_max_w: Reals  # infinite where nothing limits it
    download_bit_per_s: Reals


class DeviceClass(Settings):
    """One class of devices; a field left out is that of the scenario."""

    share: Share = Field(description="share of all devices, above 0, at most 1; the shares of all classes add up to 1")
    cycles: Positive | None = Field(default=None, description="CPU cycles of a round; > 0; default: cpu.cycles")
    energy_budget_j: NonNegative | None = Field(
        default=None, description="energy budget per round, J; ≥ 0; default: system.energy_budget_j"
    )
    frequency_hz: FrequencyRange | None = Field(
        default=None, description="range of CPU frequencies, Hz; > 0, or profile; default: cpu.frequency_hz"
    )
    profile: str | None = Field(default=None, description="profile of the CPU core; default: cpu.profile")
    gain_db: GainRange | None = Field(
        default=None, description="range of the mean gain, dB; -1000 to 1000; default: radio.gain_db"
    )
    arrivals: Share = Field(
        default=1.0, description="share of the arriving samples that it collects; above 0, at most 1"
    )
    priority: Priority = Field(default=1.0, description="factor on the importance of its data; above 0, at most 1000")
    deadline_s: Positive | None = Field(
        default=None, description="when its update must have arrived, s; > 0, at most system.round_s, the default"
    )
    power_max_w: Positive | None = Field(
        default=None, description="greatest transmit power, W; > 0; default: radio.power_max_w"
    )
    download_bit_per_s: Positive | None = Field(
        default=None, description="rate at which it receives the model, bit/s; > 0; default: costs.download_bit_per_s"
    )


class DevicesSettings(Settings):
    """[devices]"""

    classes: tuple[DeviceClass, ...] = Field(
        default=(),
        description="classes of devices, each a table with share and any of cycles, energy_budget_j, frequency_hz, "
        "profile, gain_db, arrivals, priority, deadline_s, power_max_w, download_bit_per_s; devices are numbered class "
        "by class",
    )
    table: str = Field(
        default="",
        description="a .csv or .parquet file with the column device and any of cycles, energy_budget_j, "
        "frequency_low_hz, frequency_high_hz, gain_low_db, gain_high_db, arrivals, priority, deadline_s, "
        "power_max_w, download_bit_per_s; applied after the classes",
    )

    @model_validator(mode="after")
    def _shares_add_up(self) -> Self:
        total = sum(each.share for each in self.classes)
        if self.classes and abs(total - 1) > 1e-9:
            raise ValueError(f".classes: their shares must add up to 1, not {total:.6g}")
        return self

    def applied_to(self, alike: Population) -> Population:
        """The population whose devices were all `alike`, changed by the classes, then by the table."""
        return _from_table(self.table, _by_class(self.classes, alike)) if self.table else _by_class(self.classes, alike)


def class_sizes(shares: list[float], devices: int) -> list[int]:
    """Devices of each class: cumulative shares, rounded, so that sizes add up and each is within 1 of its share."""
    ends = np.rint(np.cumsum(shares) * devices).astype(int)
    return np.diff(ends, prepend=0).tolist()


def _by_class(classes: tuple[DeviceClass, ...], alike: Population) -> Population:
    if not classes:
        return alike
    sizes = class_sizes([each.share for each in classes], len(alike.cycles))
    number = np.repeat(np.arange(len(classes)), sizes)

    def column(name: str) -> Reals:
        """`frequency_low_hz` is the first of a class's frequency_hz, `frequency_high_hz` the second."""
        field, end = re.sub("_(low|high)_", "_", name), int("_high_" in name)
        given = [getattr(each, field) for each in classes]
        chosen = np.array([np.nan if v is None else v[end] if isinstance(v, tuple) else v for v in given])[number]
        return np.where(np.isnan(chosen), getattr(alike, name), chosen)

    return Population(**{each.name: column(each.name) for each in fields(Population)})


# What a column of a table may hold.
LIMITS: dict[str, tuple[float, float]] = {
    "cycles": (1e-100, 1e100),
    "energy_budget_j": (0.0, 1e100),
    "frequency_low_hz": (1e-100, 1e100),
    "frequency_high_hz": (1e-100, 1e100),
    "gain_low_db": (-1000, 1000),
    "gain_high_db": (-1000, 1000),
    "arrivals": (1e-9, 1.0),
    "priority": (1e-9, 1000.0),
    "deadline_s": (1e-100, 1e100),
    "power_max_w": (1e-100, 1e100),
    "download_bit_per_s": (1e-100, 1e100),
}


def _from_table(name: str, population: Population) -> Population:
    file = TableFile("devices.table", name)
    unknown = [name for name in file.names if name not in LIMITS and name != "device"]
    if unknown:
        allowed = ", ".join(["device", *LIMITS])
        raise file.problem(f"has an unknown column '{unknown[0]}'; allowed: {allowed}")
    devices, present = len(population.cycles), [name for name in LIMITS if name in file.names]
    wanted = [Column("device", 0, devices - 1, whole=True), *(Column(name, *LIMITS[name]) for name in present)]
    order, *columns = file.columns(wanted)
    if not np.array_equal(np.sort(order), np.arange(devices)):
        raise file.problem(f"must have one row for each device from 0 to {devices - 1}")
    found = replace(
        population, **{name: _in_order(order, values) for name, values in zip(present, columns, strict=True)}
    )
    for low, high in (("frequency_low_hz", "frequency_high_hz"), ("gain_low_db", "gain_high_db")):
        wrong = np.flatnonzero(getattr(found, low) > getattr(found, high))
        if len(wrong):
            raise file.problem(f"puts {low} above {high} for device {wrong[0]}")
    return found


def _in_order(devices: Ints, values: Reals) -> Reals:
    """By device, read-only."""
    sorted_values = np.empty_like(values)
    sorted_values[devices] = values
    sorted_values.flags.writeable = False
    return sorted_values
