"""Large-scale gain β_k(t): the paper's, and path loss from the distance of a device that moves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from feelstream.arrays import Flags, Reals
from feelstream.environment.base import Links, Place, Process, ProcessContext, State, Step, gives
from feelstream.environment.tr38901 import NEAREST_M, SCENES
from feelstream.guard import Array, Out
from feelstream.model.physics import ratio
from feelstream.plugins import Fraction, Kind, Positive

MOST_SPREADS = 3.0  # shadowing beyond so many standard deviations is cut off, so that gains have a range
Speed = Annotated[float, Field(strict=True, ge=0, le=1e6, description="speed of every device, m/s; 0 to 1e6")]
Turn = Annotated[Fraction, Field(description="probability of a new heading per round; 0 to 1")]


def keeps_its_gains(process: Mobility, found: Step, round: int, state: State, context: Any, rng: Any) -> str | None:
    """Every gain is in the range that `gain_range_db` states."""
    low, high = 10 * np.log10(found[0].min()), 10 * np.log10(found[0].max())
    least, most = process.gain_range_db(float(context.gain_low_db.min()), float(context.gain_high_db.max()))
    if low >= least - 1e-6 and high <= most + 1e-6:
        return None
    return f"has gains from {low:.3g} to {high:.3g} dB, and gain_range_db says {least:.3g} to {most:.3g}"


class Mobility(Process):
    """Mean power gains β_k(t), linear."""

    plugin_field: ClassVar[str] = "world.mobility"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(above=True, least=0), keeps_its_gains)
    plugin_traits: ClassVar[tuple[str, ...]] = ("fixed", "within_gain_db")

    fixed: ClassVar[bool] = False  # a device has one β for the whole run
    within_gain_db: ClassVar[bool] = False  # every β_k lies in the range of radio.gain_db, or of the device's class

    @abstractmethod
    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        """The least and the largest β that can occur, given those of radio.gain_db."""

    def links(self, state: State) -> Links | None:
        """Where devices are in the round that begins with this state, and who is seen; None: it does not know."""
        return None


class Static(Mobility):
    """β_k in dB ~ U(radio.gain_db), drawn once and fixed for a run: the paper's."""

    fixed: ClassVar[bool] = True
    within_gain_db: ClassVar[bool] = True

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        return low_db, high_db

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"beta": ratio(rng.uniform(context.gain_low_db, context.gain_high_db))}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return state["beta"], state


def placed(devices: int, radius_m: float, rng: np.random.Generator) -> State:
    """Devices anywhere in a disc, on their way in any direction: place (2, K) in m, heading (K,)."""
    distance = radius_m * np.sqrt(rng.random(devices))
    angle, heading = rng.uniform(0, 2 * np.pi, (2, devices))
    return {"place": distance * np.array([np.cos(angle), np.sin(angle)]), "heading": heading}


def moved(state: State, path_m: float, turn: float, radius_m: float, rng: np.random.Generator) -> State:
    """The same devices `path_m` later; before, each takes a new heading with probability `turn`."""
    devices = len(state["heading"])
    turns = rng.random(devices) < turn
    heading = np.where(turns, rng.uniform(0, 2 * np.pi, devices), state["heading"])
    place, heading = reflected(state["place"], heading, path_m, radius_m)
    return {"place": place, "heading": heading}


def reflected(place: NDArray, heading: NDArray, path_m: float, radius_m: float) -> tuple[NDArray, NDArray]:
    """Straight on for `path_m` inside a disc, with mirror reflection at its edge; (2, K) and (K,)."""
    place, direction = place.copy(), np.array([np.cos(heading), np.sin(heading)])
    left = np.full(place.shape[1], path_m)
    # A chord may be short near the edge; what is still to go after many bounces is dropped, which moves nobody outside.
    for _ in range(64):
        along = (place * direction).sum(axis=0)
        to_edge = -along + np.sqrt(np.maximum(along**2 + radius_m**2 - (place**2).sum(axis=0), 0.0))
        step = np.minimum(left, to_edge)
        place = place + step * direction
        left = left - step
        bounces = left > 0
        if not bounces.any():
            break
        normal = place / np.maximum(np.hypot(*place), 1e-300)
        mirrored = direction - 2 * (direction * normal).sum(axis=0) * normal
        direction = np.where(bounces, mirrored, direction)
    return place, np.arctan2(direction[1], direction[0])


