"""What a scenario says of each device and of the system, in numbers: from its fields, classes, table and profiles.

Profiles of CPU cores: ours by name (cores.toml beside this file), a user's own by the path of a TOML file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ValidationError

from feelstream.arrays import Ids, Ints, Reals
from feelstream.errors import ScenarioError
from feelstream.model import physics
from feelstream.model.energy import Core
from feelstream.model.system import System
from feelstream.plugins import did_you_mean
from feelstream.scenario.fields import explain
from feelstream.scenario.sections import DeviceClass, DevicesSettings
from feelstream.tables import Column, TableFile

if TYPE_CHECKING:
    from feelstream.scenario.settings import Scenario

Range = tuple[float, float] | Literal["profile"]


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


@cache
def our_cores() -> dict[str, Core]:
    """The profiles that come with the package, by name."""
    text = resources.files("feelstream.scenario").joinpath("cores.toml").read_text(encoding="utf-8")
    return {name: Core.model_validate(table) for name, table in tomllib.loads(text).items()}


def core(name: str, field: str = "cpu.profile") -> Core:
    """The profile of this name, or in this file; ScenarioError names the field.

    >>> core("rk3399-a72").voltage_v[0]
    0.825
    """
    if name in our_cores():
        return our_cores()[name]
    path = Path(name)
    if path.suffix != ".toml":
        known = list(our_cores())
        raise ScenarioError(
            f"{field}: '{name}' is not known; {did_you_mean(name, known)}allowed: {', '.join(known)}, "
            "or the path of a .toml file"
        )
    try:
        return _read(path, path.stat().st_mtime_ns, field)
    except OSError as problem:
        raise ScenarioError(f"{field}: cannot read {path}: {problem.strerror}") from problem


@lru_cache(maxsize=100)
def _read(path: Path, changed_ns: int, field: str) -> Core:
    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
        return Core.model_validate(table)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ScenarioError(f"{field}: {path} is not a TOML file: {problem}") from problem
    except ValidationError as problem:
        raise ScenarioError(f"{field}: in {path}, {explain(problem, model=Core)}") from problem


@dataclass(frozen=True, eq=False)
class Profiles:
    """The profiles that occur, "" for none, and which of them each device has; None: all the first."""

    names: tuple[str, ...]
    which: Ids | None

    @staticmethod
    def of(usual: str, classes: Sequence[DeviceClass], devices: int) -> Profiles:
        """Of devices in classes, where a class without a profile has the usual one."""
        given = [usual if each.profile is None else each.profile for each in classes] or [usual]
        names = tuple(dict.fromkeys(given))
        if len(names) == 1:
            return Profiles(names, None)
        sizes = class_sizes([each.share for each in classes], devices)
        return Profiles(names, np.repeat([names.index(name) for name in given], sizes))

    @property
    def cores(self) -> tuple[Core, ...]:
        """One for each of the names; none at all where a device has no profile."""
        return tuple(map(core, self.names)) if all(self.names) else ()

    def stated(self) -> dict[str, Any]:
        """The operating points of every profile that is named, as plain tables."""
        return {name: core(name).model_dump(mode="python") for name in self.names if name}


def range_hz(given: Range, profile: str) -> tuple[float, float]:
    """The range in numbers: where it is that of the profile, from its lowest point to its highest; NaN without one."""
    if given != "profile":
        return given
    points = core(profile).frequency_hz if profile else (float("nan"),)
    return points[0], points[-1]


def with_numbers(devices: DevicesSettings, usual: Range, usual_profile: str) -> DevicesSettings:
    """The same with every range of frequencies that is a profile's in numbers."""
    classes: list[DeviceClass] = []
    for each in devices.classes:
        own = usual if each.frequency_hz is None else each.frequency_hz
        profile = usual_profile if each.profile is None else each.profile
        change = {"frequency_hz": range_hz(own, profile)} if own == "profile" else {}
        classes.append(each.model_copy(update=change))
    return devices.model_copy(update={"classes": tuple(classes)})


