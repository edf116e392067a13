"""What a round costs a device by its model: bits to send, and CPU cycles in the paper's measure.

    S = 32 d                                              d parameters of 32 bits each, as in the paper; fewer where
                                                          the server update has devices compress what they send, and
                                                          32 d more with SCAFFOLD, whose devices send c_k too
    c = c0 · (steps · batch · m) / (20 · 32 · m0)         m multiply-adds of training on one sample

The paper gives c0 = 600 · 32 d0 cycles for its CNN, whose m0 is 1,297,500, and neither steps nor batch; with those of
our presets, 20 and 32, that is half a cycle per multiply-add. The work of a step is in its multiply-adds, so another
model, other steps or batches cost as many times more or less: cycles per parameter would not know how often a
convolution uses each of its weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from feelstream.data.datasets import Dataset
from feelstream.learning import blank, describe
from feelstream.learning.models import Model
from feelstream.learning.settings import LearningSettings

PAPER_PARAMETERS = 21_840
PAPER_BITS = 32.0 * PAPER_PARAMETERS
PAPER_CYCLES = 600 * PAPER_BITS
PAPER_MULTIPLY_ADDS = 1_297_500
PAPER_STEPS, PAPER_BATCH = 20, 32  # inferred: the paper does not tell them


@dataclass(frozen=True)
class Cost:
    """What a round of a model costs a device."""

    parameters: int
    cycles: float | None  # None where the work of a round cannot be counted
    update_bits: float


def of(settings: LearningSettings, dataset: Dataset) -> Cost:
    """The cost of the model that a scenario names, whatever engine runs it, and also where none does."""
    model = describe(settings.model, dataset)
    if not isinstance(model, Model):
        from feelstream.learning.torch_engine import TorchLearner

        model = TorchLearner(model, blank(dataset), batch_norm=settings.batch_norm)
    shape = settings.local.shape
    needed = cycles(model.multiply_adds, *shape) if shape else None
    beside = 32.0 * model.parameters * (settings.local.vectors_sent - 1)  # of which nothing is compressed
    return Cost(model.parameters, needed, settings.server.bits(model.parameters) + beside)


def cycles(multiply_adds: float, steps: int, batch: int) -> float | None:
    """c, of a model with so many multiply-adds per sample in training; None where there are none.

    >>> cycles(PAPER_MULTIPLY_ADDS, 20, 32)
    419328000.0
    >>> cycles(2 * PAPER_MULTIPLY_ADDS, 5, 32)
    209664000.0
    """
    work = steps * batch * multiply_adds
    return PAPER_CYCLES * (work / (PAPER_STEPS * PAPER_BATCH * PAPER_MULTIPLY_ADDS)) if work else None
