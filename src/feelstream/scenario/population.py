"""Devices that differ: classes of devices, and tables with one row per device."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import polars as pl
from pydantic import AfterValidator, Field, model_validator

from feelstream.arrays import Reals
from feelstream.environment.recorded import read_columns
from feelstream.errors import ScenarioError
from feelstream.plugins import NonNegative, Positive, Settings

Decibels = Annotated[float, Field(strict=True, ge=-1000, le=1000)]
FromModel = Positive | Literal["auto"]  # auto: what learning.model asks for; a number by the time that it is run
Share = Annotated[float, Field(strict=True, gt=0, le=1)]
Priority = Annotated[float, Field(strict=True, gt=0, le=1000)]


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise ValueError(f"must be [lowest, highest], but {pair[0]:g} > {pair[1]:g}")
    return pair


FrequencyRange = Annotated[tuple[Positive, Positive], AfterValidator(_ordered)]
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


class DeviceClass(Settings):
    """One class of devices; a field left out is that of the scenario."""

    share: Share = Field(description="share of all devices, above 0, at most 1; the shares of all classes add up to 1")
    cycles: Positive | None = Field(default=None, description="CPU cycles of a round; > 0; default: cpu.cycles")
    energy_budget_j: NonNegative | None = Field(
        default=None, description="energy budget per round, J; ≥ 0; default: system.energy_budget_j"
    )
    frequency_hz: FrequencyRange | None = Field(
        default=None, description="range of CPU frequencies, Hz; > 0; default: cpu.frequency_hz"
    )
    gain_db: GainRange | None = Field(
        default=None, description="range of the mean gain, dB; -1000 to 1000; default: radio.gain_db"
    )
    arrivals: Share = Field(
        default=1.0, description="share of the arriving samples that it collects; above 0, at most 1"
    )
    priority: Priority = Field(default=1.0, description="factor on the importance of its data; above 0, at most 1000")


class DevicesSettings(Settings):
    """[devices]"""

    classes: tuple[DeviceClass, ...] = Field(
        default=(),
        description="classes of devices, each a table with share and any of cycles, energy_budget_j, frequency_hz, "
        "gain_db, arrivals, priority; devices are numbered class by class",
    )
    table: str = Field(
        default="",
        description="a .csv or .parquet file with the column device and any of cycles, energy_budget_j, "
        "frequency_low_hz, frequency_high_hz, gain_low_db, gain_high_db, arrivals, priority; applied after the classes",
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
}


def _from_table(name: str, population: Population) -> Population:
    path = Path(name)
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError as problem:
        raise ScenarioError(f"devices.table: cannot read {path}: {problem.strerror}") from problem
    columns = _read_table(path, len(population.cycles), changed_ns)
    found = replace(population, **columns)
    for low, high in (("frequency_low_hz", "frequency_high_hz"), ("gain_low_db", "gain_high_db")):
        wrong = np.flatnonzero(getattr(found, low) > getattr(found, high))
        if len(wrong):
            raise ScenarioError(f"devices.table: {low} is above {high} for device {wrong[0]}")
    return found


@lru_cache(maxsize=4)
def _read_table(path: Path, devices: int, changed_ns: int) -> dict[str, Reals]:
    """Columns by name, (K,), in the order of the devices."""
    try:
        names = pl.scan_parquet(path, glob=False) if path.suffix == ".parquet" else pl.scan_csv(path, glob=False)
        present = names.collect_schema().names()
    except (OSError, pl.exceptions.PolarsError) as problem:
        raise ScenarioError(f"devices.table: cannot read {path} as a table") from problem
    unknown = [name for name in present if name not in LIMITS and name != "device"]
    if unknown:
        allowed = ", ".join(["device", *LIMITS])
        raise ScenarioError(f"devices.table: {path} has an unknown column '{unknown[0]}'; allowed: {allowed}")
    kinds: dict[str, type[pl.DataType]] = {"device": pl.Int64, **{n: pl.Float64 for n in LIMITS if n in present}}
    table = read_columns("devices.table", path, kinds)
    order = table["device"].to_numpy()
    if len(order) != devices or not np.array_equal(np.sort(order), np.arange(devices)):
        raise ScenarioError(f"devices.table: {path} must have one row for each device from 0 to {devices - 1}")
    found: dict[str, Reals] = {}
    for name in kinds:
        if name == "device":
            continue
        values = np.empty(devices)
        values[order] = table[name].to_numpy()
        low, high = LIMITS[name]
        if not ((values >= low) & (values <= high)).all():
            raise ScenarioError(f"devices.table: {name} must lie between {low:g} and {high:g}")
        values.flags.writeable = False
        found[name] = values
    return found
