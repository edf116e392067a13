"""Mean gains by 3GPP TR 38.901, version 17: path loss, line of sight and shadowing of devices in a cell.

Reference: 3GPP TR 38.901, "Study on channel model for frequencies from 0.5 to 100 GHz", tables 7.4.1-1, 7.4.2-1, 7.5-6
and 7.6.3.1-2. Distances in m, frequencies in GHz, losses in dB. Devices are outdoors, 1.5 m above the ground; the base
station and the buildings have the default heights of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from feelstream.arrays import Flags, Reals
from feelstream.environment.base import Links, Place, ProcessContext, State, Step
from feelstream.environment.mobility import reflected
from feelstream.environment.paper import Mobility
from feelstream.model.physics import ratio

MOST_SPREADS = 3.0  # shadowing beyond so many standard deviations is cut off, so that gains have a range
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
    spread_los_db: Callable[[Reals, float], Reals]  # σ_SF by d_2D and GHz
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
        return np.where(sight, self.spread_los_db(distance_m, ghz), self.spread_other_db)


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


def _four(distance_m: Reals, ghz: float) -> Reals:
    return np.full(np.shape(distance_m), 4.0)


SCENES: dict[Place, Scene] = {
    "umi": Scene(
        station_m=10.0,
        line_of_sight=_seen_in_town(36.0),
        loss_los_db=_two_slopes(10.0, 32.4, 21.0, 9.5),
        loss_other_db=lambda d, ghz: 22.4 + 35.3 * np.log10(_apart_m(d, 10.0)) + 21.3 * np.log10(ghz),
        spread_los_db=_four,
        spread_other_db=7.82,
        correlation_m=(10.0, 13.0),
        sight_correlation_m=50.0,
    ),
    "uma": Scene(
        station_m=25.0,
        line_of_sight=_seen_in_town(63.0),
        loss_los_db=_two_slopes(25.0, 28.0, 22.0, 9.0),
        loss_other_db=lambda d, ghz: 13.54 + 39.08 * np.log10(_apart_m(d, 25.0)) + 20 * np.log10(ghz),
        spread_los_db=_four,
        spread_other_db=6.0,
        correlation_m=(37.0, 50.0),
        sight_correlation_m=50.0,
    ),
    "rma": Scene(
        station_m=RURAL_M,
        line_of_sight=_seen_in_the_country,
        loss_los_db=_rural_los_db,
        loss_other_db=_rural_other_db,
        spread_los_db=lambda d, ghz: np.where(d <= _rural_break_m(ghz), 4.0, 6.0),
        spread_other_db=8.0,
        correlation_m=(37.0, 120.0),
        sight_correlation_m=60.0,
        most_ghz=30.0,
        most_m=10000.0,  # without a line of sight the table ends at 5000
    ),
}


class TR38901(Mobility):
    """Path loss, line of sight and shadowing of 3GPP TR 38.901 (tables 7.4.1-1, 7.4.2-1, 7.5-6) in a round cell.

    β_k(t) in dB = offset_db − PL(d_k, sight) − σ_SF·s_k, with s ~ N(0, 1) cut off at ±3. Devices move as in
    random_direction; shadowing and line of sight hang together over the way Δ that a device goes in a round:
    s(t+1) = ρ s(t) + √(1−ρ²) w, ρ = exp(−Δ/d_cor), and a device is seen where Φ(z_k) < P_LOS(d_k) with z likewise.
    radio.gain_db is not used.
    """

    tag: ClassVar[str] = "tr38901"

    place: Annotated[Place, Field(description="umi: street canyon; uma: above roofs; rma: the country")] = "umi"
    carrier_ghz: Annotated[
        float, Field(strict=True, ge=0.5, le=100, description="carrier frequency, GHz; 0.5 to 100")
    ] = 3.5
    radius_m: Annotated[
        float, Field(strict=True, ge=10, le=10000, description="radius of the cell, m; 10 to 10000")
    ] = 200.0
    speed_m_s: Annotated[
        float, Field(strict=True, ge=0, le=1e6, description="speed of every device, m/s; 0 to 1e6")
    ] = 0.0
    turn: Annotated[
        float, Field(strict=True, ge=0, le=1, description="probability of a new heading per round; 0 to 1")
    ] = 0.1
    offset_db: Annotated[
        float,
        Field(strict=True, ge=-1000, le=1000, description="path loss at which β is 0 dB, dB; -1000 to 1000"),
    ] = 110.0

    @model_validator(mode="after")
    def _within_the_tables(self) -> Self:
        most = {"carrier_ghz": SCENES[self.place].most_ghz, "radius_m": SCENES[self.place].most_m}
        for field, limit in most.items():
            if (value := getattr(self, field)) > limit:
                raise ValueError(f".{field}: must be at most {limit:g} in {self.place}, not {value!r}")
        return self

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        scene, ends = SCENES[self.place], np.array([NEAREST_M, self.radius_m])
        most = max(
            float((scene.loss_db(ends, self.carrier_ghz, sight) + self._most_db(ends, sight)).max())
            for sight in (True, False)
        )
        least = float((scene.loss_db(ends, self.carrier_ghz, True) - self._most_db(ends, True)).min())
        # A far device that is seen may have the wider spread of RMa; a near one that is not, that of NLOS.
        least = min(least, float((scene.loss_db(ends, self.carrier_ghz, False) - self._most_db(ends, False)).min()))
        return self.offset_db - most, self.offset_db - least

    def _most_db(self, distance_m: Reals, sight: bool) -> Reals:
        return MOST_SPREADS * SCENES[self.place].spread_db(distance_m, self.carrier_ghz, sight)

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        distance = self.radius_m * np.sqrt(rng.random(context.devices))
        angle, heading = rng.uniform(0, 2 * np.pi, (2, context.devices))
        shadow, sight = rng.standard_normal((2, context.devices))
        place = distance * np.array([np.cos(angle), np.sin(angle)])
        return {"place": place, "heading": heading, "shadow": shadow, "sight": sight}

    def links(self, state: State) -> Links:
        direction = np.array([np.cos(state["heading"]), np.sin(state["heading"])])
        seen = self._seen(state, self._distance_m(state))
        return Links(self.place, self.carrier_ghz * 1e9, state["place"], self.speed_m_s * direction, seen)

    def _distance_m(self, state: State) -> Reals:
        return np.clip(np.hypot(*state["place"]), NEAREST_M, self.radius_m)

    def _seen(self, state: State, distance_m: Reals) -> Flags:
        from scipy.special import ndtr  # here: slow to import, and few scenarios need it

        return ndtr(state["sight"]) < SCENES[self.place].line_of_sight(distance_m)

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        scene, distance_m = SCENES[self.place], self._distance_m(state)
        seen = self._seen(state, distance_m)
        spread_db = scene.spread_db(distance_m, self.carrier_ghz, seen)
        shadow_db = spread_db * np.clip(state["shadow"], -MOST_SPREADS, MOST_SPREADS)
        beta = ratio(self.offset_db - scene.loss_db(distance_m, self.carrier_ghz, seen) - shadow_db)
        if self.speed_m_s == 0:
            return beta, state
        turns = rng.random(context.devices) < self.turn
        heading = np.where(turns, rng.uniform(0, 2 * np.pi, context.devices), state["heading"])
        way_m = self.speed_m_s * context.round_s
        place, heading = reflected(state["place"], heading, way_m, self.radius_m)
        shadow = _further(state["shadow"], way_m / np.where(seen, *scene.correlation_m), rng)
        sight = _further(state["sight"], way_m / scene.sight_correlation_m, rng)
        return beta, {"place": place, "heading": heading, "shadow": shadow, "sight": sight}


def _further(value: Reals, way: Reals | float, rng: np.random.Generator) -> Reals:
    """A standard normal process one step later. way: that was gone, in correlation distances."""
    rho = np.exp(-way)
    return rho * value + np.sqrt(1 - rho * rho) * rng.standard_normal(len(value))
