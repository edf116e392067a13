"""The round loop: Algorithm 1 of the paper, with its gaps closed as docs/model.md says.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Nested, Reals, read_only
from feelstream.data.datasets.dataset import Recording
from feelstream.errors import EngineError
from feelstream.evaluation import EvaluationContext, Evaluators, Held, Measured, Predict, TestRounds
from feelstream.guard import ask, broken, freeze
from feelstream.learning.contract import Learner
from feelstream.learning.server import UpdateContext
from feelstream.loop.round import RoundRecord, ServerState, decide, respond, settle, transmit
from feelstream.loop.world import Theta, World
from feelstream.model.reporting import Reporting, reporting
from feelstream.model.system import CostContext, System, system_of_round
from feelstream.model.transmission import sent_in_blocks
from feelstream.policies.base import ORACLE_GAIN, STORED_LABELS, Observation
from feelstream.randomness import Purpose, generator
from feelstream.scenario import Scenario


class Simulation:
    """A run in progress. `step` runs one round; `snapshot` and `restore` stop it and let it go on."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        labels: NDArray[np.uint8],
        classes: int,
        learner: Learner | None,
        recording: Recording | None = None,
        test: TestRounds | None = None,
    ) -> None:
        """test: what the model is tested on, by round; users' own evaluators see it, and it may change."""
        self.scenario, self.seed, self.learner = scenario, seed, learner
        self.policy, self.system = scenario.policy, scenario.known_system(classes)
        self._budgets = scenario.system
        self.world = World(scenario, seed, labels, classes, recording)
        self.server = ServerState.first(self.policy, self.system, seed, scenario.learns_reliability)
        self.theta: Theta = learner.init(seed) if learner else np.zeros(0, np.float32)
        self.test = test or TestRounds()
        self.evaluators = Evaluators(scenario.learning.evaluators, self.system.devices, self.system.classes)
        self.remembered = ask(scenario.learning.server, "init", len(self.theta), at=0)  # by the server's update
        self.round = 0
        self.senders: Ids = np.zeros(0, np.int64)  # Π̄ of the last round: their data counts as used from now on
        self.timings = {"arrivals": 0.0, "schedule": 0.0, "train": 0.0, "transmit": 0.0, "evaluate": 0.0}

    @property
    def model(self) -> Theta:
        """What is tested and kept; `theta` is what devices train from. Mostly they are the same."""
        if self.learner is None:
            return self.theta
        server = self.scenario.learning.server
        return ask(server, "handed_out", self.theta, self.remembered, at=self.round, d=len(self.theta))

    def step(self) -> RoundRecord:
        """The next round: arrivals, schedule, local training, admission, queues, aggregation."""
        t, policy, stream, clock = self.round + 1, self.policy, self.world.stream, perf_counter()
        stream.use(self.senders)
        self.world.advance(t)
        clock = self._lap("arrivals", clock)

        observation, reported = self._reported(self.server.aware(self._observe(t)))
        decision = decide(policy, self.server, observation, self.seed)
        schedule = decision.schedule
        clock = self._lap("schedule", clock)

        training = self.world.train(t, schedule, self.learner, self.theta) if self.learner and len(schedule) else None
        clock = self._lap("train", clock)

        gain = self.world.gain(t)  # known only now
        transmission = transmit(policy, observation, decision, gain[schedule])
        if self.system.block_bits:
            lot = generator(self.seed, Purpose.PACKET_ERRORS, t).random(self.system.devices)
            transmission = sent_in_blocks(observation.system, schedule, gain[schedule], transmission, lot[schedule])
        self.server, record = settle(
            policy,
            self.server,
            observation,
            decision,
            transmission,
            gain=gain,
            used_labels=stream.used_labels,
            losses=training.losses if training else None,
            update_norm=_norms(training.updates) if training else None,
            reporting=reported,
        )
        self.senders = schedule[transmission.arrived]
        if training:
            self.world.keep(transmission.arrived)
            self._aggregate(_rows(training.updates, transmission.arrived), gain, decision.probability)
        clock = self._lap("transmit", clock)

        self.round = t
        record = replace(
            record,
            measured=self._evaluate(t),
            theta=read_only(self.model) if self.learner else None,
            more={**record.more, **self._spend(record.energy_j)},
        )
        self._lap("evaluate", clock)
        return record

    def schedule_by(self, scenario: Scenario) -> None:
        """From the next round on, take policy and budgets from this scenario; the world and the learning stay.

        Before the first round there is nothing that a policy could go on from: it starts as if it had always been so.
        """
        if scenario.policy != self.policy or scenario.system != self._budgets:
            self.policy, self.system = scenario.policy, scenario.known_system(self.system.classes)
            self._budgets = scenario.system
            if self.round == 0:
                self.server = ServerState.first(self.policy, self.system, self.seed, scenario.learns_reliability)

    def _observe(self, t: int) -> Observation:
        world, stream = self.world, self.world.stream
        system = self._system_of_round(t)
        power_w = None
        if world.battery_j is not None:
            power_w = ask(self.policy, "most_power_w", system, world.beta, at=t, K=world.devices)
        return Observation(
            system=system,
            round=t,
            f_hz=world.frequency_hz(t),
            beta=world.beta,
            stored=stream.stored.copy(),
            fresh=stream.fresh.copy(),
            fresh_labels=stream.fresh_labels,
            used_labels=stream.used_total.copy(),
            queue_j=self.server.queue_j,
            available=world.available(system, power_w),
            stored_labels=stream.stored_labels if STORED_LABELS in self.policy.needs else None,
            oracle_gain=world.gain(t) if ORACLE_GAIN in self.policy.needs else None,
        )

    def _system_of_round(self, t: int) -> System:
        """The constants, with what this round costs each device; the same, where all costs are those of the fields."""
        if self.scenario.costs.rule.of_settings and not self.system.cycles_per_sample:
            return self.system
        stream = self.world.stream
        arrays = (self.world.frequency_hz(t), self.world.beta, stream.stored, stream.fresh, stream.fresh_labels)
        seen = CostContext(self.system, t, *arrays)
        return system_of_round(self.scenario.costs.rule, seen, generator(self.seed, Purpose.COSTS, t))

    def _reported(self, observation: Observation) -> tuple[Observation, Reporting | None]:
        """The same with the reports of the devices that answered, where the policy needs any."""
        slot, t = self.system.reports, observation.round
        if slot is None:
            return observation, None
        asked = respond(self.policy, self.server, observation, self.seed) & (observation.stored > 0)
        gain = self.world.gain(t)
        found = reporting(slot, observation.system, observation.f_hz, observation.beta, gain, asked)
        reports = self.world.reports(t, sorted(self.policy.probes), found.answered, self.learner, self.theta)
        return replace(observation, reports=reports), found

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

    def _aggregate(self, updates: NDArray[np.float32], gain: Reals, probability: Reals | None) -> None:
        """θ(t+1), by the server's update from those of the senders that hold data; unchanged where none does."""
        server, stored = self.scenario.learning.server, self.world.stream.stored
        holds = stored[self.senders] > 0
        ids = self.senders[holds]
        if not len(ids):
            return
        if server.needs_probability and probability is None:
            raise broken(
                self.policy, f"says knows_probability, and gave none (Decision.probability) in round {self.round + 1}"
            )
        context = UpdateContext(
            round=self.world.stream.round,
            rounds=self.system.rounds,
            devices=self.system.devices,
            ids=ids,
            held=stored[ids],
            gain=gain[ids],
            probability=None if probability is None else probability[ids],
            reachable=float(stored[ids].sum() if probability is None else stored[probability > 0].sum()),
            staleness=np.zeros(len(ids), np.int64),
        )
        rng = generator(self.seed, Purpose.SERVER_UPDATE, context.round)
        updates = _rows(updates, holds)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below, in a sentence
            known = self.theta, updates, context, self.remembered, rng
            theta, remembered = ask(server, "step", *known, at=context.round, d=len(self.theta))
        self._check_learning(np.isfinite(theta).all())
        self.theta, self.remembered = theta, remembered

    def _evaluate(self, t: int) -> Measured:
        """What the evaluators say of the model after the round."""
        learner = self.learner
        if learner is None or (t % self.scenario.learning.eval_every and t < self.system.rounds):
            return self.evaluators.nothing
        theta = self.model

        def whole_test() -> tuple[float, float]:
            found = learner.evaluate(theta)
            self._check_learning(np.isfinite(found.loss))
            return found.loss, found.accuracy

        predict = Predict(theta, lambda of, samples: learner.predict(theta, of, samples), whole_test, self.test.rows(t))
        stream, devices = self.world.stream, range(self.system.devices)
        context = EvaluationContext(
            predict=predict,
            test=self.test.of(t),
            hold=lambda: Held.of([stream.samples(device) for device in devices]),
            round=t,
            rounds=self.system.rounds,
            classes=self.system.classes,
        )
        return self.evaluators.measure(context)

    def _check_learning(self, finite: bool | np.bool_) -> None:
        if not finite:
            learning, t = self.scenario.learning, self.world.stream.round
            raise EngineError(learning.server.diverged(t) or learning.local.diverged(t))

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on exactly here."""
        return {
            "round": np.array(self.round),
            "senders": self.senders,
            "theta": self.theta,
            "update": self.remembered,
            "server": self.server.snapshot(),
            "world": self.world.snapshot(),
            "evaluators": self.evaluators.snapshot(),
        }

    def restore(self, state: Nested) -> None:
        self.round, self.senders, self.theta = int(state["round"]), state["senders"], state["theta"]
        self.remembered = freeze(state["update"])
        self.server = ServerState.restored(state["server"])
        self.world.restore(state["world"])
        self.evaluators.restore(state["evaluators"])

    def _lap(self, phase: str, since: float) -> float:
        now = perf_counter()
        self.timings[phase] += now - since
        return now


def _rows(updates: NDArray[np.float32], chosen: Flags) -> NDArray[np.float32]:
    """Those updates that are chosen; where all are, no copy of them."""
    return updates if chosen.all() else updates[chosen]


def _norms(updates: NDArray[np.float32]) -> Reals:
    """(n,) ‖Δθ_k‖₂, in double precision; one by one, since all squares would take twice the memory of the updates."""
    return np.sqrt([np.square(update, dtype=np.float64).sum() for update in updates])
