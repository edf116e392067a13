"""Settings that change while a run is under way: V, size and budget, each from a given round on.

A run is still a function of (scenario, seed, changes): run.json lists the changes, and `verify` heeds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from operator import attrgetter
from typing import Any

import numpy as np

from feelstream.errors import RunError, ScenarioError
from feelstream.scenario import Scenario
from feelstream.scenario.overrides import Override, as_text

BUDGET = "system.energy_budget_j"
CHANGEABLE = ("policy.V", "policy.size", BUDGET)


@dataclass(frozen=True, init=False)
class Change(Override):
    """From this round on, the field has this value: V, size or the energy budget.

    The value may be a number, or the text that would follow `--set field=`; `round` counts from 1.

    >>> Change(12, "V", 0.2)
    Change(field='policy.V', value='0.2', round=12)
    """

    round: int

    def __init__(self, round: int, field: str, value: Any) -> None:
        if isinstance(round, bool) or not isinstance(round, Integral):
            raise ScenarioError(f"a change begins in a round, as in Change(12, 'V', 0.2), not {round!r:.60}")
        field = next((each for each in CHANGEABLE if each.endswith(f".{field}")), field)
        super().__init__(field, value if isinstance(value, str) else as_text(value), typed=True)
        object.__setattr__(self, "round", int(round))

    @classmethod
    def parse(cls, text: str) -> Change:
        """`12:policy.V=0.2`.

        >>> Change.parse("12:policy.V=0.2")
        Change(field='policy.V', value='0.2', round=12)
        """
        round, colon, setting = text.partition(":")
        if not colon or "=" not in setting or not round.strip().isdecimal():
            raise ScenarioError(f"'{text}' must read round:section.field=value, for instance 12:policy.V=0.2")
        override = Override.parse(setting)
        return cls(int(round), override.field, override.value)

    def __str__(self) -> str:
        return f"{self.round}:{super().__str__()}"


def in_order(scenario: Scenario, changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes by round, each found to be possible; of two changes of one field in one round the later counts."""
    last = {(change.round, change.field): change for change in changes}
    ordered = tuple(last[key] for key in sorted(last))
    for change in ordered:
        if change.field not in CHANGEABLE:
            raise ScenarioError(f"{change.field}: cannot change during a run; allowed: {', '.join(CHANGEABLE)}")
        if not 1 <= change.round <= scenario.system.rounds:
            raise ScenarioError(
                f"{change.field}: must change in a round from 1 to {scenario.system.rounds}, not {change.round}"
            )
        changed = scenario_in(scenario, ordered, change.round)
        if change.field == BUDGET and not _some_have_the_budget(changed):
            raise ScenarioError(f"{BUDGET}: cannot change here, since [devices] gives every device a budget of its own")
    return ordered


def _some_have_the_budget(scenario: Scenario) -> bool:
    """Whether any device has the budget of [system], and none of its own by its class or in the table of devices."""
    system = scenario.system
    if not scenario.devices.classes and not scenario.devices.table:
        return True
    budgets = np.broadcast_to(system.energy_budget_j, system.devices)
    changed = scenario.overridden([Override(BUDGET, tuple(np.where(budgets == 1.0, 2.0, 1.0).tolist()))])
    return not np.array_equal(scenario.population.energy_budget_j, changed.population.energy_budget_j)


def scenario_in(scenario: Scenario, changes: Sequence[Change], round: int) -> Scenario:
    """The scenario as it stands in a round."""
    due = [change for change in changes if change.round <= round]
    return scenario.overridden(due) if due else scenario


def as_list(scenario: Scenario, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """For run.json: round, field and value, the latter as a number or a list."""
    return [
        {
            "round": change.round,
            "field": change.field,
            "value": attrgetter(change.field)(scenario_in(scenario, changes, change.round)),
        }
        for change in changes
    ]


def from_list(listed: Any) -> tuple[Change, ...]:
    """The changes that run.json lists. No other field than those that may change: some of the others name code."""
    try:
        found = tuple(Change(int(each["round"]), str(each["field"]), as_text(each["value"])) for each in listed)
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise RunError("run.json is damaged: its list of changes cannot be read") from problem
    for change in found:
        if change.field not in CHANGEABLE:
            raise RunError(f"run.json is damaged: {change.field} cannot change during a run")
    return found
