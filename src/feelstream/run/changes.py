"""Settings that change while a run is under way: V, size and budget, each from a given round on.

A run is still a function of (scenario, seed, changes): run.json lists the changes, and `verify` heeds them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from feelstream.errors import ScenarioError
from feelstream.plugins import STORED, Inert
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict
from feelstream.scheduling import RoundRecord
from feelstream.simulation import Simulation

CHANGEABLE = ("policy.V", "policy.size", "system.energy_budget_j")


@dataclass(frozen=True)
class Change:
    """From this round on, the field has this value (as text: what follows `--set field=`)."""

    round: int
    field: str
    value: str

    @staticmethod
    def parse(text: str) -> Change:
        """`12:policy.V=0.2`.

        >>> Change.parse("12:policy.V=0.2")
        Change(round=12, field='policy.V', value='0.2')
        """
        round, colon, setting = text.partition(":")
        field, equals, value = (part.strip() for part in setting.partition("="))
        if not colon or not equals or not round.strip().isdecimal():
            raise ScenarioError(f"'{text}' must read round:section.field=value, for instance 12:policy.V=0.2")
        return Change(int(round), field, value)

    def __str__(self) -> str:
        return f"{self.round}:{self.field}={self.value}"


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
        scenario_in(scenario, ordered, change.round)
    return ordered


def scenario_in(scenario: Scenario, changes: Sequence[Change], round: int) -> Scenario:
    """The scenario as it stands in a round."""
    due = [f"{change.field}={change.value}" for change in changes if change.round <= round]
    if due and isinstance(scenario.policy, Inert):  # of a stored run, whose policy is not imported to show it
        table = scenario.as_dict()
        for field, _, value in (text.partition("=") for text in due):
            section, name = field.split(".")
            table[section][name] = tomllib.loads(f"value = {value}")["value"]
        return Scenario.of(table, STORED)
    return from_dict(scenario.as_dict(), due) if due else scenario


def as_list(scenario: Scenario, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """For run.json: round, field and value, the latter as a number or a list."""
    listed = []
    for change in changes:
        section, name = change.field.split(".")
        value = getattr(getattr(scenario_in(scenario, changes, change.round), section), name)
        listed.append({"round": change.round, "field": change.field, "value": value})
    return listed


def from_list(listed: Iterable[dict[str, Any]]) -> tuple[Change, ...]:
    """The changes that run.json lists."""
    return tuple(Change(int(each["round"]), str(each["field"]), _text(each["value"])) for each in listed)


def _text(value: Any) -> str:
    return f"[{', '.join(map(repr, value))}]" if isinstance(value, list | tuple) else repr(value)


class ChangingSimulation:
    """A simulation that takes up each change when its round comes; a player like any other."""

    def __init__(self, simulation: Simulation, changes: Sequence[Change] = ()) -> None:
        self.simulation, self.changes = simulation, tuple(changes)
        self.scenario, self.timings, self.round = simulation.scenario, simulation.timings, simulation.round

    def step(self) -> RoundRecord:
        present = scenario_in(self.scenario, self.changes, self.round + 1)
        self.simulation.schedule_by(present)
        record = self.simulation.step()
        self.round = self.simulation.round
        return record

    def snapshot(self) -> dict[str, NDArray]:
        return self.simulation.snapshot()

    def restore(self, state: dict[str, NDArray]) -> None:
        self.simulation.restore(state)
        self.round = self.simulation.round
