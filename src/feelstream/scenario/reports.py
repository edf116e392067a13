"""What a scenario says of the reports that a policy may ask for, and what of it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from feelstream.errors import ScenarioError
from feelstream.learning.probes import PROBES
from feelstream.model.reporting import Slot, needed_s
from feelstream.plugins import Count, NonNegative, Positive, Settings
from feelstream.policies import Policy

if TYPE_CHECKING:
    from feelstream.scenario.settings import Scenario


class ReportsSettings(Settings):
    """[reports]"""

    slot_s: Positive = Field(
        default=0.5,
        description="length of the slot at the start of a round in which devices report, s; > 0, below system.round_s",
    )
    cycles: NonNegative = Field(
        default=20966400.0, description="CPU cycles of a report, beside those of training where it takes that; ≥ 0"
    )
    bits: Positive = Field(default=32.0, description="size of a device's report, bit; > 0")
    samples: Count = Field(default=32, description="samples that a device's report is made of, at most; ≥ 1")

    def slot(self, policy: Policy) -> Slot | None:
        """The slot, where the policy asks for reports."""
        return Slot(self.slot_s, self.cycles, self.bits, policy.trains_first) if policy.asks_reports else None


def check_needs(scenario: Scenario) -> None:
    """What the policy needs must be known, and found in this scenario."""
    policy = scenario.policy
    needs, name = policy.needs, policy.plugin_name()
    if not isinstance(needs, frozenset | set) or not all(isinstance(need, str) for need in needs):
        raise ScenarioError(f"policy '{name}': needs must be a set of names, not {needs!r:.60}")
    if not policy.asks_reports:
        return
    for need in sorted(policy.probes):
        try:
            probe = PROBES.instance(need)
        except ScenarioError as problem:
            raise ScenarioError(f"policy '{name}' needs something that does not exist: {problem}") from problem
        if need not in PROBES.ours and need not in _named_with(policy):
            raise ScenarioError(
                f"policy '{name}' needs '{need}', which must be in the policy's own file or be named in one of its "
                "fields, so that a run knows its code"
            )
        if probe.needs_learner and scenario.learning.engine == "none":
            raise ScenarioError(
                f"learning.engine: must not be none for policy '{name}', which asks devices for {need}, and that "
                "takes a model"
            )
    if scenario.costs.download_bits:
        raise ScenarioError(
            f"costs.download_bits: must be 0 for policy '{name}', which asks for reports: what devices receive for one "
            "is not charged"
        )
    if not scenario.reports.slot_s < scenario.system.round_s:
        raise ScenarioError(
            f"reports.slot_s: must be below system.round_s = {scenario.system.round_s:g} for policy '{name}', which "
            f"asks for reports, not {scenario.reports.slot_s:g}"
        )


def _named_with(policy: Policy) -> list[str]:
    """Names of code that a run knows by the policy's name and fields."""
    here = _place(policy.plugin_name())
    own = [need for need in policy.probes if here and _place(need) == here]
    return [*own, *(value for value in dict(policy).values() if isinstance(value, str))]


def _place(name: str) -> str:
    """The file or module in which the object of a name is."""
    where = name.rpartition(":")[0]
    return str(Path(where).resolve()) if where.endswith(".py") else where


def check_deadlines(scenario: Scenario) -> None:
    """Deadlines of single devices must lie behind the slot."""
    slot, deadline_s = scenario.reports.slot(scenario.policy), scenario.population.deadline_s
    if slot and not (deadline_s > slot.slot_s).all():
        k = int(np.argmin(deadline_s))
        raise ScenarioError(
            f"devices.deadline_s: must be above reports.slot_s = {slot.slot_s:g} s for a policy that asks for reports, "
            f"not {deadline_s[k]:g} s of device {k}"
        )


def check_slot(scenario: Scenario) -> None:
    """Some device must be able to report in time, at the highest frequency and the mean gain."""
    system, fastest_hz = scenario.known_system(classes=1), scenario.population.frequency_high_hz
    slot = system.reports
    if slot is None:
        return
    needed = float(np.min(needed_s(slot, system, fastest_hz, np.ones(system.devices))))
    if not needed <= slot.slot_s:
        raise ScenarioError(
            f"reports.slot_s: no report can ever fit a slot of {slot.slot_s:g} s, since computing at the highest "
            f"frequency and sending with {system.devices} on the band takes {needed:.3g} s"
        )
    most_j = float(np.max(system.compute_energy_j(fastest_hz, None, slot.cycles)))
    if not most_j <= 1e100:
        raise ScenarioError(f"reports.cycles: computing for a report must take at most 1e+100 J, not {most_j:g} J")
