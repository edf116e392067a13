"""[devices], and what it comes to: the constants of each device, by its class and by a table of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field, model_validator

from feelstream.arrays import Ids, Reals, read_only
from feelstream.errors import ScenarioError
from feelstream.model.energy import Core
from feelstream.plugins import LEAST, MOST, NonNegative, Positive, Settings
from feelstream.scenario.profiles import core
from feelstream.scenario.sections import FrequencyRange, GainRange, Priority, Share
from feelstream.tables import TableFile, Wanted

if TYPE_CHECKING:
    from feelstream.scenario.settings import Scenario


def _from(usual: str | float, least: float = LEAST, most: float = MOST, end: int | None = None) -> dict[str, Any]:
    """usual: the field of the scenario, or the number itself, where no class says otherwise. least, most: what a table
    may say. end: which end of a range it is.
    """
    return {"usual": usual, "least": least, "most": most, "end": end}


NO_PROFILE = "cpu.frequency_hz: profile is a range only where there is one; set cpu.profile"


@dataclass(frozen=True, eq=False)
class Population:
    """The constants of every device, (K,) each: of all alike, of its class, of the table, the later before the earlier.

    Tables of devices have these columns, and classes fields of these names, or of the range.
    """

    cycles: Reals = field(metadata=_from("cpu.cycles"))
    energy_budget_j: Reals = field(metadata=_from("system.energy_budget_j", least=0.0))
    frequency_low_hz: Reals = field(metadata=_from("cpu.frequency_hz", end=0))
    frequency_high_hz: Reals = field(metadata=_from("cpu.frequency_hz", end=-1))
    gain_low_db: Reals = field(metadata=_from("radio.gain_db", -1000.0, 1000.0, end=0))
    gain_high_db: Reals = field(metadata=_from("radio.gain_db", -1000.0, 1000.0, end=-1))
    arrivals: Reals = field(metadata=_from(1.0, 1e-9, 1.0))  # share of the arriving samples that the device collects
    priority: Reals = field(metadata=_from(1.0, 1e-9, 1000.0))  # factor on the importance of its data
    deadline_s: Reals = field(metadata=_from("system.round_s"))
    power_max_w: Reals = field(metadata=_from("radio.power_max_w"))  # infinite where nothing limits it
    download_bit_per_s: Reals = field(metadata=_from("costs.download_bit_per_s"))

    @classmethod
    def of(cls, scenario: Scenario) -> Population:
        classes, devices, cpu = scenario.devices.classes, scenario.system.devices, scenario.cpu
        found: dict[str, Reals] = {}
        for each in fields(cls):
            usual, end = each.metadata["usual"], each.metadata["end"]
            name = each.name if end is None else usual.rpartition(".")[2]
            value = known_number(usual, attrgetter(usual)(scenario)) if isinstance(usual, str) else usual
            alike = np.broadcast_to(np.asarray(_number(value, cpu.profile, end, np.inf), float), devices)
            given = [(getattr(one, name), cpu.profile if one.profile is None else one.profile) for one in classes]
            if value == "profile":  # that of each class
                given = [(own or value, profile) for own, profile in given]
            if any(own == "profile" and not profile for own, profile in given):
                raise ScenarioError(f"{NO_PROFILE}, or the profile of the class")
            if classes:
                own = _by_class([_number(*one, end, np.nan) for one in given], classes, devices)
                alike = np.where(np.isnan(own), alike, own)
            found[each.name] = alike
        population = cls(**found)
        if scenario.devices.table:
            population = _from_table(scenario.devices.table, population)
        if np.isnan(population.frequency_low_hz).any():
            raise ScenarioError(NO_PROFILE)
        return population


def known_number(field: str, value: Any) -> Any:
    """What a field says; ScenarioError where it is still auto."""
    if value == "auto":
        raise ScenarioError(
            f"{field}: auto takes its number from learning.model when a scenario is simulated; give the number here"
        )
    return value


def _number(value: Any, profile: str, end: int | None, unset: float) -> Any:
    """The value, or this end of a range: that of a profile is from its lowest operating point to its highest."""
    if value is None:
        return unset
    if value == "profile":
        value = core(profile).frequency_hz if profile else (np.nan,)
    return value if end is None else value[end]


def class_sizes(shares: list[float], devices: int) -> list[int]:
    """Devices of each class: cumulative shares, rounded, so that sizes add up and each is within 1 of its share."""
    ends = np.rint(np.cumsum(shares) * devices).astype(int)
    return np.diff(ends, prepend=0).tolist()


def _by_class(values: Sequence[Any], classes: Sequence[DeviceClass], devices: int) -> np.ndarray:
    """(K,): for each device what its class has."""
    return np.repeat(values, class_sizes([each.share for each in classes], devices))


def _from_table(name: str, population: Population) -> Population:
    file, limits = TableFile("devices.table", name), {each.name: each.metadata for each in fields(Population)}
    unknown = [name for name in file.table.columns if name not in limits and name != "device"]
    if unknown:
        raise file.problem(f"has an unknown column '{unknown[0]}'; allowed: {', '.join(['device', *limits])}")
    devices, present = len(population.cycles), [name for name in limits if name in file.table.columns]
    wanted = [Wanted(name, limits[name]["least"], limits[name]["most"]) for name in present]
    ids, *columns = file.columns([Wanted("device", 0, devices - 1, whole=True), *wanted])
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
        description="classes of devices, each a table with share and any of "
        f"{', '.join([*DeviceClass.model_fields][1:])}; devices are numbered class by class",
    )
    table: str = Field(
        default="",
        description="a .csv or .parquet file with the column device and any of "
        f"{', '.join([each.name for each in fields(Population)])}; applied after the classes",
    )

    @model_validator(mode="after")
    def _shares_add_up(self) -> Self:
        total = sum(each.share for each in self.classes)
        if self.classes and abs(total - 1) > 1e-9:
            raise ValueError(f".classes: their shares must add up to 1, not {total:.6g}")
        return self
