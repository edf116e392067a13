"""What a round costs a device by its model: bits to send, and CPU cycles in the paper's measure.

    S = 32 d                                              d parameters of 32 bits each, as in the paper
    c = c0 · (steps · batch · m) / (20 · 32 · m0)         m multiply-adds of training on one sample

The paper gives c0 = 600 · 32 d0 cycles for its CNN, whose m0 is 1,297,500, and neither steps nor batch; with those of
our presets, 20 and 32, that is half a cycle per multiply-add. The work of a step is in its multiply-adds, so another
model, other steps or batches cost as many times more or less: cycles per parameter would not know how often a
convolution uses each of its weights.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from feelstream.data.datasets import Dataset
from feelstream.errors import ScenarioError
from feelstream.learning import arrays_of, describe, probe
from feelstream.learning.models import Model
from feelstream.scenario import LearningSettings, Scenario
from feelstream.scenario.files import preset, presets
from feelstream.scenario.overrides import Override

PAPER_PARAMETERS = 21_840
PAPER_BITS = 32.0 * PAPER_PARAMETERS
PAPER_CYCLES = 600 * PAPER_BITS
PAPER_MULTIPLY_ADDS = 1_297_500
PAPER_STEPS, PAPER_BATCH = 20, 32  # inferred: the paper does not tell them


@dataclass(frozen=True)
class Cost:
    """What a round of a model costs a device."""

    parameters: int
    cycles: float | None  # None where the work of the model cannot be counted

    @property
    def update_bits(self) -> float:
        return 32.0 * self.parameters


def of(settings: LearningSettings, dataset: Dataset) -> Cost:
    """The cost of the model that a scenario names, whatever engine runs it, and also where none does."""
    model = describe(settings.model, dataset)
    if not isinstance(model, Model):
        from feelstream.learning.torch_engine import TorchLearner

        model = TorchLearner.from_class(model, *arrays_of(probe(dataset)))
    return Cost(model.parameters, cycles(model.multiply_adds, settings.steps, settings.batch))


def cycles(multiply_adds: float, steps: int, batch: int) -> float | None:
    """c, of a model with so many multiply-adds per sample in training; None where there are none.

    >>> cycles(PAPER_MULTIPLY_ADDS, 20, 32)
    419328000.0
    >>> cycles(2 * PAPER_MULTIPLY_ADDS, 5, 32)
    209664000.0
    """
    work = steps * batch * multiply_adds
    return PAPER_CYCLES * (work / (PAPER_STEPS * PAPER_BATCH * PAPER_MULTIPLY_ADDS)) if work else None


def resolved(scenario: Scenario, cost: Cost) -> Scenario:
    """The scenario with numbers in place of auto; ScenarioError where the model does not tell."""
    if not scenario.autos:
        return scenario
    numbers: dict[str, Any] = {"radio.update_bits": cost.update_bits, "cpu.cycles": cost.cycles}
    if "cpu.cycles" in scenario.autos and cost.cycles is None:
        raise ScenarioError(
            f"cpu.cycles: auto counts matrix products and convolutions, and '{scenario.learning.model}' has none; give "
            "the number of cycles"
        )
    return scenario.overridden([Override(field, numbers[field]) for field in scenario.autos])


def contradiction(scenario: Scenario, parameters: int) -> str | None:
    """A sentence where bits or cycles are those of another model than the scenario's.

    Fewer than 32 bits per parameter may be compression, and cycles depend on the processor, so only two things
    contradict: more bits than that, and the paper's own numbers with a model that has not as many parameters as its
    CNN. The presets as they are mean their numbers.
    """
    bits, given = 32.0 * parameters, scenario.radio.update_bits
    wrong = []
    if given != bits and (given == PAPER_BITS or float(given) > bits):
        wrong.append(f"radio.update_bits = {given:,.0f}")
    if parameters != PAPER_PARAMETERS and (scenario.population.cycles == PAPER_CYCLES).any():
        wrong.append(f"cpu.cycles = {PAPER_CYCLES:,.0f}")
    if not wrong or _numbers(scenario) in _numbers_of_presets():
        return None
    belong, them = ("belong", "them") if wrong[1:] else ("belongs", "it")
    return (
        f"learning.model = {scenario.learning.model} has {parameters:,} parameters, {bits:,.0f} bits at 32 each, but "
        f"{' and '.join(wrong)} {belong} to another model; set {them} to auto to follow the model"
    )


def tell_contradiction(scenario: Scenario, parameters: int) -> None:
    """Warn of a contradiction, once in a process."""
    if found := contradiction(scenario, parameters):
        _warn_once(found)


@lru_cache
def _warn_once(sentence: str) -> None:
    logging.getLogger("feelstream").warning(sentence)


def _numbers(scenario: Scenario) -> tuple[Any, ...]:
    return scenario.data.dataset, scenario.learning.model, scenario.radio.update_bits, scenario.cpu.cycles


@lru_cache(maxsize=1)
def _numbers_of_presets() -> frozenset[tuple[Any, ...]]:
    return frozenset(_numbers(preset(name)) for name in presets())
