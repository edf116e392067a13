"""Mean gains by 3GPP TR 38.901: devices in a cell, seen or not, behind obstacles, at rest or on the move."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from feelstream.arrays import Flags, Reals
from feelstream.environment.base import Links, ProcessContext, State, Step
from feelstream.environment.mobility import Mobility, reflected
from feelstream.environment.pathloss import NEAREST_M, SCENES, Place
from feelstream.model.physics import ratio

MOST_SPREADS = 3.0  # shadowing beyond so many standard deviations is cut off, so that gains have a range


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
