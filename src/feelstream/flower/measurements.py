"""What devices measure: it is charged in place of the model's figures, and the next rounds are planned by it.

A device that measures nothing is planned and charged by the scenario's model, times what the others measure against it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Nested, Reals
from feelstream.columns import MEASURED
from feelstream.flower.estimates import Estimates
from feelstream.flower.readings import Readings
from feelstream.flower.report import DeviceReport
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.policies.base import Decision, Observation

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
FAR_OFF = 3.0  # times the model, or a third of it
ENERGIES = ("e_cmp_j", "e_tr_j")  # of what devices measure; each reading counts up to a limit
Plans = Literal["measured", "model"]
Replies = Mapping[int, DeviceReport]
Pairs = dict[int, tuple[float, float]]  # by device: what it read, and what the model says


class Measurements:
    """Readings of all devices so far, and what follows from them."""

    def __init__(self, system: System, measured: Iterable[str], plans: Plans) -> None:
        """system: the scenario's model; measured: which measurements count; plans: what rounds are planned by."""
        self.system, self.measured, self.plans = system, tuple(measured), plans
        self.readings, self.estimates = Readings(system.devices, ENERGIES), Estimates(system.devices)
        self._model_judged = False  # whether the first measurements were compared with the model

    def planned(self, round: int, system: System, f_hz: Reals, able: Flags, n: int) -> System:
        """What a round is planned with; n: how many devices share the band at least, if any does."""
        if self.plans == "model":
            return system
        return system.learned(*self.estimates.planned(round, self.system, f_hz, able, n))

    def in_place_of(
        self, modelled: Transmission, observation: Observation, decision: Decision, replies: Replies
    ) -> tuple[Transmission, dict[str, NDArray[np.bool_]]]:
        """The transmission with devices' own measurements in place of the model's figures, and which those are."""
        flags = {f"{name}_measured": np.zeros(self.system.devices, bool) for name in MEASURED}
        columns = {name: getattr(modelled, name).copy() for name in MEASURED}
        schedule, modelled_j = decision.schedule, self._by_the_scenario(modelled, observation, decision, replies)
        for row, device in enumerate(schedule):
            reply = replies.get(int(device))
            for name in self.measured if reply is not None else ():
                value = getattr(reply, name)
                if value is not None and (modelled.sent[row] or name in ("t_cmp_s", "e_cmp_j")):
                    if name in ENERGIES:
                        value = self.readings.charged(name, int(device), value, float(modelled_j[row]))
                    columns[name][row] = value
                    flags[f"{name}_measured"][device] = True
        return replace(modelled, **columns), flags

    def _by_the_scenario(
        self, modelled: Transmission, observation: Observation, decision: Decision, replies: Replies
    ) -> Reals:
        """(scheduled,) the energy of the round by the scenario's model, J, which readings are compared with.

        Not by what was learned since: the ratios of a device's first turns and of its later ones must be of one kind,
        or a fleet that is seventy times the model would let one glitch be charged seventy times too high.
        """
        trained_hz = _trained_hz(observation, decision, replies)
        return self.system.compute_energy_j(trained_hz, decision.schedule) + modelled.e_tr_j

    def take(
        self,
        observation: Observation,
        decision: Decision,
        modelled: Transmission,
        flags: Mapping[str, NDArray[np.bool_]],
        replies: Replies,
    ) -> dict[str, NDArray]:
        """Learn from a round; what it was planned with, and by what, as columns of the trace."""
        schedule, t = decision.schedule, observation.round
        self._limit(t, schedule, self._by_the_scenario(modelled, observation, decision, replies), flags, replies)
        trained_hz = _trained_hz(observation, decision, replies)
        model = {
            "t_cmp_s": self.system.cycles[schedule] / trained_hz,
            "e_cmp_j": self.system.compute_energy_j(trained_hz, schedule),
        }
        read: dict[str, Pairs] = {
            name: {
                device: (float(getattr(replies[device], name)), float(model[name][row]))
                for row, device in enumerate(map(int, schedule))
                if flags[f"{name}_measured"][device] and model[name][row] > 0
            }
            for name in model
        }
        if replies and not self._model_judged:
            self._model_judged = True
            self._judge(t, read)
            self._judge_budgets(t, schedule, read["e_cmp_j"])
        if self.plans == "model":
            return {}
        columns = self._columns(observation) | {"trained_hz": trained_hz}
        for device, (reading, _) in read["e_cmp_j"].items():
            columns["e_cmp_read_j"][device] = reading
        self.estimates.time.add(t, read["t_cmp_s"])
        self.estimates.energy.add(t, read["e_cmp_j"])
        self.estimates.tried[schedule] = True
        return columns

    def _columns(self, observation: Observation) -> dict[str, NDArray]:
        """What was planned with, before anything of the round is learned."""
        return {
            "t_cmp_prior_s": self.system.cycles / observation.f_hz,
            "t_cmp_planned_s": np.array(observation.compute_time_s),
            "t_cmp_spread": self.estimates.time.expected()[1],
            "e_cmp_prior_j": self.system.compute_energy_j(observation.f_hz),
            "e_cmp_planned_j": np.array(observation.compute_energy_j),
            "e_cmp_spread": self.estimates.energy.expected()[1],
            "e_cmp_read_j": np.full(self.system.devices, np.nan),
        }

    def _limit(
        self,
        t: int,
        schedule: Ids,
        modelled_j: Reals,
        flags: Mapping[str, NDArray[np.bool_]],
        replies: Replies,
    ) -> None:
        """Remember how far readings are from what was expected, and tell of those that are charged in part only."""
        for name in ENERGIES:
            found: dict[int, float] = {}
            for device, expected_j in zip(map(int, schedule), map(float, modelled_j), strict=True):
                if flags[f"{name}_measured"][device] and expected_j > 0:
                    reading = getattr(replies[device], name)
                    found[device] = reading / expected_j
                    charged = self.readings.charged(name, device, reading, expected_j)
                    if charged < reading:
                        log.warning(
                            "round %d: device %d reports %s = %.4g J, far above what it and the others use; "
                            "%.4g J are charged",
                            *(t, device, name.replace("_", "-"), reading, charged),
                        )
            self.readings.add(name, found)

    def _judge(self, t: int, read: Mapping[str, Pairs]) -> None:
        """Warn, once, where the model is far from what is measured, or nothing is."""
        if "e_cmp_j" in self.measured and not read["e_cmp_j"]:
            log.warning(
                "round %d: no device measures its energy, so that the scenario's model is charged: give Device a "
                "meter, or node-config power-w",
                t,
            )
        followed = (
            "rounds are planned by what is measured from now on" if self.plans == "measured" else "plans go by it"
        )
        for name, what, fields in (
            ("e_cmp_j", "energy", "cpu.cycles and cpu.power_coefficient, or a profile"),
            ("t_cmp_s", "time", "cpu.cycles and cpu.frequency_hz"),
        ):
            ratios = sorted(reading / modelled for reading, modelled in read[name].values())
            middle = ratios[(len(ratios) - 1) // 2] if ratios else 1.0
            if not 1 / FAR_OFF <= middle <= FAR_OFF:
                log.warning(
                    "round %d: devices measure %.3g times the %s of the scenario's model (%s); %s",
                    *(t, middle, what, fields, followed),
                )

    def _judge_budgets(self, t: int, schedule: Ids, read: Pairs) -> None:
        """Warn, once, where budgets are of another order than what devices measure: the queues then decide all."""
        granted_j = float(np.sum(self.system.energy_budget_j)) / len(schedule)
        turns_j = sorted(reading for reading, _ in read.values())
        turn_j = turns_j[(len(turns_j) - 1) // 2] if turns_j else 0.0
        if turn_j > FAR_OFF * granted_j > 0:
            log.warning(
                "round %d: a turn takes %.3g J, and the budgets grant %.3g J for each of the %d turns of a round "
                "(system.energy_budget_j is per device and round): policies with energy queues go by energy alone",
                *(t, turn_j, granted_j, len(schedule)),
            )

    def snapshot(self) -> Nested:
        return {"readings": self.readings.snapshot(), "estimates": self.estimates.snapshot()}

    def restore(self, state: Nested) -> None:
        self.readings.restore(state["readings"])
        self.estimates.restore(state["estimates"])
        self._model_judged = True


def _trained_hz(observation: Observation, decision: Decision, replies: Replies) -> Reals:
    """(scheduled,) at which frequency each has trained: the chosen one, unless the device says that it was not held."""
    f_hz = observation.f_hz[decision.schedule]
    if decision.f_hz is None:
        return f_hz
    own = [int(k) in replies and replies[int(k)].held_f_hz is False for k in decision.schedule]
    return np.where(own, f_hz, decision.f_hz)
