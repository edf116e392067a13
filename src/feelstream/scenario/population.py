"""What a scenario says of each device and of the system, in numbers: from its fields, classes, table and profiles.

Profiles of CPU cores: ours by name (cores.toml beside this file), a user's own by the path of a TOML file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ValidationError

from feelstream.arrays import Ids, Reals, read_only
from feelstream.errors import ScenarioError
from feelstream.model import physics
from feelstream.model.energy import Core
from feelstream.model.system import System
from feelstream.plugins import LEAST, MOST, near_or_all
from feelstream.scenario.fields import first_problem
from feelstream.scenario.sections import DeviceClass
from feelstream.tables import TableFile, Wanted

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


# What a column of a table may hold, where that is not any magnitude above 0.
LIMITS = {
    "energy_budget_j": (0.0, 1e100),
    "gain_low_db": (-1000.0, 1000.0),
    "gain_high_db": (-1000.0, 1000.0),
    "arrivals": (1e-9, 1.0),
    "priority": (1e-9, 1000.0),
}


def class_sizes(shares: list[float], devices: int) -> list[int]:
    """Devices of each class: cumulative shares, rounded, so that sizes add up and each is within 1 of its share."""
    ends = np.rint(np.cumsum(shares) * devices).astype(int)
    return np.diff(ends, prepend=0).tolist()


def _by_class(values: Sequence[Any], classes: Sequence[DeviceClass], devices: int) -> np.ndarray:
    """(K,): for each device what its class has."""
    return np.repeat(values, class_sizes([each.share for each in classes], devices))


def _from_table(name: str, population: Population) -> Population:
    file = TableFile("devices.table", name)
    limits = {each.name: LIMITS.get(each.name, (LEAST, MOST)) for each in fields(Population)}
    unknown = [name for name in file.table.columns if name not in limits and name != "device"]
    if unknown:
        raise file.problem(f"has an unknown column '{unknown[0]}'; allowed: {', '.join(['device', *limits])}")
    devices, present = len(population.cycles), [name for name in limits if name in file.table.columns]
    wanted = [Wanted("device", 0, devices - 1, whole=True), *(Wanted(name, *limits[name]) for name in present)]
    ids, *columns = file.columns(wanted)
    order = np.argsort(ids)
    if not np.array_equal(ids[order], np.arange(devices)):
        raise file.problem(f"must have one row for each device from 0 to {devices - 1}")
    found = replace(
        population, **{name: read_only(values[order]) for name, values in zip(present, columns, strict=True)}
    )
    for low, high in (("frequency_low_hz", "frequency_high_hz"), ("gain_low_db", "gain_high_db")):
        wrong = np.flatnonzero(getattr(found, low) > getattr(found, high))
        if len(wrong):
            raise file.problem(f"puts {low} above {high} for device {wrong[0]}")
    return found


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
        meant = near_or_all(name, list(our_cores()), ", or the path of a .toml file")
        raise ScenarioError(f"{field}: '{name}' is not known; {meant}")
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
        raise ScenarioError(f"{field}: in {path}, {first_problem(problem, model=Core)}") from problem


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
        which = None if len(names) == 1 else _by_class([names.index(name) for name in given], classes, devices)
        return Profiles(names, which)

    @property
    def cores(self) -> tuple[Core, ...]:
        """One for each of the names; none at all where a device has no profile."""
        return tuple(map(core, self.names)) if all(self.names) else ()


def _range_hz(given: Range, profile: str) -> tuple[float, float]:
    """The range in numbers: where it is that of the profile, from its lowest point to its highest; NaN without one."""
    if given != "profile":
        return given
    points = core(profile).frequency_hz if profile else (float("nan"),)
    return points[0], points[-1]


def population_of(scenario: Scenario) -> Population:
    """The constants of every device: of all alike, of its class, of the table, the later before the earlier."""
    cpu, radio, classes, devices = scenario.cpu, scenario.radio, scenario.devices.classes, scenario.system.devices

    def constant(usual: Any, of_class: Sequence[float | None]) -> Reals:
        alike = np.broadcast_to(np.asarray(usual, float), devices)
        if not classes:
            return alike
        own = _by_class([np.nan if value is None else value for value in of_class], classes, devices)
        return np.where(np.isnan(own), alike, own)

    def named(name: str, usual: Any) -> Reals:
        return constant(usual, [getattr(each, name) for each in classes])

    usual_hz = _range_hz(cpu.frequency_hz, cpu.profile)
    ranges_hz = [
        _range_hz(each.frequency_hz or cpu.frequency_hz, cpu.profile if each.profile is None else each.profile)
        for each in classes
    ]
    ranges_db = [each.gain_db or radio.gain_db for each in classes]
    population = Population(
        cycles=named("cycles", known_number("cpu.cycles", cpu.cycles)),
        energy_budget_j=named("energy_budget_j", scenario.system.energy_budget_j),
        frequency_low_hz=constant(usual_hz[0], [low for low, _ in ranges_hz]),
        frequency_high_hz=constant(usual_hz[1], [high for _, high in ranges_hz]),
        gain_low_db=constant(radio.gain_db[0], [low for low, _ in ranges_db]),
        gain_high_db=constant(radio.gain_db[1], [high for _, high in ranges_db]),
        arrivals=named("arrivals", 1.0),
        priority=named("priority", 1.0),
        deadline_s=named("deadline_s", scenario.system.round_s),
        power_max_w=named("power_max_w", np.inf if radio.power_max_w is None else radio.power_max_w),
        download_bit_per_s=named("download_bit_per_s", scenario.costs.download_bit_per_s),
    )
    if scenario.devices.table:
        population = _from_table(scenario.devices.table, population)
    if np.isnan(population.frequency_low_hz).any():
        raise ScenarioError("cpu.frequency_hz: profile is a range only where there is one; set cpu.profile")
    return population


def system_of(scenario: Scenario, classes: int) -> System:
    """The constants that a server knows, as plain numbers and arrays."""
    population, slot = scenario.population, scenario.reports.slot(scenario.policy, scenario.data, classes)
    before_s, per_sample = slot.slot_s if slot else 0.0, scenario.costs.cycles_per_sample
    devices, update_bits = scenario.system.devices, known_number("radio.update_bits", scenario.radio.update_bits)
    download_s = scenario.costs.download_bits / population.download_bit_per_s
    return System(
        devices=devices,
        rounds=scenario.system.rounds,
        classes=classes,
        features=scenario.data.features.size(classes),
        round_s=scenario.system.round_s - before_s,
        energy_budget_j=population.energy_budget_j,
        cycles=np.broadcast_to(per_sample, devices) if per_sample else population.cycles,
        power_coefficient=scenario.cpu.power_coefficient,
        frequency_hz=scenario.frequency_range_hz,
        bandwidth_hz=scenario.radio.bandwidth_hz,
        noise_w_per_hz=scenario.radio.noise_w_per_hz,
        received_power_w=physics.watts(scenario.radio.received_power_dbm),
        rate_discount=scenario.radio.rate_discount,
        link_margin=scenario.radio.link_margin,
        admission=scenario.radio.admission,
        update_bits=update_bits,
        device_bits=np.broadcast_to(update_bits, devices),
        eligible=scenario.data.eligible,
        empty_used=scenario.data.empty_used,
        empty_fresh=scenario.data.empty_fresh,
        priority=population.priority,
        energy=scenario.cpu.energy,
        cores=scenario.profiles.cores,
        core=scenario.profiles.which if scenario.profiles.cores else None,
        deadline_s=population.deadline_s - before_s,
        download_s=download_s,
        download_j=scenario.costs.receive_power_w * download_s,
        power_max_w=population.power_max_w,
        cycles_per_sample=per_sample,
        reports=slot,
        block_bits=scenario.radio.block_bits,
        code_overhead=scenario.radio.code_overhead,
        signed_queues=scenario.system.queue == "signed",
    )
