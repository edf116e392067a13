"""What happens to updates on their way, around an inner server update that combines them: clipping and noise,
quantisation, sparsity with error feedback, a limit on their length.

A wrapper changes each update by itself and hands them on (`smoothed` changes the model that is handed out); its state
holds that of the inner one.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from feelstream.arrays import Nested
from feelstream.learning.local import rows_of, with_rows
from feelstream.learning.server.base import SERVER_UPDATES, ServerUpdate, Theta, UpdateContext, Updates
from feelstream.plugins import Count, NonNegative, Positive

Changed = tuple[Updates, Nested]  # updates as they reach the inner one, and the wrapper's own state


class Wrapper(ServerUpdate):
    """Base of the wrappers: give it a `changed`."""

    inner: Annotated[ServerUpdate, SERVER_UPDATES] = SERVER_UPDATES.chosen()

    @property
    def needs_probability(self) -> bool:  # type: ignore[override]
        return self.inner.needs_probability

    def bits(self, parameters: int) -> float:
        return self.inner.bits(parameters)

    def diverged(self, round: int) -> str | None:
        return self.inner.diverged(round)

    def init(self, parameters: int) -> Nested:
        within = self.inner.init(parameters)
        return {"inner": within} if within else {}

    def changed(self, updates: Updates, context: UpdateContext, own: Nested, rng: np.random.Generator) -> Changed:
        return updates, own

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        arrived, own = self.changed(updates, context, state.get("own", {}), rng)
        theta, within = self.inner.step(theta, arrived, context, state.get("inner", {}), rng)
        parts = {"own": own, "inner": within}
        return theta, {name: part for name, part in parts.items() if part}

    def handed_out(self, theta: Theta, state: Nested) -> Theta:
        return self.inner.handed_out(theta, state.get("inner", {}))


class Gaussian(Wrapper):
    """Clipping and noise: each update is cut to the norm `clip`, then noise of standard deviation noise · clip / √n is
    added to each of its parameters, and of receiver / √gain for the radio's.

    With `inner = {kind = "equal"}` the average has noise · clip / n, as in DP-FedAvg with a fixed clip (H. B. McMahan
    et al., "Learning Differentially Private Recurrent Language Models", ICLR 2018, arXiv:1710.06963) and in Flower's
    DifferentialPrivacyServerSideFixedClipping; no budget ε is accounted for. `receiver` is what analogue transmission
    at equal power leaves of the receiver's noise, once a device's gain is divided out.
    """

    clip: Positive | None = Field(default=None, description="largest norm of an update; > 0, left out: no limit")
    noise: NonNegative = Field(default=0.0, description="noise multiplier of differential privacy, needs clip; ≥ 0")
    receiver: NonNegative = Field(
        default=0.0, description="standard deviation of the receiver's noise in a parameter at a gain of 1; ≥ 0"
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.noise and self.clip is None:
            raise ValueError(".noise: needs clip, the norm that it is a multiple of")
        return self

    def changed(self, updates: Updates, context: UpdateContext, own: Nested, rng: np.random.Generator) -> Changed:
        found = updates.astype(np.float64)
        if self.clip is not None:
            norms = np.linalg.norm(found, axis=1)
            found *= np.minimum(1.0, self.clip / np.maximum(norms, 1e-300))[:, None]
            if self.noise:
                found += rng.normal(0.0, self.noise * self.clip / np.sqrt(len(found)), found.shape)
        if self.receiver:
            found += rng.standard_normal(found.shape) * (self.receiver / np.sqrt(context.gain))[:, None]
        return found.astype(np.float32), own


class Quantise(Wrapper):
    """Each parameter takes `bits_each` bits, sign and one of s = 2^(bits_each − 1) − 1 steps of the update's norm; what
    lies between two is rounded at random, so that the mean is right, and its norm takes 32 more.

    Reference: D. Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding", NeurIPS
    2017, arXiv:1610.02132. Choice: a code of fixed length, not Elias'.
    """

    bits_each: Annotated[int, Field(strict=True, ge=2, le=16)] = Field(
        default=8, description="bits of each parameter; 2 to 16"
    )

    def bits(self, parameters: int) -> float:
        return float(self.bits_each * parameters + 32)

    def changed(self, updates: Updates, context: UpdateContext, own: Nested, rng: np.random.Generator) -> Changed:
        levels = 2 ** (self.bits_each - 1) - 1
        norms = np.linalg.norm(updates.astype(np.float64), axis=1)[:, None]
        place = np.abs(updates) / np.where(norms > 0, norms, 1) * levels
        below = np.floor(place)
        chosen = below + (rng.random(updates.shape) < place - below)
        return (np.sign(updates) * chosen * norms / levels).astype(np.float32), own


class TopK(Wrapper):
    """Of each update only the ⌈fraction · d⌉ parameters of the largest magnitude; what was left out is added to the
    device's next update (error feedback). A device whose update does not arrive keeps what it had left out.

    Reference: S. U. Stich, J.-B. Cordonnier, M. Jaggi, "Sparsified SGD with Memory", NeurIPS 2018, arXiv:1809.07599.
    """

    fraction: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.1, description="share of the parameters that is sent; above 0, at most 1"
    )
    feedback: bool = Field(default=True, strict=True, description="whether devices keep what was left out")

    def count(self, parameters: int) -> int:
        return ceil(self.fraction * parameters)

    def bits(self, parameters: int) -> float:
        """A value and its place for each that is sent."""
        return float(self.count(parameters) * (32 + max(ceil(log2(parameters)), 1)))

    def changed(self, updates: Updates, context: UpdateContext, own: Nested, rng: np.random.Generator) -> Changed:
        whole = updates + rows_of(own, context.ids, updates.shape[1]) if self.feedback else updates
        k = self.count(updates.shape[1])
        places = np.argsort(-np.abs(whole), axis=1, kind="stable")[:, :k]
        sent = np.zeros_like(updates)
        np.put_along_axis(sent, places, np.take_along_axis(whole, places, axis=1), axis=1)
        if not self.feedback:
            return sent, own
        return sent, with_rows(own, {"ids": context.ids, "rows": whole - sent})


class Limited(Wrapper):
    """Each update is cut to `times` the median norm of the last `window` updates; then `inner`.

    Local training sometimes takes a step too far: one device comes back with an update ten or thirty times as long as
    others, and in a round of few devices nothing averages it out. So each is cut to

        ‖Δθ_k‖ ≤ times · median of the norms of the last `window` updates, those of this round included
                                                                (of all of this round, where they are more)

    by the norms as they arrived, before the inner update combines them. Few are cut where updates are about equally
    long.

    References: a fixed limit on norms: Z. Sun, P. Kairouz, A. T. Suresh, H. B. McMahan, "Can You Really Backdoor
    Federated Learning?", arXiv:1911.07963; one by a running quantile: G. Andrew, O. Thakkar, H. B. McMahan,
    S. Ramaswamy, "Differentially Private Learning with Adaptive Clipping", NeurIPS 2021, arXiv:1905.03871. That it is a
    multiple of the median over a window is our choice: updates become shorter as a model is trained, and no length has
    to be known.
    """

    times: Positive = Field(default=6.0, description="longest update, in multiples of the median norm; > 0")
    window: Count = Field(default=20, description="updates over which the median is taken; ≥ 1")

    def changed(self, updates: Updates, context: UpdateContext, own: Nested, rng: np.random.Generator) -> Changed:
        found = updates.astype(np.float64)
        norms = np.linalg.norm(found, axis=1)
        known = np.concatenate([own["norms"], norms]) if own else norms
        lately = known[-max(self.window, len(norms)) :]
        longest = self.times * float(np.median(lately))
        found *= np.minimum(1.0, longest / np.maximum(norms, 1e-300))[:, None]
        return found.astype(np.float32), {"norms": lately}


class Smoothed(Wrapper):
    """The inner update, whose model is handed out as a running average of those after each step.

    Where few devices train in a round, θ swings with whose data it was. The average swings less, and costs devices
    nothing; devices go on from the model itself:

        θ̄ ← θ̄ + weight (θ − θ̄)        after every step of the inner update; at first θ̄ = θ

    θ̄ is what is tested and kept; θ is what devices get and train from, so no schedule changes by it.

    References: B. T. Polyak, A. B. Juditsky, "Acceleration of Stochastic Approximation by Averaging", SIAM J. Control
    and Optimization 30(4), 1992; at the server of a federation, over a window of rounds: D. Caldarola, B. Caputo,
    M. Ciccone, "Improving Generalization in Federated Learning by Seeking Flat Minima", ECCV 2022, arXiv:2203.11834.
    That the weights fall geometrically is our choice: data keeps arriving, and a model of long ago knows nothing of it.
    """

    weight: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.5, description="what the newest model counts in the average; above 0, at most 1 (no average)"
    )

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        after, new = super().step(theta, updates, context, state, rng)
        within = self.inner.handed_out(after, new.get("inner", {})).astype(np.float64)
        own = state.get("own", {})
        before = own["average"] if own else theta.astype(np.float64)  # the model that nobody has trained yet
        return after, {**new, "own": {"average": before + self.weight * (within - before)}}

    def handed_out(self, theta: Theta, state: Nested) -> Theta:
        own = state.get("own")
        return own["average"].astype(np.float32) if own else super().handed_out(theta, state)


SERVER_UPDATES.add(
    {"gaussian": Gaussian, "quantise": Quantise, "top_k": TopK, "smoothed": Smoothed, "limited": Limited}
)
