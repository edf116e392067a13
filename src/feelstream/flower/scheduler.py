"""The server's side of the scheduler, without any network: what devices reported, decisions, queues, records.

One round is

    scheduler.begin()                            the next round
    scheduler.accept(device, report)             for each report that was received
    schedule = scheduler.schedule(connected)     whom to train, of those that can be reached
    record   = scheduler.settle(replies)         who transmitted, what it cost, what is used now

It does what the simulator does with the world it knows, but the world here is what devices report: a device that is
silent keeps its queue and its last report, and a device that contradicts itself is left out of the round.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import isclose

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Nested, Reals
from feelstream.data.features import Vectors
from feelstream.errors import ScenarioError
from feelstream.flower.directory import Notices
from feelstream.flower.estimates import Estimates, Replies, Turns
from feelstream.flower.kept import Kept
from feelstream.flower.settings import Measuring
from feelstream.flower.wire import Bounds, DeviceReport, ReportError
from feelstream.guard import broken
from feelstream.loop.round import RoundRecord, ServerState, decide, eligible, settle, transmit
from feelstream.model.transmission import Transmission
from feelstream.policies.base import ORACLE_GAIN, STORED_FEATURES, Decision, Observation
from feelstream.randomness import Purpose, generator
from feelstream.run import dataset_of
from feelstream.scenario import Scenario
from feelstream.scenario.devices import class_sizes

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages


class Scheduler(Kept):
    """Queues, reports and decisions of one deployment; devices are numbered 0..K−1 in a fixed order."""

    kept = (
        "round", "used_round", "used_labels", "report_round", "stored_labels", "fresh_labels", "f_hz", "beta",
        "stated_priority", "static", "estimates",
    )  # fmt: skip

    def __init__(
        self,
        scenario: Scenario,
        classes: int,
        seed: int = 0,
        max_report_age: int = 5,
        passes: bool = True,
        measuring: Measuring | None = None,
        notices: Notices | None = None,
    ) -> None:
        """As in settings.py; measuring: which measurements count, and whether rounds are planned by them."""
        self.notices = notices or Notices()
        _refuse_what_no_server_knows(scenario)
        self.scenario, self.seed, self.max_report_age = scenario, seed, max_report_age
        self.system, self.policy = scenario.deployed.known_system(classes), scenario.policy
        self.fitted: Nested = {}  # what devices need to compute the features that the server wants
        if scenario.data.features.reported:
            told = Vectors(scenario.data.features, dataset_of(scenario), generator(seed, Purpose.FEATURES))
            classes, self.fitted = told.size, told.state
            self.system = replace(self.system, features=classes, reference=told.reference)
        self.bounds = Bounds.of(scenario, classes)
        # The server must know by itself what is fresh.
        self.passes = passes and self.bounds.since_use and self.bounds.never_deletes
        sizes = class_sizes([each.share for each in scenario.devices.classes], self.system.devices)
        kinds = np.repeat(np.arange(len(sizes)), sizes) if sizes else np.zeros(self.system.devices, np.int64)
        self.estimates = Estimates(self.system, measuring or Measuring(), kinds, self.notices)
        self.round, devices = 0, self.system.devices
        learn_reliability = scenario.system.reliability == "learned"
        self.server = ServerState.first(self.policy, self.system, seed, learn_reliability)
        self.used_round = np.zeros(devices, np.int64)  # t̂_k, 0: never used
        self.used_labels = np.zeros((devices, classes), np.int32)
        self.report_round = np.zeros(devices, np.int64)  # 0: has never reported
        self.stored_labels = np.zeros((devices, classes), np.int32)
        self.fresh_labels = np.zeros((devices, classes), np.int32)
        self.static = True  # whether no device has ever received more than it had when it first reported
        # Until a device has reported it is never scheduled; these only have to be possible values.
        self.f_hz = np.full(devices, self.bounds.frequency_hz[0])
        self.beta = np.full(devices, np.sqrt(self.bounds.gain[0] * self.bounds.gain[1]))
        self.stated_priority = np.ones(devices)  # comes on top of the scenario's
        self.excluded = np.zeros(devices, bool)  # who is not scheduled in this round, whatever it reported
        self.chosen_hz: dict[int, float] = {}  # at which frequencies the policy wants the scheduled to train, if at any
        self._open: tuple[Observation, Decision, NDArray[np.int32]] | None = None

    def begin(self) -> int:
        """Start the next round and return its number."""
        self.round += 1
        self.excluded[:] = False
        self._open = None
        return self.round

    @property
    def report_age(self) -> NDArray[np.int32]:
        """(K,) rounds since each device's last accepted report; −1: never."""
        return np.where(self.report_round > 0, self.round - self.report_round, -1).astype(np.int32)

    @property
    def unknown(self) -> Flags:
        """(K,) who has to be asked before scheduling: no report yet, or one that is too old.

        While nobody is known to hold any data, every report of an earlier round is.
        """
        age = self.report_age
        return (age < 0) | (age > (self.max_report_age if self.stored_labels.any() else 0))

    @property
    def stored(self) -> Ids:
        """(K,) samples that each device holds, as far as it is known."""
        return self.stored_labels.sum(axis=1, dtype=np.int64)

    def usual_samples(self, device: int) -> float:
        """What a device would store by now at the lower median of the known devices' samples per round."""
        since = self.used_round if self.bounds.empties_on_use else np.zeros_like(self.used_round)
        rounds = np.maximum(self.round - since, 1)
        rate = np.sort((np.maximum(self.stored, 1) / rounds)[self.report_round > 0])
        return float(rate[(len(rate) - 1) // 2] * rounds[device])

    def check(self, device: int, report: DeviceReport) -> DeviceReport:
        """The report with its fresh counts; ReportError if it contradicts what is known of the device."""
        bounds, stored, told = self.bounds, report.stored_labels, report.fresh_labels
        before, beta = self.stored_labels[device], float(self.beta[device])
        age = int(self.round - self.report_round[device]) if self.report_round[device] else -1  # rounds; −1: never
        if age >= 0 and bounds.fixed_gain and not isclose(report.beta, beta, rel_tol=1e-9):
            raise ReportError(f"its mean gain changed from {beta:.6g} to {report.beta:.6g}, and is fixed for a run")
        if bounds.never_deletes and (stored < before).any():
            raise ReportError("its counts shrank, but nothing is ever deleted from the buffers of this scenario")
        if age == 0:
            fresh = self.fresh_labels[device].copy()
            if (stored != before).any() or (told is not None and (told != fresh).any()):
                raise ReportError("its counts changed within the round")
            return replace(report, fresh_labels=fresh)
        if bounds.never_deletes and bounds.since_use:
            fresh, less = stored - self.used_labels[device], "those already used"
        elif bounds.never_deletes and (told is None or age == 1):
            fresh, less = stored - before, "those it stored the round before"
        elif bounds.empties_on_use and bounds.since_use:
            fresh, less = stored, "none, since what was used is deleted"
        else:
            return report
        if told is not None and (told != fresh).any():
            raise ReportError(f"its fresh samples are not those it stores less {less}")
        return replace(report, fresh_labels=fresh)

    def accept(self, device: int, report: DeviceReport, asked: int | None = None) -> None:
        """Store a report that has passed Bounds.read, unless it contradicts what is known (ReportError).

        asked: the round that it is of, if it comes late.
        """
        self._store(device, self.check(device, report), asked)

    def _store(self, device: int, report: DeviceReport, asked: int | None = None) -> None:
        assert report.fresh_labels is not None
        if self.report_round[device] and (report.stored_labels != self.stored_labels[device]).any():
            self.static = False
        self.report_round[device] = self.round if asked is None else asked
        self.stored_labels[device], self.fresh_labels[device] = report.stored_labels, report.fresh_labels
        self.f_hz[device], self.beta[device] = report.f_hz, report.beta
        self.stated_priority[device] = 1.0 if report.priority is None else report.priority

    def exclude(self, device: int, reason: str) -> None:
        """Keep a device out of this round's schedule, and say why."""
        self.excluded[device] = True
        self.notices.add(self.round, "left out", device, reason)

    def schedule(self, connected: NDArray[np.bool_]) -> Ids:
        """Whom to train this round; connected: (K,) who can be reached."""
        able = eligible(self.system, self.stored) & connected & ~self.unknown & ~self.excluded
        system = self.system
        if self.passes and self.static and self.used_labels.any():
            in_time = able & (system.cycles / self.f_hz < system.round_s)  # the others never get a turn
            ready = self.server.ready(in_time, self.round)
            if ready.any() and not self.fresh_labels[ready].any():
                log.debug(
                    "round %d: all data was used and no device has received more: a new pass over it begins", self.round
                )
                self.used_labels[:] = 0
                self.fresh_labels = self.stored_labels.copy()
        if not (self.stated_priority == 1.0).all():
            system = replace(system, priority=system.priority * self.stated_priority)
        ready, n = self.server.ready(able, self.round), self.policy.smallest_plan
        observation = Observation(
            system=self.estimates.planned(self.round, system, self.f_hz, ready, n),
            round=self.round,
            f_hz=self.f_hz.copy(),
            beta=self.beta.copy(),
            stored=self.stored,
            fresh=self.fresh_labels.sum(axis=1, dtype=np.int64),
            fresh_features=self.fresh_labels.copy(),
            used_features=self.used_labels.sum(axis=0, dtype=np.int64),
            queue_j=self.server.queue_j,
            available=able,
            stored_features=self.stored_labels.copy() if STORED_FEATURES in self.policy.needs else None,
        )
        observation = self.server.aware(observation)
        decision = decide(self.policy, self.server.policy_state, observation, self.seed)
        chosen = () if decision.f_hz is None else zip(decision.schedule.tolist(), decision.f_hz.tolist(), strict=True)
        self.chosen_hz = dict(chosen)
        self._open = observation, decision, self.report_age
        return decision.schedule

    def settle(self, replies: Replies, cut: Collection[int] | None = None) -> RoundRecord:
        """Close the round. replies: reports that came with scheduled devices' updates, in time.

        A scheduled device that did not reply is one whose channel was dead: it has computed, and sends nothing.
        cut: those that were not waited for, as enough others had replied; None where everyone always is.
        """
        assert self._open is not None, "schedule comes before settle"
        observation, decision, report_age = self._open
        schedule = decision.schedule
        # One that was checked before, as it came, has its fresh counts.
        replies = {k: self.check(k, each) if each.fresh_labels is None else each for k, each in replies.items()}
        turns, gain = self._turns(observation, decision, replies)
        learned = self.estimates.take(turns, anyone=bool(replies))
        sent = turns.transmission.sent
        if (sent & (gain[schedule] == 0)).any():
            raise broken(self.policy, "let a device transmit that did not reply")
        cuts = None if cut is None else np.isin(schedule, list(cut))
        self.server, record = settle(
            self.policy, self.server, observation, decision, turns.transmission,
            gain=gain, used_by_device=self.used_labels.copy(), losses=self._losses(schedule, replies), cut=cuts,
        )  # fmt: skip
        for device, report in replies.items():
            self._store(device, report)
        self._use(schedule[sent])
        self._open = None
        stated = {"report_age": report_age, "priority": np.array(observation.priority)}
        return replace(record, more={**record.more, **stated, **learned, **({} if cuts is None else {"cut": cuts})})

    def _turns(self, observation: Observation, decision: Decision, replies: Replies) -> tuple[Turns, Reals]:
        """What the round came to, and the gains (K,): 0 for a device that did not reply, or took too long."""
        schedule, gain = decision.schedule, observation.beta.copy()
        for device in map(int, schedule):  # β where a device has no radio to measure
            found = replies.get(device)
            gain[device] = 0.0 if found is None else found.beta if found.gain is None else found.gain
        while True:
            modelled = self._modelled(observation, decision, gain[schedule], replies)
            turns = self.estimates.charge(observation, decision, modelled, replies)
            made = turns.transmission
            late = made.sent & (made.t_cmp_s + made.t_tr_s > self.system.round_s * (1 + 1e-9))
            if not late.any():
                return turns, gain
            for device in schedule[late].tolist():
                self.notices.add(self.round, "update too late", device, "it took longer than system.round_s")
            gain[schedule[late]] = 0.0

    def _modelled(self, observation: Observation, decision: Decision, gain: Reals, replies: Replies) -> Transmission:
        """What the policy makes of the round. One that shares out what is left of it receives how long computing took.

        Without a reply that is c/f; with gain 0 it no longer matters. The modelled energy is that of the frequency
        which the time amounts to, within what the device can do.
        """
        if not self.policy.fills_round or "t_cmp_s" not in self.estimates.measured:
            return transmit(self.policy, observation, decision, gain)
        schedule, system = decision.schedule, observation.system
        planned_hz = observation.f_hz[schedule] if decision.f_hz is None else decision.f_hz
        f_hz, charged_hz, cycles = planned_hz.copy(), planned_hz.copy(), system.cycles[schedule]
        for row, device in enumerate(map(int, schedule)):
            took_s = replies[device].t_cmp_s if device in replies else None
            if took_s is None:
                continue
            amounts_to_hz = cycles[row] / max(took_s, 1e-12 * system.round_s)
            charged_hz[row] = np.clip(amounts_to_hz, self.bounds.frequency_hz[0], observation.f_hz[device])
            if gain[row] > 0 and took_s < system.round_s:  # the others are late, whatever the policy says
                f_hz[row] = amounts_to_hz
        every_hz = observation.f_hz.copy()
        every_hz[schedule] = f_hz
        known = replace(observation, f_hz=every_hz), replace(decision, f_hz=None if decision.f_hz is None else f_hz)
        return replace(
            transmit(self.policy, *known, gain),
            e_cmp_j=system.compute_energy_j(charged_hz, schedule),
        )

    def _use(self, devices: Ids) -> None:
        """These devices' data is used up to this round: what they hold now is their part of X."""
        self.used_labels[devices] = self.stored_labels[devices]
        self.used_round[devices] = self.round
        if self.bounds.empties_on_use:
            self.stored_labels[devices] = 0
        if self.bounds.empties_on_use or self.bounds.since_use:
            self.fresh_labels[devices] = 0

    def _losses(self, schedule: Ids, replies: Mapping[int, DeviceReport]) -> NDArray[np.float32] | None:
        """(scheduled, steps, batch), or (scheduled, 1, any) where clients draw in their own way; NaN: not reported."""
        if self.scenario.learning.engine == "none":
            return None
        known = {row: r.losses for row, k in enumerate(schedule) if (r := replies.get(int(k))) and r.losses is not None}
        steps, batch = self.scenario.learning.local.shape or (1, 1)
        length = max((len(losses) for losses in known.values()), default=steps * batch)
        table = np.full((len(schedule), length), np.nan, np.float32)
        for row, losses in known.items():
            table[row] = 0.0
            table[row, : len(losses)] = losses
        return table.reshape(len(schedule), steps, batch) if length == steps * batch else table[:, None, :]

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on after the last settled round."""
        return super().snapshot() | {"server": self.server.snapshot()}

    def restore(self, state: Nested) -> None:
        super().restore(state)
        self.server = ServerState.restored(state["server"])


def _refuse_what_no_server_knows(scenario: Scenario) -> None:
    """ScenarioError where policy or costs ask for what a deployment cannot tell before it schedules."""
    policy, of = scenario.policy, scenario.known_system(classes=1)
    if ORACLE_GAIN in policy.needs:
        raise ScenarioError(f"policy.gain: '{policy.plugin_name()}' asks for gains that no server can know")
    if not scenario.costs.rule.of_settings:
        raise ScenarioError("costs.rule.kind: must be settings in a deployment, where devices measure what they spend")
    if of.downloads or of.limits_power or of.away_s.any() or of.cycles_per_sample or of.block_bits:
        raise ScenarioError(
            "costs: deadlines, power limits, downloads, cycles per sample and packet errors are for simulations; "
            "in a deployment leave devices.deadline_s, radio.power_max_w, radio.block_bits and the costs unset"
        )
    features = scenario.data.features
    if features.of_model:
        raise ScenarioError(
            f"data.features.kind: '{features.plugin_name()}' depends on the model, so it is for simulations; in a "
            "deployment devices count samples, by labels, a sketch or a class of yours"
        )
    if features.noise or features.every > 1:
        raise ScenarioError(
            "data.features: noise and every are for simulations; in a deployment a client adds noise by "
            "Device(epsilon=…), and reports ride on replies"
        )
    if policy.probes:
        raise ScenarioError(
            f"policy.name: '{policy.plugin_name()}' asks devices for {', '.join(sorted(policy.probes))} "
            "before it schedules, which a deployment cannot; it runs in simulations only"
        )
