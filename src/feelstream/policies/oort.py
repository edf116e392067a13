"""Oort: devices that still have something to teach and are fast enough, with some exploration.

    utility   U_k = min(|S_k|, steps·batch) √(mean loss²) of the samples trained when k last got through, clipped at its
              95 % quantile and scaled to 0…1 over the known devices;   1 where no loss is known, 0 without data
    score_k   = (U_k + √(0.1 ln t / t_k)) · (T/τ_k)^α if τ_k > T, without the last factor otherwise
              t_k: round of the last success;  τ_k = c/f_k + T~(n);  T: the `prefer` quantile of τ among the feasible
    exploit   (1 − ε_t) n devices, drawn ∝ score among known ones with score ≥ 0.95 × the last one that would fit
    explore   ε_t n devices never heard of, drawn ∝ |S_k| (T/τ_k)^α,      ε_t = max(ε_0 · decay^t, ε_min)

Too few known (unknown) devices: the others fill the slots.

Needs: the losses of transmitting devices, CPU frequencies. Ignores: energy.

Reference: F. Lai, X. Zhu, H. V. Madhyastha, M. Chowdhury, "Oort: Efficient Federated Learning via Guided Participant
Selection", OSDI 2021, arXiv:2010.06081; details and default values as documented by its open implementation.
Choices: |B_k| there, the samples that a device trains on, is what steps·batch draws can reach of the |S_k| it holds. No
pacer: it lengthens T when utility flattens, but rounds have a fixed length here, so T stays a quantile, and α = 0 turns
the term of speed off. No blacklist. ε_t n is rounded at random, since with n = 2 rounding down would end all
exploration. Without learning (engine none) all utilities are 1 and the rule is driven by age and speed.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.model.system import System
from feelstream.plugins import Fraction, NonNegative
from feelstream.policies.base import Decision, Observation, Outcome, Policy, RoundPlan, State
from feelstream.policies.ranking import lowest, mean_over_samples

CLIP, CUT_OFF = 0.95, 0.95


class Oort(Policy):
    """`size` feasible devices by statistical utility and speed, a decaying part of them for exploration."""

    exploration: Fraction = Field(default=0.9, description="ε_0, share of the schedule that explores at first; 0 to 1")
    decay: Fraction = Field(default=0.98, description="factor on that share per round; 0 to 1")
    exploration_min: Fraction = Field(default=0.3, description="ε_min, below which that share never falls; 0 to 1")
    prefer: Fraction = Field(
        default=0.3, description="quantile of the devices' times that counts as fast enough; 0 to 1"
    )
    alpha: NonNegative = Field(default=2.0, description="α, how hard slower devices are penalised; ≥ 0")

    def init(self, system: System) -> State:
        zeros = np.zeros(system.devices)
        return {"last": np.zeros(system.devices, np.int64), "known": zeros.astype(bool), "utility": zeros}

    def explores(self, round: int) -> float:
        """ε_t."""
        return max(self.exploration * self.decay**round, self.exploration_min)

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        tried, speed = state["last"] > 0, self.speed(observation, plan)
        old, new = np.flatnonzero(plan.feasible & tried), np.flatnonzero(plan.feasible & ~tried)
        n = min(self.size, len(old) + len(new))
        exploring = int(self.size * self.explores(observation.round) + rng.random())
        exploring = min(max(exploring, n - len(old)), len(new), n)
        weights = observation.stored * speed
        explored = _draw(new, weights[new], exploring, rng)
        exploited = self._exploit(old, self.scores(state, observation.round, speed)[old], n - exploring, rng)
        return Decision(np.sort(np.concatenate([explored, exploited])), plan)

    def speed(self, observation: Observation, plan: RoundPlan) -> Reals:
        """(T/τ_k)^α where τ_k > T, else 1; all 1 where nobody is feasible. At least e^−400, so that order survives."""
        time_s = observation.system.download_s + observation.compute_time_s + plan.transmit_time_s
        if not plan.feasible.any():
            return np.ones_like(time_s)
        ratio = np.minimum(np.quantile(time_s[plan.feasible], self.prefer) / time_s, 1.0)
        return np.exp(np.maximum(self.alpha * np.log(ratio), -400.0))

    def scores(self, state: State, round: int, speed: Reals) -> Reals:
        """Score of every device; only those of tried ones mean anything."""
        known = state["utility"][state["known"]]
        utility = np.ones(len(speed))
        if len(known):
            clipped = np.minimum(state["utility"], np.quantile(known, CLIP))
            lowest_known = 0.999 * known.min()  # so that the worst keeps a little, and equal ones get 1
            spread = max(float(np.quantile(known, CLIP)) - lowest_known, 1e-12)
            utility[state["known"]] = ((clipped - lowest_known) / spread)[state["known"]]
        uncertainty = np.sqrt(0.1 * np.log(round) / np.maximum(state["last"], 1))
        return (utility + uncertainty) * speed

    def _exploit(self, ids: Ids, scores: Reals, n: int, rng: np.random.Generator) -> Ids:
        if n == 0 or n >= len(ids):
            return ids[:n]
        cut_off = CUT_OFF * np.partition(scores, -n)[-n]
        near = scores >= cut_off
        return _draw(ids[near], scores[near], n, rng)

    def update(self, state: State, outcome: Outcome) -> State:
        sent = outcome.schedule[outcome.transmitted]
        last, known, utility = (state[name].copy() for name in ("last", "known", "utility"))
        last[sent] = outcome.round
        if outcome.losses is not None:
            losses = outcome.losses[outcome.transmitted].astype(float)
            stored, told = outcome.observation.stored[sent], (~np.isnan(losses)).sum(axis=(1, 2))
            trained = np.where(told > 0, np.minimum(stored, told), stored)  # stored, but nothing said: not known
            found = np.where(trained > 0, trained * np.sqrt(mean_over_samples(np.square(losses))), 0.0)
            known[sent] = np.isfinite(found)  # a model that has diverged tells nothing
            utility[sent] = np.where(known[sent], found, 0.0)
        return {"last": last, "known": known, "utility": utility}


def _draw(ids: Ids, weights: Reals, n: int, rng: np.random.Generator) -> Ids:
    """n of the devices without replacement, with probability ∝ weight: those whose exponential clocks ring first."""
    clocks = rng.standard_exponential(len(ids)) / np.maximum(weights, 1e-200)
    return ids[lowest(clocks, np.ones(len(ids), bool), n, rng)]
