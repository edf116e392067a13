"""The formulas of 3GPP TR 38.901, version 17: path loss, line of sight and shadowing in its scenes.

Reference: 3GPP TR 38.901, "Study on channel model for frequencies from 0.5 to 100 GHz", tables 7.4.1-1, 7.4.2-1, 7.5-6
and 7.6.3.1-2. Distances in m, frequencies in GHz, losses in dB. Devices are outdoors, 1.5 m above the ground; the base
station and the buildings have the default heights of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from feelstream.arrays import Flags, Reals
from feelstream.environment.base import Place

LIGHT_M_S = 299792458.0
DEVICE_M = 1.5  # h_UT
BUILDING_M, STREET_M = 5.0, 20.0  # h and W of RMa
NEAREST_M = 10.0  # d_2D of the tables begin here


@dataclass(frozen=True)
class Scene:
    """One of the table's scenarios."""

    station_m: float  # h_BS
    line_of_sight: Callable[[Reals], Reals]  # P(LOS) by d_2D
    loss_los_db: Callable[[Reals, float], Reals]  # by d_2D and GHz
    loss_other_db: Callable[[Reals, float], Reals]  # PL', of which NLOS takes the greater of both
    spread_los_db: tuple[float, float]  # σ_SF before and beyond the break point of RMa; one elsewhere
    spread_other_db: float
    correlation_m: tuple[float, float]  # of shadowing, LOS and not
    sight_correlation_m: float  # of line of sight
    most_ghz: float = 100.0  # carriers and distances for which the tables are meant
    most_m: float = 5000.0

    def loss_db(self, distance_m: Reals, ghz: float, sight: Flags | bool) -> Reals:
        """Without shadowing."""
        seen_db = self.loss_los_db(distance_m, ghz)
        return np.where(sight, seen_db, np.maximum(seen_db, self.loss_other_db(distance_m, ghz)))

    def spread_db(self, distance_m: Reals, ghz: float, sight: Flags | bool) -> Reals:
        seen_db = np.where(distance_m <= _rural_break_m(ghz), *self.spread_los_db)
        return np.where(sight, seen_db, self.spread_other_db)


def _apart_m(distance_m: Reals, station_m: float) -> Reals:
    """d_3D."""
    return np.hypot(distance_m, station_m - DEVICE_M)


def _break_m(station_m: float, ghz: float) -> float:
    """d'_BP of UMi and UMa, with the effective height of the environment, 1 m, taken off."""
    return 4 * (station_m - 1.0) * (DEVICE_M - 1.0) * ghz * 1e9 / LIGHT_M_S


def _two_slopes(station_m: float, at_1m_db: float, slope_db: float, turn_db: float) -> Callable[[Reals, float], Reals]:
    def loss_db(distance_m: Reals, ghz: float) -> Reals:
        apart_m, break_m = _apart_m(distance_m, station_m), _break_m(station_m, ghz)
        common_db = at_1m_db + 20 * np.log10(ghz)
        near_db = common_db + slope_db * np.log10(apart_m)
        beyond = turn_db * np.log10(break_m**2 + (station_m - DEVICE_M) ** 2)
        return np.where(distance_m <= break_m, near_db, common_db + 40 * np.log10(apart_m) - beyond)

    return loss_db


def _seen_in_town(decay_m: float) -> Callable[[Reals], Reals]:
    def probability(distance_m: Reals) -> Reals:
        near = 18.0 / np.maximum(distance_m, 18.0)
        return near + np.exp(-distance_m / decay_m) * (1 - near)

    return probability


def _seen_in_the_country(distance_m: Reals) -> Reals:
    return np.exp(-np.maximum(distance_m - 10.0, 0.0) / 1000.0)


RURAL_M = 35.0  # h_BS


def _rural_break_m(ghz: float) -> float:
    return 2 * np.pi * RURAL_M * DEVICE_M * ghz * 1e9 / LIGHT_M_S


def _rural_los_db(distance_m: Reals, ghz: float) -> Reals:
    def near_db(apart_m: Reals) -> Reals:
        return (
            20 * np.log10(40 * np.pi * apart_m * ghz / 3)
            + min(0.03 * BUILDING_M**1.72, 10) * np.log10(apart_m)
            - min(0.044 * BUILDING_M**1.72, 14.77)
            + 0.002 * np.log10(BUILDING_M) * apart_m
        )

    apart_m, break_m = _apart_m(distance_m, RURAL_M), _rural_break_m(ghz)
    far_db = near_db(np.asarray(break_m)) + 40 * np.log10(apart_m / break_m)
    return np.where(distance_m <= break_m, near_db(apart_m), far_db)


def _rural_other_db(distance_m: Reals, ghz: float) -> Reals:
    return (
        161.04
        - 7.1 * np.log10(STREET_M)
        + 7.5 * np.log10(BUILDING_M)
        - (24.37 - 3.7 * (BUILDING_M / RURAL_M) ** 2) * np.log10(RURAL_M)
        + (43.42 - 3.1 * np.log10(RURAL_M)) * (np.log10(_apart_m(distance_m, RURAL_M)) - 3)
        + 20 * np.log10(ghz)
        - (3.2 * np.log10(11.75 * DEVICE_M) ** 2 - 4.97)
    )


SCENES: dict[Place, Scene] = {
    "umi": Scene(
        station_m=10.0,
        line_of_sight=_seen_in_town(36.0),
        loss_los_db=_two_slopes(10.0, 32.4, 21.0, 9.5),
        loss_other_db=lambda d, ghz: 22.4 + 35.3 * np.log10(_apart_m(d, 10.0)) + 21.3 * np.log10(ghz),
        spread_los_db=(4.0, 4.0),
        spread_other_db=7.82,
        correlation_m=(10.0, 13.0),
        sight_correlation_m=50.0,
    ),
    "uma": Scene(
        station_m=25.0,
        line_of_sight=_seen_in_town(63.0),
        loss_los_db=_two_slopes(25.0, 28.0, 22.0, 9.0),
        loss_other_db=lambda d, ghz: 13.54 + 39.08 * np.log10(_apart_m(d, 25.0)) + 20 * np.log10(ghz),
        spread_los_db=(4.0, 4.0),
        spread_other_db=6.0,
        correlation_m=(37.0, 50.0),
        sight_correlation_m=50.0,
    ),
    "rma": Scene(
        station_m=RURAL_M,
        line_of_sight=_seen_in_the_country,
        loss_los_db=_rural_los_db,
        loss_other_db=_rural_other_db,
        spread_los_db=(4.0, 6.0),
        spread_other_db=8.0,
        correlation_m=(37.0, 120.0),
        sight_correlation_m=60.0,
        most_ghz=30.0,
        most_m=10000.0,  # without a line of sight the table ends at 5000
    ),
}
