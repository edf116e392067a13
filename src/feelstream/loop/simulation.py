"""The round loop: Algorithm 1 of the paper, with its gaps closed as docs/model.md says.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids, Nested, Reals, read_only
from feelstream.data.datasets import Dataset
from feelstream.data.features import Vectors
from feelstream.errors import EngineError
from feelstream.evaluation import EvaluationContext, Evaluators, Held, Measured, Predict, TestSet
from feelstream.guard import ask, broken, freeze
from feelstream.learning.contract import Learner
from feelstream.learning.server import UpdateContext
from feelstream.loop.changes import Change, scenario_in
from feelstream.loop.round import RoundRecord, ServerState, decide, eligible, settle, transmit
from feelstream.loop.world import Theta, World
from feelstream.model.reporting import Reporting, reporting
from feelstream.model.system import CostContext, System, system_of_round
from feelstream.model.transmission import sent_in_blocks
from feelstream.policies.base import ORACLE_GAIN, STORED_FEATURES, Observation
from feelstream.randomness import Purpose, generator
from feelstream.resolved import Slot
from feelstream.scenario import Scenario


class Simulation:
    """A run in progress. `step` runs one round; `snapshot` and `restore` stop it and let it go on."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        dataset: Dataset,
        learner: Learner | None,
        changes: Sequence[Change] = (),
    ) -> None:
        """changes: of settings in mid-run, possible ones in the order of their rounds."""
        self.scenario, self.seed, self.learner = scenario, seed, learner
        self.changes = tuple(changes)
        self._present = scenario  # with the changes so far
        self.policy, self.classes = scenario.policy, dataset.classes
        features, data = scenario.data.features, (dataset.train_labels, dataset.classes, dataset.recording)
        vectors = Vectors(features, dataset, generator(seed, Purpose.FEATURES)) if features.reported else None
        self.world = World(scenario, seed, *data, vectors)
        self.system = self._known_system(scenario)
        self.server = ServerState.first(self.policy, self.system, seed, scenario.learns_reliability)
        self.theta: Theta = learner.init(seed) if learner else np.zeros(0, np.float32)
        self.test = TestSet(dataset.test_labels, lambda: dataset.test_images, dataset.test_rounds)
        self.evaluators = Evaluators(scenario.learning.evaluators, self.system.devices, self.system.classes)
        self.update_state = ask(scenario.learning.server, "init", len(self.theta), at=0)
        self.round = 0
        self.senders: Ids = np.zeros(0, np.int64)  # Π̄ of the last round: their data counts as used from now on
        self.timings = {"arrivals": 0.0, "schedule": 0.0, "train": 0.0, "transmit": 0.0, "evaluate": 0.0}

    @property
    def changes(self) -> tuple[Change, ...]:
        return self._changes

    @changes.setter
    def changes(self, changes: tuple[Change, ...]) -> None:
        """Make all scenarios at once: the table of devices, say, is not to be read again while the run is under way."""
        self._changes = changes
        rounds = sorted({change.round for change in changes}, reverse=True)
        self._phases = [(first, scenario_in(self.scenario, changes, first)) for first in rounds]

    @property
    def model(self) -> Theta:
        """What is tested and kept; `theta` is what devices train from. Mostly they are the same."""
        if self.learner is None:
            return self.theta
        server = self.scenario.learning.server
        return ask(server, "handed_out", self.theta, self.update_state, at=self.round, d=len(self.theta))

    def step(self) -> RoundRecord:
        """The next round: arrivals, schedule, local training, admission, queues, aggregation."""
        t, world, stream, clock = self.round + 1, self.world, self.world.stream, [perf_counter()]
        if self._phases:
            self._take_up_changes(t)
        world.use(self.senders)
        world.advance(t)
        clock.append(perf_counter())

        observation, reports = self._observe(t)
        decision = decide(self.policy, self.server.policy_state, observation, self.seed)
        schedule = decision.schedule
        clock.append(perf_counter())

        training = world.train(t, schedule, self.learner, self.theta) if self.learner and len(schedule) else None
        clock.append(perf_counter())

        gain = world.gain  # known only now
        transmission = transmit(self.policy, observation, decision, gain[schedule])
        if self.system.block_bits:
            lot = generator(self.seed, Purpose.PACKET_ERRORS, t).random(self.system.devices)
            transmission = sent_in_blocks(observation.system, schedule, gain[schedule], transmission, lot[schedule])
        self.server, record = settle(
            self.policy,
            self.server,
            observation,
            decision,
            transmission,
            gain=gain,
            used_by_device=stream.used_labels if world.told is None else world.told.used,
            losses=training.losses if training else None,
            update_norm=training.norms if training else None,
            reporting=reports,
        )
        self.senders = schedule[record.transmission.arrived]
        if training:
            world.keep(record.transmission.arrived)
            self._aggregate(t, record, training.updates)
        clock.append(perf_counter())

        self.round = t
        more = dict(record.more)
        if world.battery_j is not None:
            more |= self._spend(record.energy_j)
        if world.told is not None:  # what was told stands beside what is true
            more |= {name: getattr(stream, name).copy() for name in ("fresh_labels", "used_labels", "stored_labels")}
            more["stored_features"] = world.told.stored
        model = read_only(self.model) if self.learner else None
        record = replace(record, measured=self._evaluate(t, model), theta=model, more=more)
        clock.append(perf_counter())
        for phase, since, until in zip(self.timings, clock, clock[1:], strict=False):
            self.timings[phase] += until - since
        return record

    def _known_system(self, scenario: Scenario) -> System:
        """What the server knows, with the mix that the balance of features is measured against."""
        told, system = self.world.told, scenario.known_system(self.classes)
        return system if told is None else replace(system, reference=told.vectors.reference)

    def _take_up_changes(self, t: int) -> None:
        """From this round on, take policy and budgets from the scenario as it stands; world and learning stay.

        In the first round the policy starts anew, as if the change had always held.
        """
        present = next((scenario for first, scenario in self._phases if first <= t), self.scenario)
        if present is not self._present:
            self._present, self.policy = present, present.policy
            self.system = self._known_system(present)
            if t == 1:
                self.server = ServerState.first(self.policy, self.system, self.seed, present.learns_reliability)

    def _observe(self, t: int) -> tuple[Observation, Reporting | None]:
        """What the server knows of this round; with the reports of the devices that answered, if the policy asks."""
        world, stream, system = self.world, self.world.stream, self.system
        rule, power_w = self.scenario.costs.rule, None
        if system.cycles_per_sample or not rule.of_settings:
            arrays = (world.f_hz, world.beta, stream.stored, stream.fresh, stream.fresh_labels)
            system = system_of_round(rule, CostContext(system, t, *arrays), generator(self.seed, Purpose.COSTS, t))
        if world.battery_j is not None:
            power_w = ask(self.policy, "most_power_w", system, world.beta, at=t, K=world.devices)
        observation = Observation(
            system=system,
            round=t,
            f_hz=world.f_hz,
            beta=world.beta,
            stored=stream.stored.copy(),
            fresh=stream.fresh.copy(),
            **self._features(),
            queue_j=self.server.queue_j,
            available=world.available(system, power_w) & eligible(system, stream.stored),
            oracle_gain=world.gain if ORACLE_GAIN in self.policy.needs else None,
        )
        observation = self.server.aware(observation)
        if system.reports is None:
            return observation, None
        return self._ask_devices(system.reports, observation)

    def _features(self) -> dict[str, Any]:
        """L(B_k), L(X) and L(S_k) as the server knows them: label counts, or what devices have reported so far."""
        told, stream = self.world.told, self.world.stream
        if told is None:
            fresh, used, stored = stream.fresh_labels, stream.used_total.copy(), stream.stored_labels
        else:
            fresh, used, stored = told.fresh, told.used_total, told.stored
        known = {"fresh_features": fresh, "used_features": used}
        return known | {"stored_features": stored} if STORED_FEATURES in self.policy.needs else known

    def _ask_devices(self, slot: Slot, observation: Observation) -> tuple[Observation, Reporting]:
        """The same with the reports of the devices that answered, and what these cost."""
        t, system, world = observation.round, observation.system, self.world
        known = self.server.policy_state, observation, generator(self.seed, Purpose.REPORTS, t)
        asked = np.zeros(world.devices, bool)
        if self.policy.probes:
            asked = ask(self.policy, "asks", *known, at=t, K=world.devices)
        elif world.told is None or world.told.due(t):
            asked = observation.available
        asked = asked & observation.available & (observation.stored > 0)
        found = reporting(slot, system, observation.f_hz, observation.beta, world.gain, asked)
        reports = world.reports(t, sorted(self.policy.probes), found.answered, self.learner, self.theta)
        return replace(observation, reports=reports, **self._features()), found

    def _spend(self, energy_j: Reals) -> dict[str, NDArray]:
        """Columns of the batteries; PluginError where the policy let a device spend more than it had."""
        before = self.world.battery_j
        if before is not None and (over := energy_j > before * (1 + 1e-9)).any():
            k = int(np.argmax(over))
            raise broken(
                self.policy,
                f"let device {k} spend {energy_j[k]:g} J of a charge of {before[k]:g} J in round {self.round}: no "
                "device may send with more than most_power_w, nor beyond the end of the round",
            )
        return self.world.spend(energy_j)

    def _aggregate(self, t: int, record: RoundRecord, updates: NDArray[np.float32]) -> None:
        """θ(t+1), by the server's update from those of the senders that hold data; unchanged where none does."""
        server, stored = self.scenario.learning.server, self.world.stream.stored
        schedule, probability = record.decision.schedule, record.decision.probability
        counts = record.transmission.arrived & (stored[schedule] > 0)
        ids = schedule[counts]
        if not len(ids):
            return
        if server.needs_probability and probability is None:
            raise broken(self.policy, f"says knows_probability, and gave none (Decision.probability) in round {t}")
        context = UpdateContext(
            round=t,
            rounds=self.system.rounds,
            devices=self.system.devices,
            ids=ids,
            held=stored[ids],
            gain=record.gain[ids],
            probability=None if probability is None else probability[ids],
            reachable=float(stored[ids].sum() if probability is None else stored[probability > 0].sum()),
            staleness=np.zeros(len(ids), np.int64),
            distinct=self.world.stream.distinct(ids),
        )
        updates = updates if counts.all() else updates[counts]
        with np.errstate(over="ignore", invalid="ignore"):  # reported below, in a sentence
            known = self.theta, updates, context, self.update_state, generator(self.seed, Purpose.SERVER_UPDATE, t)
            theta, update_state = ask(server, "step", *known, at=t, d=len(self.theta))
        if not np.isfinite(theta).all():
            local = self.scenario.learning.local
            raise EngineError(server.diverged(t) or local.diverged(t))
        self.theta, self.update_state = theta, update_state

    def _evaluate(self, t: int, theta: Theta | None) -> Measured:
        """What the evaluators say of the model after the round."""
        learner, stream, devices = self.learner, self.world.stream, range(self.system.devices)
        due = t % self.scenario.learning.eval_every == 0 or t == self.system.rounds
        if learner is None or theta is None or not due:
            return self.evaluators.nothing

        test, rows = self.test.of(t)
        context = EvaluationContext(
            predict=Predict(theta, learner, rows),
            test=test,
            held=Held(lambda: [stream.samples(device) for device in devices], stream.overlaps),
            round=t,
            rounds=self.system.rounds,
            classes=self.system.classes,
        )
        return self.evaluators.measure(context)

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on exactly here."""
        return {
            "round": np.array(self.round),
            "senders": self.senders,
            "theta": self.theta,
            "update": self.update_state,
            "server": self.server.snapshot(),
            "world": self.world.snapshot(),
            "evaluators": self.evaluators.snapshot(),
        }

    def restore(self, state: Nested) -> None:
        self.round, self.senders, self.theta = int(state["round"]), state["senders"], state["theta"]
        self.update_state = freeze(state["update"])
        self.server = ServerState.restored(state["server"])
        self.world.restore(state["world"])
        self.evaluators.restore(state["evaluators"])
