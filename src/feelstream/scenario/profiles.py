"""Which CPU core each device has, and what follows from it: ranges of frequencies, and what an energy law knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from feelstream.arrays import Ids, Reals
from feelstream.errors import ScenarioError
from feelstream.model.energy import Core, EnergyLaw
from feelstream.model.energy.cores import AT_A_POINT
from feelstream.scenario.cores import core
from feelstream.scenario.population import DeviceClass, DevicesSettings, Population, class_sizes

Range = tuple[float, float] | Literal["profile"]


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


def check_profiles(profiles: Profiles, law: EnergyLaw, population: Population, ranges: Sequence[Range | None]) -> None:
    """Every device has a profile where the law needs one, no frequency is above its highest point, none is in vain."""
    kind = law.plugin_name()
    if not law.needs_cores:
        if any(profiles.names) and "profile" not in ranges:
            raise ScenarioError(
                f"cpu.profile: changes nothing under cpu.energy.kind = {kind} with frequencies in numbers; set "
                "cpu.energy.kind = voltage, or cpu.frequency_hz = profile"
            )
        return
    if not profiles.cores:
        raise ScenarioError(f"cpu.profile: every device must have one under cpu.energy.kind = {kind}")
    highest: Reals = np.array([each.frequency_hz[-1] for each in profiles.cores])
    highest = np.broadcast_to(highest, len(population.cycles)) if profiles.which is None else highest[profiles.which]
    over = np.flatnonzero(population.frequency_high_hz > highest * (1 + AT_A_POINT))
    if len(over):
        k = over[0]
        raise ScenarioError(
            f"cpu.frequency_hz: must be at most {highest[k]:g}, the highest operating point of its profile, for "
            f"device {k}, not {population.frequency_high_hz[k]:g}; or write profile for the range of its points"
        )
