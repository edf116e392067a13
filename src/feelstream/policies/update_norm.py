"""Update norms: of the devices that are heard best, those whose update would move the model most.

    C  = the N_c feasible devices that hold data, with the largest β_k       asked; each trains and reports ‖Δθ_k‖₂
    Π* = the n devices of C that reported with the largest ‖Δθ_k‖₂

Needs: a slot for reports that is long enough for training, in which every candidate really computes its update. That is
charged: a candidate that is not scheduled has trained for nothing. Ignores: energy, and the data but for its update.

Reference: M. M. Amiri, D. Gündüz, S. R. Kulkarni, H. V. Poor, "Convergence of Update Aware Device Scheduling for
Federated Learning at the Wireless Edge", IEEE Trans. Wireless Commun. 20(6), 2021, arXiv:2001.10402. Its abstract was
at hand, not its text: devices are chosen by their channels and by the significance of their updates, and compress
those to what their links carry. The rule, its BC-BN2, and BN2 with all devices as candidates, is written from memory
and was not checked against the text. Choices: nothing is compressed; the best channels are those of the largest β,
as this round's gains are not known; a device that is scheduled has trained once and pays once, but its time in the
round is not shortened by what it computed in the slot; who does not report in time is not scheduled.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Flags
from feelstream.plugins import Count
from feelstream.policies.base import TRAINING, Decision, Observation, Policy, State
from feelstream.policies.ranking import lowest


class UpdateNorm(Policy):
    """The `size` devices with the largest update norms, of `candidates` with the best channels; all of those train."""

    prefers: ClassVar[str | None] = "norm of the update"
    needs: ClassVar[frozenset[str]] = frozenset({TRAINING})

    candidates: Count = Field(
        default=8, description="N_c, devices that train and report before the choice, `size` if that is more; ≥ 1"
    )

    def asks(self, state: State, observation: Observation, rng: np.random.Generator) -> Flags:
        able = observation.plan(self.size).feasible & (observation.stored > 0)
        asked = np.zeros(len(able), bool)
        asked[lowest(-observation.beta, able, max(self.candidates, self.size), rng)] = True
        return asked

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan, norm = observation.plan(self.size), observation.reports[TRAINING]
        answered = ~np.isnan(norm)
        score = np.where(answered, -norm, 0.0)
        return Decision(lowest(score, plan.feasible & answered, self.size, rng), plan, score=score)
