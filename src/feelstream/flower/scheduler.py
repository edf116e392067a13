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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Nested
from feelstream.columns import MEASURED
from feelstream.errors import ScenarioError
from feelstream.flower.measurements import Measurements, Plans
from feelstream.flower.report import Bounds, DeviceReport
from feelstream.guard import broken
from feelstream.loop.round import RoundRecord, ServerState, available, decide, settle, transmit
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.policies.base import ORACLE_GAIN, STORED_FEATURES, Decision, Observation
from feelstream.scenario import Scenario

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages


class Scheduler:
    """Queues, reports and decisions of one deployment; devices are numbered 0..K−1 in a fixed order."""

    def __init__(
        self,
        scenario: Scenario,
        classes: int,
        seed: int = 0,
        max_report_age: int = 5,
        measured: Iterable[str] = MEASURED,
        passes: bool = True,
        plans: Plans = "measured",
    ) -> None:
        """max_report_age: rounds for which a report is good enough to schedule by; 0: only this round's.

        passes: where no device has ever received more data, all of it counts as fresh again once it was all used.
        measured: which of a device's own measurements count; the rest is taken from the scenario's model.
        plans: whether rounds are planned by what devices have measured so far, or by the scenario's model alone.
        """
        self.scenario, self.seed, self.max_report_age = scenario, seed, max_report_age
        self.measured = tuple(measured)
        # The server must know by itself what is fresh.
        self.passes = passes and scenario.data.fresh == "since_use" and Bounds.of(scenario, classes).never_deletes
        self.system = scenario.known_system(classes)
        self.bounds = Bounds.of(scenario, classes)
        self.policy = scenario.policy
        if ORACLE_GAIN in self.policy.needs:
            raise ScenarioError(f"policy.gain: '{self.policy.plugin_name()}' asks for gains that no server can know")
        of = self.system
        if not scenario.costs.rule.of_settings:
            raise ScenarioError(
                "costs.rule.kind: must be settings in a deployment, where devices measure what they spend"
            )
        if of.downloads or of.limits_power or of.away_s.any() or of.cycles_per_sample or of.block_bits:
            raise ScenarioError(
                "costs: deadlines, power limits, downloads, cycles per sample and packet errors are for simulations; "
                "in a deployment leave devices.deadline_s, radio.power_max_w, radio.block_bits and the costs unset"
            )
        if scenario.data.features.reported:
            raise ScenarioError(
                "data.features.kind: must be labels, without noise, in a deployment; other features are for simulations"
            )
        if self.policy.probes:
            raise ScenarioError(
                f"policy.name: '{self.policy.plugin_name()}' asks devices for {', '.join(sorted(self.policy.probes))} "
                "before it schedules, which a deployment cannot; it runs in simulations only"
            )
        self.round = 0
        devices = self.system.devices
        learn_reliability = scenario.system.reliability == "learned"
        self.server = ServerState.first(self.policy, self.system, seed, learn_reliability)
        self.used_round = np.zeros(devices, np.int64)  # t̂_k, 0: never used
        self.used_labels = np.zeros((devices, classes), np.int32)
        self.report_round = np.zeros(devices, np.int64)  # 0: has never reported
        self.stored_labels = np.zeros((devices, classes), np.int32)
        self.fresh_labels = np.zeros((devices, classes), np.int32)
        self.first_labels = np.zeros((devices, classes), np.int32)  # what each stored when it first reported
        # Until a device has reported it is never scheduled; these only have to be possible values.
        self.f_hz = np.full(devices, self.bounds.frequency_hz[0])
        self.beta = np.full(devices, np.sqrt(self.bounds.gain[0] * self.bounds.gain[1]))
        self.stated_priority = np.ones(devices)  # comes on top of the scenario's
        self.measurements = Measurements(self.system, self.measured, plans)
        self._excluded = np.zeros(devices, bool)
        self._open: tuple[Observation, Decision, NDArray[np.int32]] | None = None

    def begin(self) -> int:
        """Start the next round and return its number."""
        self.round += 1
        self._excluded[:] = False
        self._open = None
        return self.round

    @property
    def report_age(self) -> NDArray[np.int32]:
        """(K,) rounds since each device's last accepted report; −1: never."""
        return np.where(self.report_round > 0, self.round - self.report_round, -1).astype(np.int32)

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """(K,) who has to be asked before scheduling: no report yet, or one that is too old."""
        age = self.report_age
        return (age < 0) | (age > self.max_report_age)

    def usual_samples(self, device: int) -> float:
        """What a device would store by now at the lower median of the known devices' samples per round."""
        since = self.used_round if self.scenario.data.buffer.empties_on_use else np.zeros_like(self.used_round)
        rounds = np.maximum(self.round - since, 1)
        stored = self.stored_labels.sum(axis=1, dtype=np.int64)
        rate = np.sort((np.maximum(stored, 1) / rounds)[self.report_round > 0])
        return float(rate[(len(rate) - 1) // 2] * rounds[device])

    def check(self, device: int, report: DeviceReport) -> DeviceReport:
        """The report with its fresh counts; ReportError if it contradicts what is known of the device."""
        age = int(self.round - self.report_round[device]) if self.report_round[device] else -1
        known = self._last_report(device) if age >= 0 else None
        return self.bounds.completed(report, known, age, self.used_labels[device])

    def accept(self, device: int, report: DeviceReport) -> None:
        """Store a report that has passed Bounds.read, unless it contradicts what is known (ReportError)."""
        report = self.check(device, report)
        assert report.fresh_labels is not None
        if not self.report_round[device]:
            self.first_labels[device] = report.stored_labels
        self.report_round[device] = self.round
        self.stored_labels[device], self.fresh_labels[device] = report.stored_labels, report.fresh_labels
        self.f_hz[device], self.beta[device] = report.f_hz, report.beta
        self.stated_priority[device] = 1.0 if report.priority is None else report.priority

    def keep_out(self, devices: Iterable[int]) -> None:
        """Schedule none of these in this round: they still work for an earlier one."""
        self._excluded[list(devices)] = True

    def exclude(self, device: int, reason: str) -> None:
        """Keep a device out of this round's schedule, and say why."""
        self._excluded[device] = True
        log.warning("round %d: device %d is left out: %s", self.round, device, reason)

    def schedule(self, connected: NDArray[np.bool_]) -> Ids:
        """Whom to train this round; connected: (K,) who can be reached."""
        if self.passes and self._all_is_used(connected):
            log.info(
                "round %d: all data was used and no device has received more: a new pass over it begins", self.round
            )
            self.used_labels[:] = 0
            self.fresh_labels = self.stored_labels.copy()
        stored = self.stored_labels.sum(axis=1, dtype=np.int64)
        able = self._able(connected)
        observation = Observation(
            system=self._system_now(able),
            round=self.round,
            f_hz=self.f_hz.copy(),
            beta=self.beta.copy(),
            stored=stored,
            fresh=self.fresh_labels.sum(axis=1, dtype=np.int64),
            fresh_features=self.fresh_labels.copy(),
            used_features=self.used_labels.sum(axis=0, dtype=np.int64),
            queue_j=self.server.queue_j,
            available=able,
            stored_features=self.stored_labels.copy() if STORED_FEATURES in self.policy.needs else None,
        )
        observation = self.server.aware(observation)
        decision = decide(self.policy, self.server.policy, observation, self.seed)
        self._open = observation, decision, self.report_age
        return decision.schedule

    def _all_is_used(self, connected: NDArray[np.bool_]) -> bool:
        """Whether data is static, and none that could be scheduled now is fresh, which would leave no importance."""
        if not self.used_labels.any() or (self.stored_labels != self.first_labels).any():
            return False
        able = self._able(connected)
        able &= self.system.cycles / self.f_hz < self.system.round_s  # the others never get a turn
        ready = self._ready(able)
        return bool(ready.any()) and not self.fresh_labels[ready].any()

    def _able(self, connected: Flags) -> Flags:
        stored = self.stored_labels.sum(axis=1, dtype=np.int64)
        return available(self.system, stored) & connected & ~self.unknown & ~self._excluded

    def _ready(self, able: Flags) -> Flags:
        return able if self.server.reliability is None else self.server.reliability.ready(able, self.round)

    def _system_now(self, able: Flags) -> System:
        """What the round is planned with: priorities as stated, computing as measured."""
        system = self.system
        if not (self.stated_priority == 1.0).all():
            system = replace(system, priority=self.system.priority * self.stated_priority)
        return self.measurements.planned(self.round, system, self.f_hz, self._ready(able), self.policy.smallest_plan)

    @property
    def open(self) -> bool:
        """Whether a round was scheduled and not settled yet."""
        return self._open is not None

    def chosen_f_hz(self, device: int) -> float | None:
        """The frequency at which the policy wants a scheduled device to train; None: its own."""
        if self._open is None or self._open[1].f_hz is None:
            return None
        decision = self._open[1]
        return float(decision.f_hz[np.flatnonzero(decision.schedule == device)[0]])  # pyright: ignore[reportOptionalSubscript]

    def settle(self, replies: Mapping[int, DeviceReport], cut: Collection[int] | None = None) -> RoundRecord:
        """Close the round. replies: reports that came with scheduled devices' updates, in time, and passed `check`.

        A scheduled device that did not reply is one whose channel was dead: it has computed, and sends nothing.
        cut: those that were not waited for, as enough others had replied; None where everyone always is.
        """
        assert self._open is not None, "schedule comes before settle"
        observation, decision, report_age = self._open
        schedule = decision.schedule
        gain = observation.beta.copy()
        for device in schedule:
            gain[device] = _gain(replies.get(int(device)))
        while True:
            modelled = self._modelled(observation, decision, gain[schedule], replies)
            transmission, flags = self.measurements.in_place_of(modelled, observation, decision, replies)
            late = transmission.sent & (transmission.t_cmp_s + transmission.t_tr_s > self.system.round_s * (1 + 1e-9))
            if not late.any():
                break
            log.warning(
                "round %d: these devices took longer than system.round_s: %s",
                self.round,
                schedule[late].tolist(),
            )
            gain[schedule[late]] = 0.0
        learned = self.measurements.take(observation, decision, modelled, flags, replies)
        if (transmission.sent & (gain[schedule] == 0)).any():
            raise broken(self.policy, "let a device transmit that did not reply")
        self.server, record = settle(
            self.policy,
            self.server,
            observation,
            decision,
            transmission,
            gain=gain,
            used_features=self.used_labels.copy(),
            losses=self._losses(schedule, replies),
            cut=None if cut is None else np.isin(schedule, list(cut)),
        )
        for device, report in replies.items():
            self.accept(device, report)
        self._use(schedule[transmission.sent])
        self._open = None
        stated = {"report_age": report_age, "priority": np.array(observation.priority)}
        if cut is not None:
            flags |= {"cut": np.isin(schedule, list(cut))}
        return replace(record, more={**record.more, **stated, **flags, **learned})

    def _modelled(
        self,
        observation: Observation,
        decision: Decision,
        gain: NDArray[np.float64],
        replies: Mapping[int, DeviceReport],
    ) -> Transmission:
        """What the policy makes of the round. One that shares out what is left of it receives how long computing took.

        Without a reply that is c/f; with gain 0 it no longer matters. The modelled energy is that of the frequency
        which the time amounts to, within what the device can do.
        """
        if not self.policy.fills_round or "t_cmp_s" not in self.measured:
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
        emptied = self.scenario.data.buffer.empties_on_use
        if emptied:
            self.stored_labels[devices] = 0
        if emptied or self.bounds.since_use:
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

    def _last_report(self, device: int) -> DeviceReport:
        return DeviceReport(
            self.stored_labels[device], self.fresh_labels[device], float(self.f_hz[device]), float(self.beta[device])
        )

    _SAVED = (
        "round", "used_round", "used_labels", "report_round", "stored_labels", "fresh_labels", "f_hz", "beta",
        "stated_priority", "first_labels",
    )  # fmt: skip

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on after the last settled round."""
        own = {name: np.array(getattr(self, name)) for name in self._SAVED}
        return own | {"server": self.server.snapshot(), "measurements": self.measurements.snapshot()}

    def restore(self, state: Nested) -> None:
        for name in self._SAVED:
            setattr(self, name, state[name].copy())
        self.round = int(state["round"])
        self.server = ServerState.restored(state["server"])
        self.measurements.restore(state["measurements"])


def _gain(reply: DeviceReport | None) -> float:
    """|g_k|² as found after training, β_k where a device has no radio to measure, 0 where no reply came in time."""
    if reply is None:
        return 0.0
    return reply.beta if reply.gain is None else reply.gain