class RandomDirection(Mobility):
    """Devices move in a disc of radius R around the base station, straight on at their speed, and bounce off its edge.

    β_k(t) = β_1 · max(d_k(t), d_min)^−α with d in m and β_1 the gain at 1 m. Positions start uniform in the disc and
    stay so, because straight motion with reflection keeps the uniform law; headings are turned at random with
    probability `turn` per round. radio.gain_db is not used. Reference: P. Nain, D. Towsley, B. Liu, Z. Liu, "Properties
    of Random Direction Models", IEEE INFOCOM 2005.
    """

    radius_m: Positive = Field(default=100.0, description="R, radius of the cell, m; > 0")
    nearest_m: Positive = Field(default=10.0, description="d_min, within which the gain no longer grows, m; > 0")
    speed_m_s: Speed = 1.0
    turn: Turn = 0.1
    exponent: float = Field(
        default=3.0, strict=True, gt=0, le=10, description="α, path-loss exponent; above 0, at most 10"
    )
    gain_1m_db: float = Field(
        default=55.0, strict=True, ge=-1000, le=1000, description="β_1, gain at a distance of 1 m, dB; -1000 to 1000"
    )

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        nearest = min(self.nearest_m, self.radius_m)
        return tuple(self.gain_1m_db - 10 * self.exponent * np.log10(d) for d in (self.radius_m, nearest))

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return placed(context.devices, self.radius_m, rng)

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        distance = np.minimum(np.hypot(*state["place"]), self.radius_m)
        beta = ratio(self.gain_1m_db) * np.maximum(distance, min(self.nearest_m, self.radius_m)) ** -self.exponent
        return beta, moved(state, self.speed_m_s * context.round_s, self.turn, self.radius_m, rng)


class TR38901(Mobility):
    """Path loss, line of sight and shadowing of 3GPP TR 38.901 (tables 7.4.1-1, 7.4.2-1, 7.5-6) in a round cell.

    β_k(t) in dB = offset_db − PL(d_k, sight) − σ_SF·s_k, with s ~ N(0, 1) cut off at ±3. Devices move as in
    random_direction; shadowing and line of sight hang together over the way Δ that a device goes in a round:
    s(t+1) = ρ s(t) + √(1−ρ²) w, ρ = exp(−Δ/d_cor), and a device is seen where Φ(z_k) < P_LOS(d_k) with z likewise.
    radio.gain_db is not used.
    """

    place: Place = Field(default="umi", description="umi: street canyon; uma: above roofs; rma: the country")
    carrier_ghz: float = Field(
        default=3.5, strict=True, ge=0.5, le=100, description="carrier frequency, GHz; 0.5 to 100"
    )
    radius_m: float = Field(
        default=200.0, strict=True, ge=10, le=10000, description="radius of the cell, m; 10 to 10000"
    )
    speed_m_s: Speed = 0.0
    turn: Turn = 0.1
    offset_db: float = Field(
        default=110.0, strict=True, ge=-1000, le=1000, description="path loss at which β is 0 dB, dB; -1000 to 1000"
    )

    @model_validator(mode="after")
    def _within_the_tables(self) -> Self:
        most = {"carrier_ghz": SCENES[self.place].most_ghz, "radius_m": SCENES[self.place].most_m}
        for field, limit in most.items():
            if (value := getattr(self, field)) > limit:
                raise ValueError(f".{field}: must be at most {limit:g} in {self.place}, not {value!r}")
        return self

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        scene, ends = SCENES[self.place], np.array([NEAREST_M, self.radius_m])
        # A far device that is seen may have the wider spread of RMa; a near one that is not, that of NLOS.
        loss_db = np.stack([scene.loss_db(ends, self.carrier_ghz, sight) for sight in (True, False)])
        most_db = MOST_SPREADS * np.stack([scene.spread_db(ends, self.carrier_ghz, sight) for sight in (True, False)])
        return self.offset_db - float((loss_db + most_db).max()), self.offset_db - float((loss_db - most_db).min())

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        state = placed(context.devices, self.radius_m, rng)
        shadow, sight = rng.standard_normal((2, context.devices))
        return {**state, "shadow": shadow, "sight": sight}

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
        way_m = self.speed_m_s * context.round_s
        after = moved(state, way_m, self.turn, self.radius_m, rng)
        shadow = _further(state["shadow"], way_m / np.where(seen, *scene.correlation_m), rng)
        sight = _further(state["sight"], way_m / scene.sight_correlation_m, rng)
        return beta, {**after, "shadow": shadow, "sight": sight}


def _further(value: Reals, way: Reals | float, rng: np.random.Generator) -> Reals:
    """A standard normal process one step later. way: that was gone, in correlation distances."""
    rho = np.exp(-way)
    return rho * value + np.sqrt(1 - rho * rho) * rng.standard_normal(len(value))


MOBILITIES = Kind(
    "mobility", "mobilities", Mobility, {"static": Static, "random_direction": RandomDirection, "tr38901": TR38901}
)
