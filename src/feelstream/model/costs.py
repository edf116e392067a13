"""What a round costs each device: cycles, bits of its update, time and energy of receiving the model.

A cost rule is picked by name, `[costs.rule] kind = "…"`. Ours, `settings`, says what the fields of a scenario say; a
user's own may say anything of each device and round.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from feelstream.arrays import Frozen, Ints, LabelCounts, Reals
from feelstream.guard import Array, One, Out, ask
from feelstream.model.system import System
from feelstream.plugins import LEAST, MOST, Kind, Plugin


@dataclass(frozen=True)
class CostContext(Frozen):
    """What is known when a round begins.

    Attributes:
        system: Constants of the run, as the fields of the scenario give them.
        round: t, from 1.
        f_hz: (K,) frequencies that devices have in this round.
        beta: (K,) mean gains.
        stored: (K,) |S_k|.
        fresh: (K,) |B_k|.
        fresh_labels: (K, m) the fresh samples by class.
    """

    system: System
    round: int
    f_hz: Reals
    beta: Reals
    stored: Ints
    fresh: Ints
    fresh_labels: LabelCounts


@dataclass(frozen=True)
class RoundCosts:
    """What a round costs, (K,) each; None: as the fields of the scenario say.

    Attributes:
        cycles: c_k of local training; > 0.
        update_bits: S_k of the update; > 0.
        download_s: T_down,k of receiving the model; ≥ 0. A device with no time left is not available.
        download_j: E_down,k of the same; ≥ 0.
    """

    cycles: Reals | None = None
    update_bits: Reals | None = None
    download_s: Reals | None = None
    download_j: Reals | None = None


WORK, SPENT = Array(least=LEAST, most=MOST, none=True), Array(least=0, most=MOST, none=True)


def keeps_its_promises(rule: CostRule, found: RoundCosts, seen: CostContext, rng: np.random.Generator) -> str | None:
    """What its flags say to other code."""
    if rule.keeps_bits and found.update_bits is not None:
        return "says keeps_bits, and gave update_bits"
    if not rule.of_settings:
        return None
    usual = cycles_by_data(seen.system, seen.stored)
    alike = found.cycles is usual if usual is None or found.cycles is None else np.array_equal(found.cycles, usual)
    others = (found.update_bits, found.download_s, found.download_j)
    if alike and all(each is None for each in others):
        return None
    return "says of_settings, and gave what the fields of the scenario do not say"


def cycles_by_data(system: System, stored: Ints) -> Reals | None:
    """(K,) c_k of devices that hold so many samples, at least one; None where c does not follow them."""
    return system.cycles_per_sample * np.maximum(stored, 1) if system.cycles_per_sample else None


class CostRule(Plugin):
    """What a round costs each device, as a function of what is known when it begins."""

    plugin_field: ClassVar[str] = "costs.rule"
    contract: ClassVar[Mapping[str, Out]] = {
        "costs": Out(
            One(RoundCosts, cycles=WORK, update_bits=WORK, download_s=SPENT, download_j=SPENT), keeps_its_promises
        )
    }
    plugin_flags: ClassVar[tuple[str, ...]] = ("of_settings", "keeps_bits")

    of_settings: ClassVar[bool] = False  # the fields of a scenario say it all, so nothing of it is stored
    keeps_bits: ClassVar[bool] = False  # never gives update_bits: policies that plan with equal updates may be used

    @abstractmethod
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        """Of this round. rng: keyed by seed and round, the only source of chance."""


class AsSettings(CostRule):
    """What the fields of the scenario say: c_k(t) = cycles_per_sample·max(|S_k|, 1) where that field is above 0."""

    tag: ClassVar[str] = "settings"
    of_settings: ClassVar[bool] = True
    keeps_bits: ClassVar[bool] = True

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(cycles=cycles_by_data(seen.system, seen.stored))


COST_RULES = Kind("cost", "cost_rules", CostRule, (AsSettings,))


def system_of_round(rule: CostRule, seen: CostContext, rng: np.random.Generator) -> System:
    """The system as it is in this round."""
    found = ask(rule, "costs", seen, rng, at=seen.round, K=seen.system.devices)
    return with_costs(seen.system, found, own=not rule.of_settings, stored=seen.stored)


def with_costs(system: System, found: RoundCosts, own: bool, stored: Ints) -> System:
    """The system with these costs. own: they are none that the fields of the scenario tell."""
    if not own:
        return system if found.cycles is None else replace(system, cycles=found.cycles)
    by_data = cycles_by_data(system, stored)
    return replace(
        system,
        own_costs=True,
        cycles=_given(found.cycles, system.cycles if by_data is None else by_data),
        device_bits=_given(found.update_bits, system.device_bits),
        download_s=_given(found.download_s, system.download_s),
        download_j=_given(found.download_j, system.download_j),
    )


def _given(found: Reals | None, usual: Reals) -> Reals:
    return usual if found is None else found.astype(float)
