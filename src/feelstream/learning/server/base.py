"""Server updates: what the server does with the updates that arrived; and those that average them.

A server update is a frozen settings object. What it remembers is its state, nested dictionaries of arrays that the
simulation keeps, stores in checkpoints and hands back:

    state        = server.init(parameters)                              before the first round
    theta, state = server.step(theta, updates, context, state, rng)     in each round in which data was learned from
    model        = server.handed_out(theta, state)                      whenever somebody looks
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Frozen, Ids, Ints, Nested, Reals
from feelstream.guard import STATE, Array, Out, Pair, default
from feelstream.learning.local import with_rows
from feelstream.plugins import Kind, Plugin, Positive

Theta = NDArray[np.float32]
Updates = NDArray[np.float32]
BLOCK = 2**17  # numbers that are multiplied at once: 1 MB in float64


@dataclass(frozen=True)
class UpdateContext(Frozen):
    """What the server knows of the n ≥ 1 updates of a round: those that arrived from devices that hold data.

    Attributes:
        round: t, from 1.
        rounds: T, of the whole run.
        devices: K.
        ids: (n,) whose updates these are.
        held: (n,) |S_k|, at least 1.
        distinct: |∪ S_j| over the updates, where devices may hold the same samples; None: Σ |S_j|.
        gain: (n,) |g_k|², as found in this round.
        probability: (n,) with which the policy scheduled each; None where it does not know.
        reachable: Σ |S_j| over all devices that might have been scheduled; of `ids` where that is not known.
        staleness: (n,) rounds since the θ that each began from: 0.
    """

    round: int
    rounds: int
    devices: int
    ids: Ids
    held: Ints
    gain: Reals
    probability: Reals | None
    reachable: float
    staleness: Ints
    distinct: int | None = None

    @property
    def share(self) -> Reals:
        """(n,) |S_k| / |∪ S_j| over the updates: the paper's weights, equation (3)."""
        held = self.held.astype(float)
        return held / (held.sum() if self.distinct is None else self.distinct)


class ServerUpdate(Plugin):
    """Base of all server updates: give it a `step`, and an `init` if it must remember something."""

    plugin_field: ClassVar[str] = "learning.server"
    contract: ClassVar[Mapping[str, Out]] = {
        "init": Out(STATE),
        "step": Out(Pair(Array(("d",), dtype=np.float32, finite=False), STATE)),  # the simulation says that it diverged
        "handed_out": Out(Array(("d",), dtype=np.float32)),
    }

    needs_probability: ClassVar[bool] = False  # it must know with which probability each device was scheduled

    def bits(self, parameters: int) -> float:
        """Bits of the update that a device would send: 32 for each parameter, unless it is compressed."""
        return 32.0 * parameters

    def diverged(self, round: int) -> str | None:
        """The sentence for a model that is no longer finite; None: it is for local training to say."""
        return None

    def init(self, parameters: int) -> Nested:
        return {}

    @abstractmethod
    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        """θ and the state after the round. updates: (n, parameters), θ_k − θ; all that it is handed is read-only."""
        ...

    @default
    def handed_out(self, theta: Theta, state: Nested) -> Theta:
        """The model that is tested and kept: θ, from which devices train, unless a server update says otherwise.

        Also asked before the first step, with the state of `init`; it must leave the state as it is.
        """
        return theta


