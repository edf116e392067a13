"""What devices measure: it is charged in place of the model's figures, and the next rounds are planned by it.

A device that measures nothing is planned and charged by the scenario's model, times what the others measure against it.
Time and energy of local training have an estimate each:

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

Nor must one reading, wrong by orders of magnitude, fill a queue for ever. With r = reading / the energy of the round by
the scenario's model, r_k the lower median of device k's last five, and r̄ that of the other devices' r_j (1 where none
has any), a reading is charged up to

    LEAP · max(1, r̄, min(r_k, LEAP · max(1, r̄)))    times the model's, LEAP = 10.

A glitch is cut to ten times what is usual, a device that does use more is charged in full after its first turn, and one
that always exaggerates is charged a hundred times what the others use at most. A reading of training that is next to
nothing, r < r̄/10 of the others of its class, is none: a stuck meter must not make its device the cheapest for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Nested, Reals
from feelstream.columns import MEASURED
from feelstream.flower.directory import Notices
from feelstream.flower.kept import Kept
from feelstream.flower.settings import Measuring
from feelstream.flower.wire import DeviceReport
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.policies.base import Decision, Observation

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
FORGETTING = 0.9  # γ
NOISE, SPREAD = 0.3, float(np.log(10.0))  # ν, ν₀: of a reading about the estimate, of devices about the model
GATE = 3.0
LEAST = 1e-12  # times the model: a reading of 0 counts as this
STALE = 32  # rounds
SHORTEST = 1e-6  # of a round that computing is planned to take
WINDOW, LEAP = 5, 10.0
FAR_OFF = 3.0  # times the model, or a third of it
ENERGIES = ("e_cmp_j", "e_tr_j")  # of what devices measure; each reading counts up to a limit
Replies = Mapping[int, DeviceReport]
Pairs = dict[int, tuple[float, float]]  # by device: what it read, and what the model says


class Estimate(Kept):
    """One figure of all devices."""

    kept = ("total", "weight", "waiting", "read_round")

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


class Readings(Kept):
    """The last energies of one figure that every device read, relative to the model."""

    kept = ("ratios",)

    def __init__(self, devices: int) -> None:
        self.ratios = np.full((devices, WINDOW), np.nan)

    def charged(self, device: int, reading: float, modelled: float) -> float:
        """What counts of a reading, in its unit; all of it where the model has no figure."""
        if modelled <= 0:
            return reading
        usual = _lower_median(self.ratios)
        own = float(usual[device])
        usual[device] = np.nan
        others = max(1.0, np.nan_to_num(float(_lower_median(usual[None, :])[0]), nan=1.0))
        most = LEAP * max(others, min(np.nan_to_num(own, nan=1.0), LEAP * others))
        return min(reading, most * modelled)

    def stuck(self, ratios: Mapping[int, float], kinds: Ids) -> list[int]:
        """Of the devices that read this much now, relative to the model, those that read next to nothing.

        kinds: (K,) the class of each device; only those of one class are compared.
        """
        usual = _lower_median(self.ratios)
        for device, ratio in ratios.items():
            usual[device] = ratio if np.isnan(usual[device]) else usual[device]
        found = []
        for device, ratio in ratios.items():
            others = np.where((kinds == kinds[device]) & (np.arange(len(usual)) != device), usual, np.nan)
            middle = float(_lower_median(others[None, :])[0])
            several = np.count_nonzero(~np.isnan(others)) > 1  # one alone may as well be wrong itself
            if ratio < LEAST or (several and ratio < middle / LEAP):
                found.append(device)
        return found

    def add(self, ratios: Mapping[int, float]) -> None:
        """Remember what devices read this round, relative to the model."""
        for device, ratio in ratios.items():
            self.ratios[device] = [*self.ratios[device, 1:], ratio]


def _lower_median(values: Reals) -> NDArray[np.float64]:
    """Of each row, the lower one of two in the middle; NaN is no value, and the median of none."""
    ordered = np.sort(values, axis=1)  # NaN comes last
    number = np.count_nonzero(~np.isnan(values), axis=1)
    return ordered[np.arange(len(values)), np.maximum(number - 1, 0) // 2]


@dataclass(frozen=True)
class Turns:
    """A round by what was measured; arrays of (scheduled,)."""

    observation: Observation
    schedule: Ids
    trained_hz: Reals  # the chosen frequency, unless the device says that it was not held
    modelled_j: Reals  # by the scenario, not by what was learned since: all ratios must be of one kind
    transmission: Transmission  # with measurements in place of the model's figures
    read: Mapping[str, Reals]  # readings that count, by figure; NaN where there is none
    stuck: Sequence[int]  # devices whose meter reads next to nothing

    def pairs(self, name: str, modelled: Reals) -> Pairs:
        """The readings of a figure beside what the model says, where it says anything."""
        found = zip(self.schedule.tolist(), self.read[name].tolist(), modelled.tolist(), strict=True)
        return {device: (reading, model) for device, reading, model in found if reading == reading and model > 0}


class Estimates(Kept):
    """What was measured of all devices so far, and what follows from it."""

    kept = ("time", "energy", "tried", *ENERGIES)

    def __init__(self, system: System, measuring: Measuring, kinds: Ids, notices: Notices) -> None:
        """system: the scenario's model; kinds: (K,) the class of each device."""
        self.kinds, self._notices = kinds, notices
        self.system, self.measured, self.plans = system, measuring.fields, measuring.plans
        self.time, self.energy = Estimate(system.devices), Estimate(system.devices)
        self.tried = np.zeros(system.devices, bool)  # who has had a turn
        self.e_cmp_j, self.e_tr_j = Readings(system.devices), Readings(system.devices)
        self.stuck: list[int] = []  # devices whose meter read next to nothing in the last round
        self._model_judged = False  # whether the first measurements were compared with the model

    def planned(self, round: int, system: System, f_hz: Reals, able: Flags, n: int) -> System:
        """What a round is planned with; n: how many devices share the band at least, if any does.

        A device whose estimate leaves it too late to be one of n is planned by the model if it has measured nothing for
        STALE rounds, if its last reading waits for another, or if otherwise nobody of the able could be scheduled: or
        else its estimate would stay for ever.
        """
        if self.plans == "model":
            return system
        modelled_s, sending_s = self.system.cycles / f_hz, self.system.surrogate_time_s(n)
        shortest = np.minimum(SHORTEST * self.system.round_s / modelled_s, 1.0)
        factor = np.maximum(np.exp(self.time.expected()[0]), shortest)
        late = factor * modelled_s + sending_s > self.system.time_s
        again = late & ((round - self.time.read_round > STALE) | ~np.isnan(self.time.waiting))
        if not (able & (~late | again)).any():
            again = late
        energy = np.exp(self.energy.expected()[0])
        energy = np.where(self.tried, energy, np.minimum(energy, 1.0))
        return system.learned(np.where(again, 1.0, factor), energy)

    def charge(self, observation: Observation, decision: Decision, modelled: Transmission, replies: Replies) -> Turns:
        """The round with devices' own measurements in place of the model's figures."""
        schedule = decision.schedule
        trained_hz = observation.f_hz[schedule]
        if decision.f_hz is not None:
            own = [int(k) in replies and replies[int(k)].held_f_hz is False for k in schedule]
            trained_hz = np.where(own, trained_hz, decision.f_hz)
        modelled_j = self.system.compute_energy_j(trained_hz, schedule) + modelled.e_tr_j
        read, columns, stuck = dict[str, Reals](), dict[str, Reals](), list[int]()
        for name in MEASURED:
            told = [getattr(replies.get(device), name, None) for device in schedule.tolist()]
            read[name] = values = np.array(told if name in self.measured else [None] * len(schedule), np.float64)
            if name in ("t_tr_s", "e_tr_j"):
                values[~modelled.sent] = np.nan
            if name == "e_cmp_j":
                rows = np.flatnonzero(~np.isnan(values) & (modelled_j > 0))
                stuck = self.e_cmp_j.stuck({int(schedule[r]): values[r] / modelled_j[r] for r in rows}, self.kinds)
                values[np.isin(schedule, stuck)] = np.nan
            columns[name] = np.where(np.isnan(values), getattr(modelled, name), values)
            for row in np.flatnonzero(~np.isnan(values)) if name in ENERGIES else ():
                columns[name][row] = getattr(self, name).charged(int(schedule[row]), values[row], modelled_j[row])
        return Turns(observation, schedule, trained_hz, modelled_j, replace(modelled, **columns), read, stuck)

    def take(self, turns: Turns, anyone: bool) -> dict[str, NDArray]:
        """Learn from a round; which figures are measured, and what it was planned with, as columns of the trace.

        anyone: whether any device replied at all.
        """
        t, schedule = turns.observation.round, turns.schedule
        self.stuck = list(turns.stuck)
        self.energy.waiting[self.stuck] = np.nan  # whatever waits there is not confirmed
        for device in self.stuck:
            self._notices.add(t, "meter stuck", device, "it reads next to nothing, and the model's energy is charged")
        for name in ENERGIES:
            pairs = turns.pairs(name, turns.modelled_j)
            for device, reading, charged in zip(
                schedule.tolist(), turns.read[name].tolist(), getattr(turns.transmission, name).tolist(), strict=True
            ):
                if charged < reading:
                    reason = f"far above what it and the others use; {charged:.4g} J are charged"
                    told = f"it reports {name.replace('_', '-')} = {reading:.4g} J, {reason}"
                    self._notices.add(t, "energy charged in part", device, told)
            getattr(self, name).add({device: reading / model for device, (reading, model) in pairs.items()})
        seconds = turns.pairs("t_cmp_s", self.system.cycles[schedule] / turns.trained_hz)
        joules = turns.pairs("e_cmp_j", self.system.compute_energy_j(turns.trained_hz, schedule))
        if anyone and not self._model_judged:
            self._model_judged = True
            self._judge(t, seconds, joules)
            read_j = turns.read["e_cmp_j"]
            self._judge_budgets(t, np.where(np.isnan(read_j), turns.transmission.e_cmp_j, read_j))
        devices = self.system.devices
        flags = {f"{name}_measured": np.zeros(devices, bool) for name in MEASURED}
        for name, values in turns.read.items():
            flags[f"{name}_measured"][schedule] = ~np.isnan(values)
        if self.plans == "model":
            return flags
        observation, e_cmp_read_j = turns.observation, np.full(devices, np.nan)
        e_cmp_read_j[list(joules)] = [reading for reading, _ in joules.values()]
        columns = flags | {
            "t_cmp_prior_s": self.system.cycles / observation.f_hz,
            "t_cmp_planned_s": np.array(observation.compute_time_s),
            "t_cmp_spread": self.time.expected()[1],
            "e_cmp_prior_j": self.system.compute_energy_j(observation.f_hz),
            "e_cmp_planned_j": np.array(observation.compute_energy_j),
            "e_cmp_spread": self.energy.expected()[1],
            "e_cmp_read_j": e_cmp_read_j,
            "trained_hz": turns.trained_hz,
        }
        self.time.add(t, seconds)
        self.energy.add(t, joules)
        self.tried[schedule] = True
        return columns

    def _judge(self, t: int, seconds: Pairs, joules: Pairs) -> None:
        """Warn, once, where the model is far from what is measured, or nothing is."""
        if "e_cmp_j" in self.measured and not joules:
            log.warning(
                "round %d: no device measures its energy, so that the scenario's model is charged: give Device a "
                "meter, or node-config power-w",
                t,
            )
        followed = (
            "rounds are planned by what is measured from now on" if self.plans == "measured" else "plans go by it"
        )
        for pairs, what, fields in (
            (joules, "energy", "cpu.cycles and cpu.power_coefficient, or a profile"),
            (seconds, "time", "cpu.cycles and cpu.frequency_hz"),
        ):
            middle = _middle([reading / modelled for reading, modelled in pairs.values()], 1.0)
            if not 1 / FAR_OFF <= middle <= FAR_OFF:
                log.warning(
                    "round %d: devices measure %.3g times the %s of the scenario's model (%s); %s",
                    *(t, middle, what, fields, followed),
                )

    def _judge_budgets(self, t: int, turns_j: Reals) -> None:
        """Warn, once, where budgets are of another order than what turns take, measured or by the model."""
        granted_j = float(np.sum(self.system.energy_budget_j)) / len(turns_j)
        turn_j = _middle(turns_j.tolist(), 0.0)
        if turn_j > FAR_OFF * granted_j > 0:
            log.warning(
                "round %d: a turn takes %.3g J, and the budgets grant %.3g J for each of the %d turns of a round "
                "(system.energy_budget_j is per device and round): policies with energy queues go by energy alone",
                *(t, turn_j, granted_j, len(turns_j)),
            )

    def restore(self, state: Nested) -> None:
        super().restore(state)
        self._model_judged = True


def _middle(values: list[float], otherwise: float) -> float:
    """The lower median, or something else where there is no value."""
    return sorted(values)[(len(values) - 1) // 2] if values else otherwise
