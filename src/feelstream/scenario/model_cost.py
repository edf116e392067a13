"""What a round costs a device by its model, and bits and cycles of a scenario that follow it, or contradict it.

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

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from feelstream.data.datasets import Dataset
from feelstream.environment.base import by_itself
from feelstream.environment.channel import CHANNELS, wrong_mean
from feelstream.errors import ScenarioError
from feelstream.learning import blank, describe
from feelstream.learning.models import Model
from feelstream.learning.settings import LearningSettings
from feelstream.scenario.files import preset, presets
from feelstream.scenario.overrides import Override
from feelstream.scenario.settings import Scenario

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


def with_numbers(scenario: Scenario, cost: Cost) -> Scenario:
    """The scenario with numbers in place of auto; ScenarioError where the model does not tell."""
    numbers: dict[str, Any] = {"radio.update_bits": cost.update_bits, "cpu.cycles": cost.cycles}
    if "cpu.cycles" in scenario.autos and scenario.learning.local.shape is None:
        raise ScenarioError(
            "cpu.cycles: auto needs learning.local with a number of steps, since the work of epochs depends on what a "
            "device holds; give the number of cycles"
        )
    if "cpu.cycles" in scenario.autos and cost.cycles is None:
        raise ScenarioError(
            f"cpu.cycles: auto counts matrix products and convolutions, and '{scenario.learning.model}' has none; give "
            "the number of cycles"
        )
    found = scenario.overridden([Override(field, numbers[field]) for field in scenario.autos])
    if "cpu.cycles" in scenario.autos and not scenario.costs.cycles_per_sample and (sentence := nobody_on_time(found)):
        _warn_once(sentence)
    return found


def nobody_on_time(scenario: Scenario) -> str | None:
    """A sentence where, with frequencies spread evenly over their ranges, fewer than one device meets the deadline.

    That the fastest of all at its highest frequency meets it was checked with the scenario.
    """
    system, population = scenario.known_system(classes=1), scenario.population
    sending_s = float(system.surrogate_time_s(scenario.policy.smallest_plan))
    left_s = system.time_s - sending_s
    needed_hz = population.cycles / np.maximum(left_s, np.finfo(float).tiny)
    low, high = population.frequency_low_hz, population.frequency_high_hz
    width = np.where(high > low, high - low, 1.0)
    share = np.where(high > low, np.clip((high - needed_hz) / width, 0.0, 1.0), high >= needed_hz)
    if share.sum() >= 1:
        return None
    slot_s = system.reports.slot_s if system.reports else 0.0
    least_s = slot_s + sending_s + float(np.min(system.away_s + 2 * population.cycles / (low + high)))
    return (
        f"cpu.cycles: auto found {population.cycles.max():.3g} cycles a round for the model, and of "
        f"{scenario.system.devices} devices only {share.sum():.2g} on average meet the deadline of "
        f"{scenario.system.round_s:g} s, so most rounds train nobody; a system.round_s of {least_s:.3g} would leave "
        "time at medium frequencies, or take fewer learning.steps or a smaller model"
    )


def contradiction(scenario: Scenario, parameters: int) -> str | None:
    """A sentence where bits or cycles are those of another model than the scenario's.

    Fewer than 32 bits per parameter may be compression, and cycles depend on the processor, so only two things
    contradict: more bits than that, and the paper's own numbers with a model that has not as many parameters as its
    CNN. The presets as they are mean their numbers.
    """
    given = scenario.radio.update_bits
    bits = 32.0 * parameters * scenario.learning.local.vectors_sent
    wrong = []
    if given != bits and (given == PAPER_BITS or float(given) > bits):
        wrong.append(f"radio.update_bits = {given:,.0f}")
    follows_data = scenario.costs.cycles_per_sample > 0
    if parameters != PAPER_PARAMETERS and not follows_data and (scenario.population.cycles == PAPER_CYCLES).any():
        wrong.append(f"cpu.cycles = {PAPER_CYCLES:,.0f}")
    if not wrong or _numbers(scenario) in _numbers_of_presets():
        return None
    belong, them = ("belong", "them") if wrong[1:] else ("belongs", "it")
    return (
        f"learning.model = {scenario.learning.model} has {parameters:,} parameters, {bits:,.0f} bits at 32 each, but "
        f"{' and '.join(wrong)} {belong} to another model; set {them} to auto to follow the model"
    )


def warn(scenario: Scenario, parameters: int | None) -> None:
    """Warn of bits and cycles that contradict the model, of so many parameters where there is one, and of a channel
    whose mean is not 1; once in a process.
    """
    if parameters is not None and (found := contradiction(scenario, parameters)):
        _warn_once(found)
    channel = scenario.world.channel
    ours = type(channel) in CHANNELS.ours.values()
    if not ours and not channel.needs_links and (wrong := wrong_mean(by_itself(channel)[0])):
        _warn_once(
            f"world.channel: of {channel.plugin_name()} {wrong} over 500 devices and 40 rounds; it must be 1, "
            "since it is a factor on the mean gain β"
        )


@lru_cache
def _warn_once(sentence: str) -> None:
    logging.getLogger("feelstream").warning(sentence)


def _numbers(scenario: Scenario) -> tuple[Any, ...]:
    return scenario.data.dataset, scenario.learning.model, scenario.radio.update_bits, scenario.cpu.cycles


@lru_cache(maxsize=1)
def _numbers_of_presets() -> frozenset[tuple[Any, ...]]:
    return frozenset(_numbers(preset(name)) for name in presets())
