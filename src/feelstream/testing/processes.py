"""The contracts of what changes around the devices: frequency, channel, mobility, availability, harvest, faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from feelstream.environment import AVAILABILITIES, CHANNELS, FAULTS, FREQUENCIES, HARVESTS, MOBILITIES
from feelstream.environment.availability import Availability
from feelstream.environment.base import Links, Process, ProcessContext, State
from feelstream.environment.faults import Faults
from feelstream.environment.harvest import Harvest
from feelstream.environment.mobility import Mobility
from feelstream.plugins import PluginRegistry
from feelstream.testing.contract import Kind, Promise, frozen, read_only, same, state_problem, stored_and_read


def _context(devices: int, rounds: int = 25, spread: float = 1.0) -> ProcessContext:
    """Devices that differ, read-only; spread 0: ranges of one value."""
    rng = np.random.default_rng(devices)
    low_hz, low_db = rng.uniform(1e8, 5e8, devices), rng.uniform(-10, 0, devices)
    high_hz, high_db = low_hz + spread * rng.uniform(0, 1e9, devices), low_db + spread * rng.uniform(0, 8, devices)
    low_hz, high_hz, low_db, high_db = (frozen(values) for values in (low_hz, high_hz, low_db, high_db))
    return ProcessContext(devices, rounds, 4.0, low_hz, high_hz, low_db, high_db, _links(devices))


def _links(devices: int) -> Links:
    """Devices about a street, half of them seen, that go at a walking pace."""
    rng = np.random.default_rng([devices, 1])
    position_m, velocity_m_s = (frozen(rng.normal(0, scale, (2, devices))) for scale in (80.0, 1.0))
    return Links("umi", 3.5e9, position_m, velocity_m_s, frozen(rng.random(devices) < 0.5))


CASES = {
    "ordinary": _context(12),
    "one device": _context(1),
    "ranges of one value": _context(12, spread=0.0),
    "a long run": _context(4, rounds=300),
    "many devices": _context(500, rounds=40),
    "rounds of an hour": replace(_context(12), round_s=3600.0),
}


@dataclass(frozen=True)
class Stepped:
    """A round of a process; the same the second time and from a stored state."""

    process: Process
    context: ProcessContext
    values: NDArray
    again: NDArray
    from_store: NDArray
    before: NDArray | None  # the values of the round before
    mean: float  # of all values so far
    state: State
    state_from_store: State


def _play(process: Process, context: ProcessContext) -> Iterator[tuple[str, Stepped]]:
    state, before, total = process.init(context, np.random.default_rng(1)), None, 0.0
    for t in range(1, context.rounds + 1):
        stored = stored_and_read(state)
        found = [
            process.step(t, read_only(each), context, np.random.default_rng([2, t])) for each in (state, state, stored)
        ]
        (values, state), (again, _), (from_store, restored) = found
        values = np.asarray(values)
        total += float(values.mean()) if values.dtype.kind in "biuf" and values.size else 0.0
        outcome = (values, np.asarray(again), np.asarray(from_store), before, total / t)
        yield f"round {t}", Stepped(process, context, *outcome, state, restored)
        before = values.copy()


def _finite(step: Stepped) -> str | None:
    right = step.values.shape == (step.context.devices,) and step.values.dtype.kind in "fiu"
    return None if right and np.isfinite(step.values).all() else f"it gave {step.values!r:.100}"


def _flags(step: Stepped) -> str | None:
    right = step.values.shape == (step.context.devices,) and step.values.dtype == bool
    return None if right else f"it gave {step.values!r:.100}"


def _repeatable(step: Stepped) -> str | None:
    return None if np.array_equal(step.values, step.again) else f"{step.values!r:.100}, then {step.again!r:.100}"


def _state(step: Stepped) -> str | None:
    return state_problem(step.state)


def _checkpoint(step: Stepped) -> str | None:
    if not np.array_equal(step.values, step.from_store):
        return f"{step.values!r:.100}, and {step.from_store!r:.100} from a stored state"
    return None if same(step.state, step.state_from_store) else "its next state differs after a stored one"


def _within(step: Stepped) -> str | None:
    low, high = step.context.frequency_low_hz, step.context.frequency_high_hz
    inside = (step.values >= low * (1 - 1e-12)) & (step.values <= high * (1 + 1e-12))
    return (
        None if inside.all() else f"{step.values[~inside][0]:g} Hz is not between {low[~inside][0]:g} and its highest"
    )


def _not_negative(step: Stepped) -> str | None:
    return None if (step.values >= 0).all() else f"{step.values.min():g} is negative"


def _mean(step: Stepped) -> str | None:
    """Over 500 devices and 40 rounds, 6 standard errors of an exponential law that never changes are 0.27."""
    enough = step.context.devices >= 500
    return f"the mean is {step.mean:.3g}" if enough and abs(step.mean - 1) > 0.3 else None


def _gains(step: Stepped) -> str | None:
    process, of, db = step.process, step.context, 10 * np.log10(np.maximum(step.values, 1e-300))
    assert isinstance(process, Mobility)
    low, high = process.gain_range_db(float(of.gain_low_db.min()), float(of.gain_high_db.max()))
    if not ((step.values > 0) & (db >= low - 1e-6) & (db <= high + 1e-6)).all():
        return f"gains from {db.min():.3g} to {db.max():.3g} dB, and gain_range_db says {low:.3g} to {high:.3g}"
    if process.within_gain_db and not ((db >= of.gain_low_db - 1e-6) & (db <= of.gain_high_db + 1e-6)).all():
        return "`within_gain_db`, and a gain is not in the range of its device"
    if process.fixed and step.before is not None and not np.array_equal(step.values, step.before):
        return "`fixed`, and a gain has changed"
    return None


def _there(step: Stepped) -> str | None:
    assert isinstance(step.process, Availability)
    return "`always_there`, and a device is away" if step.process.always_there and not step.values.all() else None


def _fails(step: Stepped) -> str | None:
    assert isinstance(step.process, Faults)
    return "`never_fails`, and a device fails" if step.process.never_fails and step.values.any() else None


def _battery(step: Stepped) -> str | None:
    assert isinstance(step.process, Harvest)
    battery_j, charge_j = step.process.battery_j, step.process.charge_j
    right = battery_j is None or (0 < battery_j < np.inf and 0 <= charge_j <= battery_j)
    return None if right else f"`battery_j` is {battery_j!r} and `charge_j` is {charge_j!r}"


VALUES = Promise("values", "it gives one finite number per device", _finite)
OF_ALL = (
    Promise("state", "its state is a dictionary of plain, finite arrays", _state),
    Promise("repeatable", "the same state and random numbers give the same values", _repeatable),
    Promise("checkpoint", "it goes on the same from a stored state", _checkpoint),
)


def _kind(name: str, registry: PluginRegistry, *promises: Promise[Stepped]) -> Kind[Stepped]:
    return Kind(name, registry, CASES, _play, (*promises, *OF_ALL))


FREQUENCY = _kind(
    "frequency", FREQUENCIES, VALUES, Promise("range", "every frequency lies in the range of its device", _within)
)
CHANNEL = _kind(
    "channel",
    CHANNELS,
    VALUES,
    Promise("sign", "no power is negative", _not_negative),
    Promise("mean", "powers have mean 1: the mean gain is the device's β", _mean),
)
MOBILITY = _kind(
    "mobility",
    MOBILITIES,
    VALUES,
    Promise("gains", "every gain is in the range that gain_range_db states, and as the flags promise", _gains),
)
AVAILABILITY = _kind(
    "availability",
    AVAILABILITIES,
    Promise("values", "it gives one truth value per device", _flags),
    Promise("flags", "it does what its flags promise to other code", _there),
)
HARVEST = _kind(
    "harvest",
    HARVESTS,
    VALUES,
    Promise("sign", "no energy is negative", _not_negative),
    Promise("flags", "its battery, if there is one, has a capacity, and a charge within it", _battery),
)
FAULT = _kind(
    "faults",
    FAULTS,
    Promise("values", "it gives one truth value per device", _flags),
    Promise("flags", "it does what its flags promise to other code", _fails),
)
PROCESSES: tuple[Kind[Stepped], ...] = (FREQUENCY, CHANNEL, MOBILITY, AVAILABILITY, HARVEST, FAULT)
