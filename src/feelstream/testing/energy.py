"""The contract of an energy law: `feelstream check my_law.py:Mine`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feelstream.arrays import Reals
from feelstream.model.energy import ENERGY_LAWS, Core, Cpus, EnergyLaw, Pieces
from feelstream.testing.contract import Kind, Promise, frozen

CORES = (
    Core(dynamic_power_coefficient=100.0, frequency_hz=(4e8, 6e8, 1.2e9, 1.4e9), voltage_v=(0.8, 0.8, 1.0, 1.15)),
    Core(dynamic_power_coefficient=436.0, frequency_hz=(4e8, 1e9, 1.8e9), voltage_v=(0.825, 1.15, 1.2), leakage_w=0.05),
    Core(dynamic_power_coefficient=300.0, frequency_hz=(9e8,), voltage_v=(0.9,)),
)


@dataclass(frozen=True)
class Case:
    """Some devices, with cores of one kind or of several, and the range of their frequencies."""

    devices: int = 12
    mixed: bool = True
    low_hz: float = 1e8
    high_hz: float = 1.8e9
    cycles: float = 4e8

    @property
    def cpus(self) -> Cpus:
        rng = np.random.default_rng(self.devices)
        core = frozen(rng.integers(0, len(CORES), self.devices)) if self.mixed else None
        return Cpus(1e-27, CORES if self.mixed else CORES[:1], core)


CASES = {
    "ordinary": Case(),
    "one device": Case(devices=1, mixed=False),
    "cores of one kind": Case(mixed=False),
    "frequencies below every point": Case(low_hz=1e6, high_hz=1e8),
    "frequencies above every point": Case(low_hz=2e9, high_hz=5e9),
    "hardly any work": Case(cycles=1.0),
    "many devices": Case(devices=2000),
}


@dataclass(frozen=True)
class Asked:
    """What a law says of some frequencies, all at once and of a few devices, and its pieces."""

    law: EnergyLaw
    cpus: Cpus
    cycles: Reals
    f_hz: Reals
    energy_j: Reals
    again_j: Reals
    ids: np.ndarray
    some_j: Reals  # of the devices `ids` alone
    low_hz: Reals
    most_j: Reals  # from low_hz to f_hz
    between_j: Reals  # at a frequency between the two
    pieces: Pieces | None


def _play(law: EnergyLaw, case: Case) -> Iterator[tuple[str, Asked]]:
    cpus = case.cpus
    for trial in range(20):
        rng = np.random.default_rng([1, trial])
        cycles = frozen(case.cycles * rng.uniform(0.2, 3.0, case.devices))
        f_hz = frozen(rng.uniform(case.low_hz, case.high_hz, case.devices))
        if trial == 0:  # at operating points, as far as they are in the range
            which = np.zeros(case.devices, np.int64) if cpus.core is None else cpus.core
            points = np.array([core.frequency_hz[len(core.frequency_hz) // 2] for core in cpus.cores])[which]
            f_hz = frozen(np.clip(points, case.low_hz, case.high_hz))
        ids = frozen(rng.permutation(case.devices)[: max(case.devices // 3, 1)])
        low_hz = frozen(f_hz * rng.uniform(0.3, 1.0, case.devices))
        between = frozen(low_hz + rng.random(case.devices) * (f_hz - low_hz))
        energy_j, again_j, between_j = (np.asarray(law.energy_j(cpus, cycles, f)) for f in (f_hz, f_hz, between))
        some_j = np.asarray(law.energy_j(cpus.take(ids), frozen(cycles[ids]), frozen(f_hz[ids])))
        most_j = np.asarray(law.most_j(cpus, cycles, low_hz, f_hz))
        pieces = law.pieces(cpus, cycles)
        said = (energy_j, again_j, ids, some_j, low_hz, most_j, between_j, pieces)
        yield f"trial {trial + 1}", Asked(law, cpus, cycles, f_hz, *said)


def _values(asked: Asked) -> str | None:
    found = asked.energy_j
    right = found.shape == asked.f_hz.shape and found.dtype.kind == "f"
    return None if right and np.isfinite(found).all() and (found >= 0).all() else f"it gave {found!r:.100}"


def _repeatable(asked: Asked) -> str | None:
    same = np.array_equal(asked.energy_j, asked.again_j)
    return None if same else f"{asked.energy_j!r:.100}, then {asked.again_j!r:.100}"


def _own(asked: Asked) -> str | None:
    together = asked.energy_j[asked.ids]
    close = asked.some_j.shape == together.shape and np.allclose(asked.some_j, together, rtol=1e-12, atol=0)
    return None if close else f"{together!r:.100} among all, and {asked.some_j!r:.100} asked alone"


def _most(asked: Asked) -> str | None:
    over = np.flatnonzero(~(np.maximum(asked.between_j, asked.energy_j) <= asked.most_j * (1 + 1e-9)))
    if not len(over):
        return None
    k = over[0]
    return f"most_j is {asked.most_j[k]:g} J, and a frequency of the range takes {asked.between_j[k]:g} J"


def _pieces(asked: Asked) -> str | None:
    """Its pieces say the same: where one falls by its formula, elsewhere in that slowing down saves nothing."""
    pieces, f_hz = asked.pieces, asked.f_hz[:, None]
    if pieces is None:
        return None
    inside = (pieces.low_hz < f_hz) & (f_hz <= pieces.high_hz)
    if not inside.any(axis=1).all():
        return f"no piece has the frequency {asked.f_hz[~inside.any(axis=1)][0]:g} Hz"
    t = asked.cycles[:, None] / f_hz
    said = pieces.fixed_j + pieces.inverse_j_s / t + pieces.square_j_s2 / t**2 + pieces.leakage_w * t
    off = inside & pieces.falls & ~np.isclose(said, asked.energy_j[:, None], rtol=1e-9, atol=0)
    if off.any():
        k = int(np.argmax(off.any(axis=1)))
        return f"a piece says {said[k][off[k]][0]:g} J, and energy_j {asked.energy_j[k]:g} J"
    slower = np.maximum(0.9 * f_hz, np.maximum(pieces.low_hz, 0.1 * f_hz) * (1 + 1e-6))
    slower_j = np.stack([asked.law.energy_j(asked.cpus, asked.cycles, frozen(column)) for column in slower.T], axis=1)
    saves = slower_j < asked.energy_j[:, None] * (1 - 1e-9)
    if (inside & ~pieces.falls & saves).any():
        return "a piece that does not fall, and a lower frequency of it saves energy"
    return "a piece falls, and a lower frequency of it costs more" if _rises(asked, inside, slower, slower_j) else None


def _rises(asked: Asked, inside: np.ndarray, slower: Reals, slower_j: Reals) -> bool:
    assert asked.pieces is not None
    lower = inside & asked.pieces.falls & (slower < asked.f_hz[:, None])
    return bool((lower & (slower_j > asked.energy_j[:, None] * (1 + 1e-9))).any())


ENERGY_LAW: Kind[Asked] = Kind(
    "energy law",
    ENERGY_LAWS,
    CASES,
    _play,
    (
        Promise("values", "it gives one finite energy per device, none of them negative", _values),
        Promise("repeatable", "the same frequencies give the same energies", _repeatable),
        Promise("own", "what a device spends does not depend on who else is asked about", _own),
        Promise("most", "most_j is exceeded at no frequency of its range", _most),
        Promise("pieces", "its pieces, if it states them, cover all frequencies and say what energy_j says", _pieces),
    ),
)
