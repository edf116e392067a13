"""What local training takes of each device, learned from what it measures; time and energy have an estimate each.

    y = ln(reading / what the scenario's model says)                  of each turn that a device measured
    S ← γ S + y,  W ← γ W + 1                                        γ = 0.9
    x = (S + κ m) / (W + κ),  σ² = ν² / (W + κ),  κ = (ν/τ)²         ν = 0.3
    τ² = (ν₀² + Σ min((S/W − m)², ν₀²)) / (1 + N)                    over the N devices that have measured; ν₀ = ln 10

m is the lower median of S/W of all devices that have measured, 0 before: a device that measures nothing is expected to
be as far from the model as the others are, give or take τ, by which devices have been found to differ. Nobody knows at
first how far they do, which counts as one device ν₀ away. The estimate is the model's figure times exp x; that of the
energy is at most the model's until a device has had its first turn, so that nobody goes untried because of what others
use.

One glitch changes nothing. A reading farther from x than 3·√(σ² + ν²) only waits; if the next one agrees with it,
within 3·√2·ν, both count and all from before is forgotten, and if not it is dropped.
"""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Flags, Nested, Reals
from feelstream.model.system import System

FORGETTING = 0.9  # γ
NOISE, SPREAD = 0.3, float(np.log(10.0))  # ν, ν₀: of a reading about the estimate, of devices about the model
GATE = 3.0
LEAST = 1e-12  # times the model: a reading of 0 counts as this
STALE = 32  # rounds
SHORTEST = 1e-6  # of a round that computing is planned to take


class Estimate:
    """One figure of all devices."""

    _SAVED = ("total", "weight", "waiting", "read_round")

    def __init__(self, devices: int) -> None:
        self.total, self.weight = np.zeros(devices), np.zeros(devices)  # S, W
        self.waiting = np.full(devices, np.nan)  # a reading that the next one must confirm
        self.read_round = np.full(devices, -STALE - 1, np.int64)  # of the last reading

    def expected(self) -> tuple[Reals, Reals]:
        """(K,) x and σ."""
        measured = self.weight > 0
        known = np.sort(self.total[measured] / self.weight[measured])
        middle = known[(len(known) - 1) // 2] if len(known) else 0.0
        away2 = np.minimum(np.square(known - middle), SPREAD**2)  # one device far off must not hide the next glitch
        prior = NOISE**2 * (1 + len(known)) / (SPREAD**2 + away2.sum())  # κ
        weight = self.weight + prior
        return (self.total + prior * middle) / weight, NOISE / np.sqrt(weight)

    def add(self, round: int, readings: dict[int, tuple[float, float]]) -> None:
        """What devices measured in a round, each beside what the model says, above 0."""
        expected, sd = self.expected()
        for device, (reading, modelled) in readings.items():
            y = float(np.log(max(reading / modelled, LEAST)))
            self.read_round[device] = round
            if abs(y - expected[device]) <= GATE * np.hypot(sd[device], NOISE):
                self.total[device] = FORGETTING * self.total[device] + y
                self.weight[device] = FORGETTING * self.weight[device] + 1.0
                self.waiting[device] = np.nan
            elif abs(y - self.waiting[device]) <= GATE * np.sqrt(2.0) * NOISE:
                self.total[device], self.weight[device] = y + self.waiting[device], 2.0
                self.waiting[device] = np.nan
            else:
                self.waiting[device] = y

    def snapshot(self) -> Nested:
        return {name: getattr(self, name).copy() for name in self._SAVED}

    def restore(self, state: Nested) -> None:
        for name in self._SAVED:
            setattr(self, name, state[name].copy())


class Estimates:
    """Time and energy of local training."""

    def __init__(self, devices: int) -> None:
        self.time, self.energy = Estimate(devices), Estimate(devices)
        self.tried = np.zeros(devices, bool)  # who has had a turn

    def planned(self, round: int, system: System, f_hz: Reals, able: Flags, n: int) -> tuple[Reals, Reals]:
        """(K,) the factors on the model's time and energy that a round is planned with.

        A device whose estimate leaves it too late to be one of n is planned by the model if it has measured nothing for
        STALE rounds, if its last reading waits for another, or if otherwise nobody of the able could be scheduled: or
        else its estimate would stay for ever.
        """
        modelled_s, sending_s = system.cycles / f_hz, system.surrogate_time_s(n)
        factor = np.maximum(np.exp(self.time.expected()[0]), np.minimum(SHORTEST * system.round_s / modelled_s, 1.0))
        late = factor * modelled_s + sending_s > system.time_s
        again = late & ((round - self.time.read_round > STALE) | ~np.isnan(self.time.waiting))
        if not (able & (~late | again)).any():
            again = late
        energy = np.exp(self.energy.expected()[0])
        return np.where(again, 1.0, factor), np.where(self.tried, energy, np.minimum(energy, 1.0))

    def snapshot(self) -> Nested:
        return {"time": self.time.snapshot(), "energy": self.energy.snapshot(), "tried": self.tried.copy()}

    def restore(self, state: Nested) -> None:
        self.time.restore(state["time"])
        self.energy.restore(state["energy"])
        self.tried = state["tried"].copy()
