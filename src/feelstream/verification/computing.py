"""What computing costs, a second time: the energy laws, from the operating points that run.json states.

Here a law is a list of stretches of frequency. With t = c/f each has the convex curve

    E(t) = fixed + inverse/t + square/t² + leakage·t

which need not fall, and the next stretch need not go on where it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from feelstream.errors import RunError
from feelstream.verification.findings import Array

AT_A_POINT = 1e-9  # a frequency is an operating point if it is above it by no more than this


@dataclass(frozen=True)
class Law:
    """points [K, M] of every device, padded with the highest; all None unless the law is voltage."""

    kind: str  # cubic, voltage, or own: a user's, of which nothing is known
    power_coefficient: float
    discrete: bool = False
    points_hz: Array | None = None
    points_v: Array | None = None
    farad: Array | None = None  # [K]
    leakage_w: Array | None = None  # [K]
    factor: Array | float = 1.0  # on all of it: what was measured against the law, [R, K] where that was learned

    @property
    def known(self) -> bool:
        return self.kind != "own"

    @property
    def formula(self) -> str:
        """What a rule says of it."""
        return {"cubic": "λ·c·f²", "voltage": "c·C_eff·V(f)² + P_leak·c/f"}.get(self.kind, "the law of the user")


@dataclass(frozen=True)
class Stretch:
    """low < f ≤ high and the four numbers of E there; [K] each."""

    low_hz: Array
    high_hz: Array
    fixed: Array
    inverse: Array
    square: Array
    leakage: Array


def energy_j(law: Law, cycles: float | Array, f_hz: Array) -> Array:
    """E_cmp at f [..., K]; NaN by a law of the user's own."""
    if law.kind == "cubic":
        return law.factor * law.power_coefficient * cycles * np.square(f_hz)
    if law.kind == "own":
        return np.full(np.shape(f_hz), np.nan)
    leakage = leakage_w(law)
    return dynamic_j(law, cycles, f_hz) + leakage * (cycles / f_hz)


def dynamic_j(law: Law, cycles: float | Array, f_hz: Array) -> Array:
    """Without leakage: it rises in f, whatever the law."""
    if law.points_hz is None or law.points_v is None:
        return energy_j(law, cycles, f_hz)
    assert law.farad is not None
    return law.factor * cycles * law.farad * np.square(_volts(law.points_hz, law.points_v, f_hz, law.discrete))


def leakage_w(law: Law) -> Array | float:
    return 0.0 if law.leakage_w is None else law.factor * law.leakage_w


def most_j(law: Law, cycles: float | Array, slowest_hz: float | Array, f_hz: Array) -> Array:
    """No frequency between the two takes more: the voltage of the higher, the leakage of the lower."""
    leakage = leakage_w(law)
    return dynamic_j(law, cycles, f_hz) + leakage * (cycles / np.minimum(slowest_hz, f_hz))


def least_j(law: Law, cycles: float | Array, slowest_hz: Array, fastest_hz: Array) -> Array:
    """No frequency between the two takes less; 0 by a law that is not known."""
    if not law.known:
        return np.zeros(np.shape(slowest_hz))
    leakage = leakage_w(law)
    return dynamic_j(law, cycles, slowest_hz) + leakage * (cycles / fastest_hz)


def _volts(points_hz: Array, points_v: Array, f_hz: Array, discrete: bool) -> Array:
    """V at f [..., K]: of the first point that is not below f, or on the way to it from the one before."""
    f_hz = np.broadcast_to(f_hz, np.broadcast_shapes(np.shape(f_hz), points_hz.shape[:1]))
    below = np.zeros(f_hz.shape, int)  # points below f
    for column in points_hz.T:
        below += f_hz > column * (1 + AT_A_POINT if discrete else 1.0)
    device, last = np.arange(points_hz.shape[0]), points_hz.shape[1] - 1
    following, before = np.minimum(below, last), np.clip(below - 1, 0, last)
    upper = points_v[device, following]
    if discrete:
        return upper
    lower, start, end = points_v[device, before], points_hz[device, before], points_hz[device, following]
    part = np.clip((f_hz - start) / np.where(end > start, end - start, 1.0), 0.0, 1.0)
    return np.where(end > start, lower + part * (upper - lower), upper)


def stretches(law: Law, cycles: Array) -> list[Stretch]:
    """The whole of the law, from the lowest frequencies on; cycles [K] or [R, K]."""
    nothing = np.zeros_like(cycles)
    if law.points_hz is None or law.points_v is None:
        square = law.factor * law.power_coefficient * cycles**3
        return [Stretch(nothing, np.full_like(cycles, np.inf), nothing, nothing, square, nothing)]
    assert law.farad is not None
    assert law.leakage_w is not None
    farad, found = law.factor * law.farad, []
    for m in range(law.points_hz.shape[1] + 1):
        low_hz = law.points_hz[:, m - 1] if m else nothing
        beyond = m == law.points_hz.shape[1]
        high_hz = np.full_like(cycles, np.inf) if beyond else law.points_hz[:, m]
        upper = law.points_v[:, -1] if beyond else law.points_v[:, m]
        slope = nothing
        if m and not beyond and not law.discrete:
            rise = upper - law.points_v[:, m - 1]
            slope = np.divide(rise, high_hz - low_hz, out=nothing.copy(), where=high_hz > low_hz)
        base = np.where(slope > 0, upper - slope * np.where(beyond, 0.0, high_hz), upper)
        found.append(
            Stretch(
                low_hz,
                high_hz,
                farad * cycles * base**2,
                2 * farad * cycles**2 * base * slope,
                farad * cycles**3 * slope**2,
                np.asarray(leakage_w(law)),
            )
        )
    return found


def read_law(cpu: Any, cores: Any, profile: Array, names: list[str], coefficient: float) -> Law:
    """From the table [cpu] and the cores of run.json; profile [K]: which of the names each device has."""
    energy = cpu.get("energy") if isinstance(cpu, dict) else None
    kind = energy.get("kind", "cubic") if isinstance(energy, dict) else "cubic"
    if kind == "cubic" or not isinstance(energy, dict):
        return Law("cubic", coefficient)
    if kind != "voltage":
        return Law("own", coefficient)
    try:
        tables = [cores[name] for name in names]
        width = max(len(table["frequency_hz"]) for table in tables)
        points_hz, points_v = (
            np.array([[*table[field], *[table[field][-1]] * (width - len(table[field]))] for table in tables], float)
            for field in ("frequency_hz", "voltage_v")
        )
        farad = np.array([float(table["dynamic_power_coefficient"]) * 1e-12 for table in tables])
        given = energy.get("leakage_w")
        leakage = np.array([float(table["leakage_w"] if given is None else given) for table in tables])
        discrete = energy["points"] == "discrete"
    except (KeyError, TypeError, ValueError, IndexError):
        raise RunError("run.json: the operating points of a profile are missing or no numbers.") from None
    return Law(kind, coefficient, discrete, points_hz[profile], points_v[profile], farad[profile], leakage[profile])
