"""Power of choice: of d candidates, those on which the model does worst.

    C  = d feasible devices, drawn without replacement with probability ∝ |S_k|       (at least n of them)
    Π* = the n of C with the largest last known loss F̂_k; a loss nobody knows counts as the largest

F̂_k is the mean training loss over all samples drawn when the device last got through.

Needs: the losses that transmitting devices report. Ignores: energy, channels.

Reference: Y. J. Cho, J. Wang, G. Joshi, "Towards Understanding Biased Client Selection in Federated Learning",
AISTATS 2022, arXiv:2010.01243. This is their variant rpow-d. Their pow-d asks all d candidates to evaluate the new
model first, which costs energy that this variant does not spend. Choices: candidates are drawn among the feasible;
without learning (engine none) no loss is ever known and the n are a draw ∝ |S_k|, then at random.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from feelstream.model.system import System
from feelstream.plugins import Count
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import lowest, mean_over_samples


class PowerOfChoice(Policy):
    """Of `candidates` feasible devices the `size` with the largest last known loss."""

    candidates: Count = Field(default=10, description="d, devices drawn to choose from; `size` if that is more; ≥ 1")

    def init(self, system: System) -> State:
        return {"known": np.zeros(system.devices, bool), "loss": np.zeros(system.devices)}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        # The first of independent exponential clocks with rates |S_k| to ring are a draw ∝ |S_k| without replacement;
        # clocks of devices without data never ring, so these only fill up, at random.
        clocks = np.full(len(observation.stored), np.inf)
        rings = rng.standard_exponential(len(clocks))
        np.divide(rings, observation.stored, out=clocks, where=observation.stored > 0)
        drawn = np.zeros(len(clocks), bool)
        drawn[lowest(clocks, plan.feasible, max(self.candidates, self.size), rng)] = True
        badness = np.where(state["known"], state["loss"], np.inf)
        return Decision(lowest(-badness, drawn, self.size, rng), plan)

    def update(self, state: State, outcome: Outcome) -> State:
        if outcome.losses is None:
            return state
        sent = outcome.schedule[outcome.transmitted]
        known, loss = state["known"].copy(), state["loss"].copy()
        mean = mean_over_samples(outcome.losses[outcome.transmitted].astype(float))
        known[sent] = np.isfinite(mean)  # a model that has diverged tells nothing
        loss[sent] = np.where(known[sent], mean, 0.0)
        return {"known": known, "loss": loss}