def check_ranges(population: Population) -> None:
    if np.isnan(population.frequency_low_hz).any():
        raise ScenarioError("cpu.frequency_hz: profile is a range only where there is one; set cpu.profile")


def population_of(scenario: Scenario) -> Population:
    """The constants of every device."""

    def everyone(value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, float), scenario.system.devices)

    cpu = scenario.cpu
    low_hz, high_hz = range_hz(cpu.frequency_hz, cpu.profile)
    alike = Population(
        cycles=everyone(known_number("cpu.cycles", scenario.cpu.cycles)),
        energy_budget_j=everyone(scenario.system.energy_budget_j),
        frequency_low_hz=everyone(low_hz),
        frequency_high_hz=everyone(high_hz),
        gain_low_db=everyone(scenario.radio.gain_db[0]),
        gain_high_db=everyone(scenario.radio.gain_db[1]),
        arrivals=everyone(1.0),
        priority=everyone(1.0),
        deadline_s=everyone(scenario.system.round_s),
        power_max_w=everyone(np.inf if scenario.radio.power_max_w is None else scenario.radio.power_max_w),
        download_bit_per_s=everyone(scenario.costs.download_bit_per_s),
    )
    devices = with_numbers(scenario.devices, cpu.frequency_hz, cpu.profile)
    population = _by_class(devices.classes, alike)
    if devices.table:
        population = _from_table(devices.table, population)
    check_ranges(population)
    return population


def system_of(scenario: Scenario, classes: int) -> System:
    """The constants that a server knows, as plain numbers and arrays."""
    population, slot = scenario.population, scenario.reports.slot(scenario.policy)
    before_s = slot.slot_s if slot else 0.0
    download_s = scenario.costs.download_bits / _one_if_alike(population.download_bit_per_s)
    return System(
        devices=scenario.system.devices,
        rounds=scenario.system.rounds,
        classes=classes,
        round_s=scenario.system.round_s - before_s,
        energy_budget_j=population.energy_budget_j,
        cycles=scenario.costs.cycles_per_sample or _one_if_alike(population.cycles),
        power_coefficient=scenario.cpu.power_coefficient,
        frequency_hz=(float(population.frequency_low_hz.min()), float(population.frequency_high_hz.max())),
        bandwidth_hz=scenario.radio.bandwidth_hz,
        noise_w_per_hz=scenario.radio.noise_w_per_hz,
        received_power_w=physics.watts(scenario.radio.received_power_dbm),
        rate_discount=scenario.radio.rate_discount,
        link_margin=scenario.radio.link_margin,
        admission=scenario.radio.admission,
        update_bits=known_number("radio.update_bits", scenario.radio.update_bits),
        eligible=scenario.data.eligible,
        empty_used=scenario.data.empty_used,
        empty_fresh=scenario.data.empty_fresh,
        priority=_one_if_alike(population.priority),
        energy=scenario.cpu.energy,
        cores=scenario.profiles.cores,
        core=scenario.profiles.which if scenario.profiles.cores else None,
        deadline_s=_one_if_alike(population.deadline_s) - before_s,
        download_s=_one_if_alike(download_s),
        download_j=_one_if_alike(scenario.costs.receive_power_w * download_s),
        power_max_w=_one_if_alike(population.power_max_w),
        cycles_per_sample=scenario.costs.cycles_per_sample,
        reports=slot,
        block_bits=scenario.radio.block_bits,
        code_overhead=scenario.radio.code_overhead,
    )


def _one_if_alike(values: float | Reals) -> float | Reals:
    """The number that all devices share, or (K,); one that was spread over all of them is not compared again."""
    if not isinstance(values, np.ndarray):
        return values
    return float(values[0]) if values.strides == (0,) or (values == values[0]).all() else values
