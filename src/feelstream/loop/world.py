"""The world of a run: arrivals, CPU frequencies, channels, places, batteries; the same for every policy of a seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Nested, Reals, read_only
from feelstream.data.datasets.dataset import Labels, Recording
from feelstream.data.features import Vectors
from feelstream.data.streaming.arrivals import ArrivalContext
from feelstream.data.streaming.stream import Stream
from feelstream.environment.base import ProcessContext, State
from feelstream.guard import ask, freeze
from feelstream.learning.contract import Learner, Training
from feelstream.learning.local import Cohort
from feelstream.learning.probes import Asked, reported
from feelstream.loop.told import Told
from feelstream.model import physics, reporting
from feelstream.model.system import System
from feelstream.randomness import Purpose, generator
from feelstream.scenario import Scenario

Theta = NDArray[np.float32]
PROCESSES = {
    "frequency": Purpose.CPU_FREQUENCY,
    "mobility": Purpose.LARGE_SCALE_FADING,
    "channel": Purpose.SMALL_SCALE_FADING,
    "availability": Purpose.AVAILABILITY,
    "harvest": Purpose.HARVEST,
    "faults": Purpose.FAULTS,
}


class World:
    """Everything that happens to the devices with one seed, whatever is scheduled; `advance` moves it round by round.

    The stream, the batteries and processes with memory have a state, which `snapshot` keeps.

    Attributes of the present round, read-only:
        f_hz: (K,) f_k(t).
        beta: (K,) β_k(t).
        gain: (K,) |g_k(t)|²: β_k times the fading where the channel is Rayleigh, β_k where it does not fade; 0 in a
            fault.
        battery_j: (K,) charge before the round; None without batteries.
    """

    f_hz: Reals
    beta: Reals
    gain: Reals

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        labels: Labels,
        classes: int,
        recording: Recording | None = None,
        vectors: Vectors | None = None,
    ) -> None:
        """vectors: of the training samples, where devices report feature vectors."""
        self.scenario, self.seed, self.devices = scenario, seed, scenario.system.devices
        population, settings, data, system = scenario.population, scenario.world, scenario.data, scenario.system
        self.stream = Stream(
            ArrivalContext(
                labels, classes, self.devices, system.rounds, system.round_s, seed, data.partition,
                recording or Recording(),
            ),
            data.arrivals,
            data.buffer,
            fresh=data.fresh,
            collected=None if (population.arrivals == 1).all() else population.arrivals,
            vectors=vectors.of(np.arange(len(labels))) if vectors and not data.features.of_model else None,
        )  # fmt: skip
        self.told = vectors and Told(
            vectors,
            self.devices,
            since_use=data.fresh == "since_use",
            empties=data.buffer.empties_on_use,
            keeps=data.buffer.keeps,
        )
        self._context = ProcessContext(
            self.devices,
            system.rounds,
            system.round_s,
            population.frequency_low_hz,
            population.frequency_high_hz,
            population.gain_low_db,
            population.gain_high_db,
        )
        self._states: dict[str, State] = {
            name: ask(getattr(settings, name), "init", self._context, generator(seed, purpose), at=0, K=self.devices)
            for name, purpose in PROCESSES.items()
        }
        # What cannot happen, as its traits say, is not asked every round.
        never = {
            "availability": settings.availability.always_there,
            "faults": settings.faults.never_fails,
            "harvest": settings.harvest.battery_j is None,
        }
        self._stepped = [name for name in PROCESSES if not never.get(name)]
        self._values: dict[str, NDArray] = {"availability": np.ones(self.devices, bool)}
        harvest = settings.harvest
        self.battery_j = None if harvest.battery_j is None else np.full(self.devices, harvest.charge_j)
        self._local_state: Nested = {}  # what devices keep of their local training
        self._trained: tuple[Cohort, Nested, Flags] | None = None  # what `keep` needs, where they keep anything

    def use(self, senders: Ids) -> None:
        """The updates of these devices arrived in the last round: what they held counts as used from now on."""
        self.stream.use(senders)
        if self.told is not None:
            self.told.use(senders)

    def advance(self, t: int) -> None:
        """Let this round begin: samples arrive, devices move, frequencies and channels change."""
        self.stream.advance(t)
        settings, values = self.scenario.world, self._values
        if settings.channel.needs_links:
            links = ask(settings.mobility, "links", self._states["mobility"], at=t)
            self._context = replace(self._context, links=links)
        for name in self._stepped:
            known = t, self._states[name], self._context, generator(self.seed, PROCESSES[name], t)
            values[name], self._states[name] = ask(getattr(settings, name), "step", *known, at=t, K=self.devices)
        self.f_hz, self.beta = values["frequency"], values["mobility"]
        self.gain = self.beta if self.scenario.radio.fading == "none" else self.beta * values["channel"]
        if "faults" in values:
            self.gain = np.where(values["faults"], 0.0, self.gain)

    def available(self, system: System, most_power_w: Reals | None) -> Flags:
        """(K,) who is in reach and has enough charge.

        most_power_w: (K,) what no device sends with, where there are batteries.
        Nor may a device that would have to send with more than its power_max_w to arrive with P0.
        """
        able = self._values["availability"]
        if system.own_costs:
            able = able & (system.time_s > 0)
        if system.limits_power:
            able = able & (system.received_power_w / self.beta <= system.power_max_w)
        if self.battery_j is None or most_power_w is None:
            return able
        return able & (self.worst_case_j(system, most_power_w) <= self.battery_j)

    def worst_case_j(self, system: System, most_power_w: Reals) -> Reals:
        """(K,) E_cmp + P_max,k (T_k − c/f) + E_down,k, and of a report: nobody who is on time spends more in a round.

        Nor does one that computes more slowly: the time left rises with f, and E_cmp is the most of any frequency.
        """
        cycles, f_hz = system.cycles, self.f_hz
        left_s = np.maximum(system.time_s - physics.compute_time_s(cycles, f_hz), 0.0)
        worst_j = system.most_compute_energy_j(f_hz) + most_power_w * left_s + system.download_j
        if system.reports is None:
            return worst_j
        return worst_j + reporting.worst_case_j(system.reports, system, f_hz, self.beta)

    def spend(self, energy_j: Reals) -> dict[str, NDArray]:
        """Take what this round cost from the batteries and add what was harvested; columns for the trace."""
        before, harvested, capacity_j = self.battery_j, self._values["harvest"], self.scenario.world.harvest.battery_j
        assert before is not None
        left_j = np.maximum(before - energy_j, 0.0)  # never below by more than a rounding
        self.battery_j = np.minimum(left_j + harvested, capacity_j)
        return {"battery_j": before, "harvest_j": harvested}

    def snapshot(self) -> Nested:
        """All that, with the same settings and seed, lets `restore` go on exactly from here."""
        battery = {} if self.battery_j is None else {"battery_j": self.battery_j}
        told = {} if self.told is None else {"told": self.told.snapshot()}
        return {
            "stream": self.stream.snapshot(),
            "processes": dict(self._states),
            "local": self._local_state,
            **battery,
            **told,
        }

    def restore(self, saved: Nested) -> None:
        self.stream.restore(saved["stream"])
        self._states = {name: freeze(saved["processes"][name]) for name in PROCESSES}
        self._local_state, self._trained = freeze(saved["local"]), None
        if self.battery_j is not None:
            self.battery_j = saved["battery_j"]
        if self.told is not None:
            self.told.restore(saved["told"])

    def train(self, t: int, devices: Ids, learner: Learner, theta: Theta) -> Training:
        """Local training of these devices on what they hold. One without data has the update 0 and no loss (NaN).

        What they keep of it is settled by `keep`, once it is known whose update arrived.
        """
        local, holds = self.scenario.learning.local, self.stream.stored[devices] > 0
        if not holds.any():
            return _untrained(len(devices), len(theta), local.shape or (1, 1))
        cohort = self.cohort(t, devices[holds])
        sizes = {"n": len(cohort.ids), "d": len(theta)}
        trained, after = ask(local, "train", learner, theta, cohort, self._local_state, at=t, **sizes)
        if local.remembers:
            self._trained = cohort, after, holds
        if holds.all():  # the usual case: no copy, since a round needs memory for updates more than for anything else
            return Training(*(np.ascontiguousarray(part, np.float32) for part in (trained.updates, trained.losses)))
        training = _untrained(len(devices), len(theta), trained.losses.shape[1:])
        training.updates[holds], training.losses[holds] = trained.updates, trained.losses
        return training

    def keep(self, sent: Flags) -> None:
        """Let the devices that trained keep what local training has them keep. sent: of those, whose update arrived."""
        if self._trained is not None:
            (cohort, after, holds), self._trained = self._trained, None
            local = self.scenario.learning.local
            self._local_state = ask(local, "update", self._local_state, after, cohort, sent[holds], at=cohort.round)

    def reports(
        self, t: int, names: Iterable[str], answered: Flags, learner: Learner | None, theta: Theta
    ) -> dict[str, Reals]:
        """(K, …) by name, of the devices that answer, all of which hold data; NaN for the others.

        They also report the vectors of what they hold, unless the server has label counts at no cost.
        """
        ids = np.flatnonzero(answered)
        if self.told is not None:
            self.told.forget(self.stream.stored == 0)
            if self.told.due(t):
                predict = None if learner is None else partial(learner.log_probabilities, theta)
                self.told.tell(ids, self.stream, predict, generator(self.seed, Purpose.FEATURE_NOISE, t))
        asked = Asked(
            learner=learner,
            theta=theta,
            local=self.scenario.learning.local,
            cohort=self.cohort(t, ids),
            kept=self._local_state,
            most=self.scenario.reports.samples,
            gain=self.gain[ids],
        )
        return {name: read_only(reported(name, asked)) for name in names}

    def cohort(self, t: int, devices: Ids) -> Cohort:
        """These devices, as local training and probes know them."""
        rounds, stream = self.scenario.system.rounds, self.stream
        return Cohort(self.seed, t, rounds, self.devices, devices, stream.samples, stream.draw)


def _untrained(devices: int, parameters: int, shape: tuple[int, ...]) -> Training:
    """Updates of 0, and no losses."""
    return Training(np.zeros((devices, parameters), np.float32), np.full((devices, *shape), np.nan, np.float32))
