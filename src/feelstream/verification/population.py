"""The constants of every device, resolved a second time from run.json: classes of devices, then the table of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feelstream.errors import RunError, ScenarioError
from feelstream.tables import Column, TableFile
from feelstream.verification.findings import Array
from feelstream.verification.promises import Promises

# Columns of the population, and which end of which range a class gives for it.
COLUMNS: dict[str, tuple[str, int | None]] = {
    "cycles": ("cycles", None),
    "energy_budget_j": ("energy_budget_j", None),
    "frequency_low_hz": ("frequency_hz", 0),
    "frequency_high_hz": ("frequency_hz", 1),
    "gain_low_db": ("gain_db", 0),
    "gain_high_db": ("gain_db", 1),
    "priority": ("priority", None),
    "deadline_s": ("deadline_s", None),
    "power_max_w": ("power_max_w", None),
    "download_bit_per_s": ("download_bit_per_s", None),
}


@dataclass(frozen=True)
class Around:
    """What the world adds to the paper's: who can be reached, whether devices move, batteries."""

    comes_and_goes: bool = False
    moves: bool = False
    fails: bool = False  # updates may not arrive, whatever the channel
    capacity_j: float | None = None  # of a battery; None: there are none
    start_j: float = 0.0


PAPERS_WORLD = Around()


def around(world: Any, promises: Any) -> Around:
    """From the table [world] of run.json, and what it says of promises; a run without one is the paper's."""
    if not isinstance(world, dict):
        return PAPERS_WORLD
    availability = Promises.of("availabilities", world.get("availability"), promises)
    mobility = Promises.of("mobilities", world.get("mobility"), promises)
    harvest = Promises.of("harvests", world.get("harvest"), promises)
    return Around(
        comes_and_goes="always_there" not in availability,
        moves="fixed" not in mobility,
        fails="never_fails" not in Promises.of("faults", world.get("faults"), promises),
        capacity_j=harvest.number("battery_j"),
        start_j=harvest.number("charge_j") or 0.0,
    )


def gain_range_db(mobility: Any, promises: Any, low_db: Array, high_db: Array) -> tuple[Array, Array]:
    """The range of β: that of the population, or what path loss makes of the least and the largest distance.

    By a process of the user's own that promises neither, any gain may occur.
    """
    if "within_gain_db" in Promises.of("mobilities", mobility, promises):
        return low_db, high_db
    if mobility.get("kind") != "random_direction":
        return np.full_like(low_db, -1000.0), np.full_like(high_db, 1000.0)
    try:
        far, near = float(mobility["radius_m"]), min(float(mobility["nearest_m"]), float(mobility["radius_m"]))
        at_1m, exponent = float(mobility["gain_1m_db"]), float(mobility["exponent"])
    except (KeyError, TypeError, ValueError):
        raise RunError("run.json: a field of world.mobility is missing or no number.") from None
    return (np.full_like(low_db, at_1m - 10 * exponent * np.log10(d)) for d in (far, near))  # type: ignore[return-value]


def profiles(devices: Any, usual: Any, K: int) -> tuple[list[str], Array]:
    """The profiles of CPU cores that occur, "" for none, and which of them each device has [K]."""
    names, which = [str(usual or "")], np.zeros(K, int)
    try:
        first, total = 0, 0.0
        for each in (devices.get("classes") or []) if isinstance(devices, dict) else []:
            total += float(each["share"])
            name, end = str(names[0] if each.get("profile") is None else each["profile"]), round(total * K)
            if name not in names:
                names.append(name)
            which[first:end] = names.index(name)
            first = end
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RunError("run.json: devices.classes cannot be read.") from None
    used, which = np.unique(which, return_inverse=True)
    return [names[number] for number in used], which


def ranges_of_profiles(names: list[str], which: Array, cores: Any) -> tuple[Array, Array]:
    """The lowest and the highest operating point of every device, [K] each; NaN without a profile."""
    try:
        points = [cores[name]["frequency_hz"] if name else (np.nan,) for name in names]
        low, high = np.array([(each[0], each[-1]) for each in points], float).T
    except (KeyError, TypeError, ValueError, IndexError):
        raise RunError("run.json: the operating points of a profile are missing or no numbers.") from None
    return low[which], high[which]


def resolved(devices: Any, usual: dict[str, Array], of_profiles: tuple[Array, Array]) -> dict[str, Array]:
    """usual [K] by name, changed by the classes and then by the table of [devices].

    of_profiles: the ends of the range of frequencies where a class says that it is its profile's.
    """
    if not isinstance(devices, dict):
        return usual
    found = {name: values.copy() for name, values in usual.items()}
    K = len(found["cycles"])
    classes = devices.get("classes") or []
    try:
        first = 0
        total = 0.0
        for each in classes:
            total += float(each["share"])
            end = round(total * K)
            for name, (field, which) in COLUMNS.items():
                value = each.get(field)
                if value == "profile" and which is not None:
                    found[name][first:end] = of_profiles[which][first:end]
                elif value is not None:
                    found[name][first:end] = float(value if which is None else value[which])
            first = end
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise RunError("run.json: devices.classes cannot be read.") from None
    if devices.get("table"):
        _apply_table(Path(str(devices["table"])), found)
    return found


def _apply_table(path: Path, found: dict[str, Array]) -> None:
    try:
        file = TableFile("devices.table", path)
        present = [name for name in COLUMNS if name in file.names]
        device = Column("device", 0, len(found["cycles"]) - 1, whole=True)
        order, *columns = file.columns([device, *(Column(name) for name in present)])
    except ScenarioError:
        raise RunError(f"{path}, the table of devices that run.json names, is missing or cannot be read.") from None
    for name, values in zip(present, columns, strict=True):
        found[name][order] = values
