"""The round loop: Algorithm 1 of the paper, with its gaps closed as docs/model.md says.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import EngineError, FeelstreamError
from feelstream.learning.contract import Evaluation, Learner, Training
from feelstream.model.admission import Transmission
from feelstream.model.importance import combined
from feelstream.plugins import in_a_sentence
from feelstream.policies.base import Decision, Ids, Observation, Outcome, Policy, State
from feelstream.randomness import Purpose, generator
from feelstream.scenario import Scenario
from feelstream.world import World

Reals = NDArray[np.float64]


class PolicyError(FeelstreamError):
    """A policy broke its contract."""


def are_devices(chosen: NDArray, devices: int) -> bool:
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        return False
    return bool(((chosen >= 0) & (chosen < devices)).all()) and len(np.unique(chosen)) == len(chosen)


@dataclass(frozen=True)
class RoundRecord:
    """Everything that was known, decided and spent in one round; arrays over all devices unless said otherwise."""

    observation: Observation
    used_labels: NDArray[np.int32]  # (K, m) X's part of each device, before the round
    decision: Decision
    importance: Reals
    gain: Reals
    transmission: Transmission  # one entry per scheduled device
    queue_next_j: Reals
    evaluation: Evaluation | None

    @property
    def energy_j(self) -> Reals:
        """(K,) E_k of this round."""
        energy = np.zeros(len(self.gain))
        energy[self.decision.schedule] = self.transmission.e_cmp_j + self.transmission.e_tr_j
        return energy


def decide(policy: Policy, state: State, observation: Observation, seed: int) -> Decision:
    """The policy's decision, with the round's own random numbers; refused where it breaks the contract."""
    devices, rng = observation.system.devices, generator(seed, Purpose.POLICY, observation.round)
    try:
        decision = policy.select(state, observation, rng)
    except FeelstreamError:
        raise
    except Exception as problem:
        raise PolicyError(
            f"policy '{policy.plugin_name()}' failed in round {observation.round}: {in_a_sentence(problem)}"
        ) from problem
    if not isinstance(decision, Decision):
        raise PolicyError(
            f"policy '{policy.plugin_name()}' must return a feelstream.Decision from select, "
            f"not {type(decision).__name__}"
        )
    chosen = np.asarray(decision.schedule)
    if not are_devices(chosen, devices):
        raise PolicyError(
            f"policy '{policy.plugin_name()}' must schedule a list of different device numbers from 0 to "
            f"{devices - 1}, not {chosen.tolist()}, in round {observation.round}"
        )
    chosen = chosen.astype(np.int64)  # an empty array is one of floats by default
    if not (decision.plan.feasible & (observation.stored > 0))[chosen].all():
        raise PolicyError(
            f"policy '{policy.plugin_name()}' scheduled a device that is not feasible in round {observation.round}"
        )
    return replace(decision, schedule=chosen)


def shown_importance(observation: Observation, decision: Decision) -> Reals:
    """(K,) the importance that the trace shows: the policy's own, or else the combined metric."""
    if decision.importance is not None:
        return decision.importance
    return combined(decision.plan.amount, observation.dissimilarity)


def next_queue_j(queue_j: Reals, schedule: Ids, transmission: Transmission, budget_j: Reals) -> Reals:
    """Q_k(t+1) = max(Q_k + E_k − E_k^avg, 0): those who did nothing drain by their budget."""
    spent = np.zeros(len(queue_j))
    spent[schedule] = transmission.e_cmp_j + transmission.e_tr_j
    after = np.maximum(queue_j + spent - budget_j, 0.0)
    after.flags.writeable = False  # policies see it
    return after