def weighted(weights: Reals, updates: Updates) -> Reals:
    """Σ w_k Δθ_k, in float64.

    By blocks of parameters, of at least two each: all products at once would take twice the memory of the updates.
    """
    parameters = updates.shape[1]
    blocks = min(1 + updates.size // BLOCK, max(1, parameters // 2))
    if blocks == 1:
        return (weights[:, None] * updates).sum(axis=0)
    return np.concatenate([(weights[:, None] * part).sum(axis=0) for part in np.array_split(updates, blocks, axis=1)])


class Moved(ServerUpdate):
    """Base of ours, which move θ by a change that does not depend on it: give it a `change`."""

    rate: ClassVar[str] = ""  # the field, if any, that says how long the server's own steps are

    @abstractmethod
    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        """What is added to θ, and the state after the round."""
        ...

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        change, state = self.change(updates, context, state)
        return (theta + change).astype(np.float32), state

    def diverged(self, round: int) -> str | None:
        if not self.rate:
            return None
        return (
            f"learning.server.{self.rate}: training diverged in round {round} with {getattr(self, self.rate):g}; "
            "choose a smaller one, or a smaller learning.local.lr"
        )


class FedAvg(Moved):
    """By data, the paper's: θ + Σ |S_k| Δθ_k / Σ |S_j|.

    Reference: H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, arXiv:1602.05629.
    """

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        return weighted(context.share, updates), state


class Equal(Moved):
    """Every update counts the same: θ + Σ Δθ_k / n."""

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        return updates.mean(axis=0, dtype=np.float64), state


class InverseProbability(Moved):
    """Unbiased: θ + Σ |S_k| Δθ_k / (p_k Σ |S_j|), the last sum over all devices that might have been scheduled.

    Over the schedules that the policy might have drawn, its mean is what `fedavg` does when all of those devices take
    part: the estimator of Horvitz and Thompson (J. Am. Stat. Assoc. 47, 1952). An update that does not arrive in time
    counts as 0, so the losses of admission are not corrected for.
    """

    needs_probability: ClassVar[bool] = True

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        assert context.probability is not None
        weights = context.held / (context.probability * context.reachable)
        return weighted(weights, updates), state


class TrimmedMean(Moved):
    """θ + the mean of what is left when ⌊trim · n⌋ of the lowest and of the highest values are cut off.

    By coordinate, so that a few wrong updates cannot move it far, as `median`: D. Yin et al., "Byzantine-Robust
    Distributed Learning: Towards Optimal Statistical Rates", ICML 2018, arXiv:1803.01498.
    """

    trim: Annotated[float, Field(strict=True, ge=0, lt=0.5)] = Field(
        default=0.2, description="share of the updates cut off at each end; at least 0, below 0.5"
    )

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        cut = int(self.trim * len(updates))
        kept = np.sort(updates, axis=0)[cut : len(updates) - cut]
        return kept.mean(axis=0, dtype=np.float64), state


class Median(Moved):
    """θ + the median of the updates."""

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        return np.median(updates.astype(np.float64), axis=0), state


LEAST_WEIGHT = 1e-6  # an update that counts for less beside a fresh one is forgotten, so that memory stays bounded


class Remembered(Moved):
    """θ + η Σ w_k y_k / Σ w_k over the latest update y_k of every device, w_k = |S_k| · discount^(rounds since).

    Where few devices train in a round, θ moves by what these few hold. The server can keep what the others sent last:

        y_k ← Δθ_k, a_k ← 0      of the devices whose updates arrived      (a_k: rounds since, 1 more in every other)
        θ   ← θ + η Σ_k w_k y_k / Σ_k w_k,   w_k = |S_k| discount^a_k      over all devices that ever sent one

    |S_k| is that of the update, η the `server_learning_rate`, 1 unless it is set. With η = 1 and everybody in every
    round this is `fedavg`, whatever the discount; with `discount = 1` it is the rule of MIFA, with weights by data. It
    costs devices nothing: no more energy, no more bits.

    References: X. Gu, K. Huang, J. Zhang, L. Huang, "Fast Federated Learning in the Presence of Arbitrary Device
    Unavailability" (MIFA), NeurIPS 2021, arXiv:2106.04159. The discount is our choice: early in a run updates are long,
    and one that is applied again and again, undiscounted, goes too far. A server's own rate η: S. J. Reddi et al.,
    "Adaptive Federated Optimization", ICLR 2021, arXiv:2003.00295.
    """

    rate: ClassVar[str] = "server_learning_rate"

    discount: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.3, description="what an update still counts one round later; above 0, at most 1 (never less)"
    )
    server_learning_rate: Positive = Field(default=1.0, description="η, times the average is the step; > 0")

    def diverged(self, round: int) -> str | None:
        return None if self.server_learning_rate == 1 else super().diverged(round)

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        n, held = len(updates), np.asarray(context.held, np.int64)
        now = {"ids": context.ids, "round": np.full(n, context.round, np.int64), "held": held, "updates": updates}
        latest = with_rows(state, now)
        fading = self.discount ** (context.round - latest["round"]).astype(float)
        weights = latest["held"] * fading
        average = weighted(weights / weights.sum(), latest["updates"])
        kept = fading >= LEAST_WEIGHT
        return self.server_learning_rate * average, {name: column[kept] for name, column in latest.items()}


SERVER_UPDATES: Kind[type[ServerUpdate]] = Kind(
    "server_update",
    "server_updates",
    ServerUpdate,
    {
        "fedavg": FedAvg,
        "equal": Equal,
        "inverse_probability": InverseProbability,
        "remembered": Remembered,
        "trimmed_mean": TrimmedMean,
        "median": Median,
    },
)
