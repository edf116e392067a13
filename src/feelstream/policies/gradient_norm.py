"""Gradient norms and channels: drawn with probabilities that weigh how far a device moves the model and how long it
sends.

    a_k = |S_k| ‖g_k‖₂,    T_k = S_bits / R_k(n, |g_k|²)        of devices that reported ‖g_k‖₂ > 0, feasible ones
    π   = argmin  ρ Σ a_k²/π_k + (1 − ρ) Σ π_k T_k              over 0 < π_k ≤ 1, Σ π_k = n
        = min(1, a_k √(ρ / ((1 − ρ) T_k + λ)))                  with λ such that Σ π_k = n

with a and T in units of their means. Π* is a systematic sample: n devices, each k with the probability π_k. With
`learning.server.kind = "inverse_probability"` the average over schedules is that of all who reported.

Needs: reports of the gradient's norm at the present model, which all available devices compute and pay for; the gain
|g_k|², which a server measures as a report arrives. Ignores: energy, the time of computing.

Reference: J. Ren, Y. He, D. Wen, G. Yu, K. Huang, D. Guo, "Scheduling for Cellular Federated Edge Learning with
Importance and Channel Awareness", IEEE Trans. Wireless Commun. 19(11), 2020, arXiv:2004.00490. Its abstract was at
hand, not its text: importance is gradient divergence, schedules are drawn so that the aggregate is unbiased, one device
a round has a closed form, and there is an extension to several. Choices: the objective above is our reading of it, and
its closed form for n = 1 follows; for several devices it is the same problem with no probability above 1, which need
not be the source's extension; ρ is a pure number, by the units above; devices that did not report in time, or report a
gradient of 0, are not scheduled.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.model.physics import rate_bit_per_s
from feelstream.policies.base import Decision, Observation, Policy, State

STEPS = 100  # halvings of an interval: to the last bit of λ


class GradientNorm(Policy):
    """`size` devices drawn with probabilities that rise with the gradient's norm and fall with the time of sending."""

    needs: ClassVar[frozenset[str]] = frozenset({"gradient_norm", "gain"})
    knows_probability: ClassVar[bool] = True

    rho: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.5, description="ρ, weight of the gradient against the time of sending; above 0, at most 1"
    )

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan, system = observation.plan(self.size), observation.system
        norm, gain = observation.reports["gradient_norm"], observation.reports["gain"]
        with np.errstate(invalid="ignore"):  # NaN is not above 0
            able = np.flatnonzero(plan.feasible & (norm > 0) & (gain > 0) & (observation.stored > 0))
        probability = np.zeros(system.devices)
        if not len(able):
            return Decision(able, plan, probability=probability)
        received_w = system.received_power_w * gain[able] / observation.beta[able]
        rate = rate_bit_per_s(max(self.size, 1), received_w, system.bandwidth_hz, system.noise_w_per_hz)
        time_s = system.update_bits / np.maximum(rate, np.finfo(float).tiny)
        probability[able] = probabilities(observation.stored[able] * norm[able], time_s, self.size, self.rho)
        return Decision(drawn(probability, rng), plan, probability=probability)


def probabilities(importance: Reals, time_s: Reals, n: int, rho: float) -> Reals:
    """(m,) π_k > 0 with Σ π_k = min(n, m). importance: a_k > 0; time_s: T_k ≥ 0.

    >>> probabilities(np.array([3.0, 1.0]), np.array([1.0, 1.0]), 1, 1.0).tolist()
    [0.75, 0.25]
    """
    if len(importance) <= n:
        return np.ones(len(importance))
    a = np.maximum(importance / importance.max(), 1e-12)  # so that nobody's probability is 0
    time = time_s / time_s.max()
    a, price = a / a.mean(), (1 - rho) * time / time.mean()

    def at(rate: float) -> Reals:
        left = price + rate
        return np.where(left > 0, np.minimum(1.0, a * np.sqrt(rho / np.where(left > 0, left, 1.0))), 1.0)

    low, high = -float(price.max()), 1.0
    while at(high).sum() > n:
        high *= 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() > n else (low, middle)
    found = at(high)
    free = found < 1
    return np.where(free, found * ((n - (~free).sum()) / max(found[free].sum(), 1e-300)), 1.0).clip(0.0, 1.0)


def drawn(probability: Reals, rng: np.random.Generator) -> Ids:
    """Devices, each with its probability, as many as these add up to: a systematic sample in a random order.

    In that order the probabilities are laid end to end; a device is drawn if one of u, u + 1, … falls into its part.
    """
    order = rng.permutation(np.flatnonzero(probability > 0))
    n = round(float(probability.sum()))
    ends = np.cumsum(probability[order])
    ends *= n / ends[-1]
    places = np.searchsorted(ends, rng.random() + np.arange(n), side="right")
    return np.sort(order[np.unique(np.minimum(places, len(order) - 1))])