class Simulation:
    """A run in progress. `step` plays one round; `snapshot` and `restore` stop it and let it go on."""

    def __init__(
        self, scenario: Scenario, seed: int, labels: NDArray[np.uint8], classes: int, learner: Learner | None
    ) -> None:
        self.scenario, self.seed, self.learner = scenario, seed, learner
        self.system = scenario.known_system(classes)
        self.world = World(scenario, seed, labels, classes)
        self.policy = scenario.policy
        self.round = 0
        self.queue_j: Reals = np.zeros(self.system.devices)
        self.policy_state: State = self.policy.init(self.system)
        self.theta = learner.init(seed) if learner else np.zeros(0, np.float32)
        self.timings = {"arrivals": 0.0, "schedule": 0.0, "train": 0.0, "transmit": 0.0, "evaluate": 0.0}

    def step(self) -> RoundRecord:
        t = self.round + 1
        stream, learning = self.world.stream, self.scenario.learning
        with self._timed("arrivals"):
            stream.advance(t)
        with self._timed("schedule"):
            observation = self._observe(t)
            decision = decide(self.policy, self.policy_state, observation, self.seed)
            schedule = decision.schedule
        with self._timed("train"):
            training = None
            if self.learner is not None and len(schedule):
                batches = self.world.mini_batches(t, schedule, learning.steps, learning.batch)
                training = self.learner.train(self.theta, batches, learning.lr)
        with self._timed("transmit"):
            gain = self.world.gain(t)  # known only now
            transmission = self.policy.transmit(observation, decision, gain[schedule])
            importance = shown_importance(observation, decision)
            used_before = stream.used_labels.copy() if self.scenario.trace.level == "full" else stream.used_labels
            self.queue_j = next_queue_j(self.queue_j, schedule, transmission, self.system.energy_budget_j)
            self._aggregate(schedule[transmission.sent], training, transmission.sent)
            stream.use(schedule[transmission.sent])
            self.policy_state = self.policy.update(
                self.policy_state,
                Outcome(
                    round=t,
                    schedule=schedule,
                    transmitted=transmission.sent,
                    gain=gain[schedule],
                    energy_j=transmission.e_cmp_j + transmission.e_tr_j,
                    losses=training.losses if training else None,
                ),
            )
        with self._timed("evaluate"):
            evaluation = None
            if self.learner is not None and (t % learning.eval_every == 0 or t == self.system.rounds):
                evaluation = self.learner.evaluate(self.theta)
                self._check_learning(np.isfinite(evaluation.loss))
        self.round = t
        return RoundRecord(observation, used_before, decision, importance, gain, transmission, self.queue_j, evaluation)

    def _observe(self, t: int) -> Observation:
        stream, copy = self.world.stream, self.scenario.trace.level == "full"
        return Observation(
            system=self.system,
            round=t,
            f_hz=self.world.frequency_hz(t),
            beta=self.world.beta,
            stored=stream.stored.copy(),
            fresh=stream.fresh.copy(),
            fresh_labels=stream.fresh_labels.copy() if copy else stream.fresh_labels,
            used_labels=stream.used_total.copy(),
            queue_j=self.queue_j,
        )

    def _aggregate(self, senders: NDArray[np.int64], training: Training | None, sent: NDArray[np.bool_]) -> None:
        """θ(t+1) = θ(t) + Σ |S_k| Δθ_k / Σ |S_j| over the senders; unchanged where nobody sent."""
        if training is None or len(senders) == 0:
            return
        weights = self.world.stream.stored[senders].astype(float)
        weights /= weights.sum()  # never 0: a device without data is never feasible
        with np.errstate(over="ignore", invalid="ignore"):  # told below, in a sentence
            change = (weights[:, None] * training.updates[sent]).sum(axis=0)
            self.theta = (self.theta + change).astype(np.float32)
        self._check_learning(np.isfinite(self.theta).all())

    def _check_learning(self, finite: bool | np.bool_) -> None:
        if not finite:
            raise EngineError(
                f"learning.lr: training diverged in round {self.round + 1} with a learning rate of "
                f"{self.scenario.learning.lr:g}; choose a smaller one"
            )

    def snapshot(self) -> dict[str, NDArray]:
        """All that `restore` needs to go on exactly here, as plain arrays."""
        return {
            "round": np.array(self.round),
            "queue_j": self.queue_j,
            "theta": self.theta,
            **{f"policy.{name}": array for name, array in self.policy_state.items()},
            **{f"stream.{name}": array for name, array in self.world.stream.snapshot().items()},
        }

    def restore(self, state: dict[str, NDArray]) -> None:
        def part(prefix: str) -> dict[str, NDArray]:
            return {name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)}

        self.round = int(state["round"])
        self.queue_j, self.theta = state["queue_j"], state["theta"]
        self.policy_state = part("policy.")
        self.world.stream.restore(part("stream."))

    @contextmanager
    def _timed(self, phase: str):
        start = perf_counter()
        yield
        self.timings[phase] += perf_counter() - start
