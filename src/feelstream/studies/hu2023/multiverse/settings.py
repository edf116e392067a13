"""What the paper leaves open, and a specification: one choice of each.

Readings are ways to understand a sentence of the paper; unstated settings are numbers that it does not give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from feelstream.errors import ScenarioError
from feelstream.plugins import did_you_mean
from feelstream.scenario.overrides import Override
from feelstream.studies.claims import Claim
from feelstream.studies.hu2023 import paper as reproduce

Kind = Literal["reading", "unstated", "learning"]
MOST_STEPS = 2000  # SGD steps of a device over a whole run, were it scheduled in every round


@dataclass(frozen=True)
class Factor:
    """A setting that may differ, its levels as a scenario file writes them, and the policies that never look at it."""

    name: str
    field: str
    values: tuple[str, ...]  # the first of a reading is the preset's
    title: str
    kind: Kind
    unread_by: Callable[[str], bool] = lambda label: False  # of a label of hu2023.paper

    def is_read_by(self, label: str) -> bool:
        """Whether it can change the runs of an arm of the paper: whether its policy and arrivals look at it."""
        return not self.unread_by(label) and bool(reproduce.fitting_overrides(label, [self.at(self.values[0])]))

    def at(self, value: str) -> Override:
        return Override(self.field, value, typed=True)


def _by_random(label: str) -> bool:
    return " random " in label


def _by_random_or_amount(label: str) -> bool:
    return _by_random(label) or label.endswith(" amount")


SETTINGS: tuple[Factor, ...] = (
    Factor("eligible", "data.eligible", ("any", "with_data"), "eligible devices", "reading"),
    Factor("fresh", "data.fresh", ("since_use", "per_round"), "fresh data", "reading", _by_random),
    Factor("empty_used", "data.empty_used", ("zero", "vector"), "nothing used yet", "reading", _by_random_or_amount),
    Factor("empty_fresh", "data.empty_fresh", ("zero", "vector"), "nothing fresh", "reading", _by_random_or_amount),
    Factor("bounds", "data.arrivals.bounds", ("truncate", "clip"), "arrival times", "reading"),
    Factor("T", "system.rounds", ("20", "30", "40", "60", "100", "300"), "rounds T", "unstated"),
    Factor("sigma", "data.arrivals.sigma", ("0.01", "0.02", "0.03", "0.05", "0.08", "0.125"), "width σ", "unstated"),
    Factor("steps", "learning.local.steps", ("5", "20", "50"), "SGD steps", "learning"),
    Factor("lr", "learning.local.lr", ("0.01", "0.02", "0.05"), "learning rate", "learning"),
    Factor("batch", "learning.local.batch", ("16", "32", "64"), "batch size", "learning"),
)
SCHEDULE = tuple(setting.name for setting in SETTINGS if setting.kind != "learning")  # what energy depends on
LEARNING = tuple(setting.name for setting in SETTINGS)


@dataclass(frozen=True, order=True)
class Specification:
    """One choice of each setting, in the order of SETTINGS; without learning, of those that the schedule needs."""

    choices: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, choices: Mapping[str, str]) -> Specification:
        return cls(tuple((name, choices[name]) for name in LEARNING if name in choices))

    def __getitem__(self, name: str) -> str:
        return dict(self.choices)[name]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.choices)

    @property
    def schedule(self) -> Specification:
        """Without the settings of learning, which neither the proposed policy nor random looks at."""
        return Specification(tuple((name, value) for name, value in self.choices if name in SCHEDULE))

    def read_by(self, label: str, settings: Mapping[str, Factor]) -> Specification:
        """The choices that can change the runs of an arm of the paper."""
        return Specification(tuple(choice for choice in self.choices if settings[choice[0]].is_read_by(label)))

    def overrides(self, settings: Mapping[str, Factor]) -> list[Override]:
        return [settings[name].at(value) for name, value in self.choices]


def read_by(claim: Claim, settings: Mapping[str, Factor]) -> list[str]:
    """The names of the settings that a claim can depend on: uniform arrivals, for instance, have no σ."""
    return [name for name in LEARNING if any(settings[name].is_read_by(label) for label in claim.arms)]


def is_played(choices: Mapping[str, str]) -> bool:
    """Whether T · steps is at most MOST_STEPS: long runs with many steps have long converged, and take hours."""
    return "steps" not in choices or int(choices["T"]) * int(choices["steps"]) <= MOST_STEPS


def chosen(levels: Iterable[str] = ()) -> dict[str, Factor]:
    """All settings by name, with the values of some replaced: `name=value,value,…`."""
    found = {setting.name: setting for setting in SETTINGS}
    for text in levels:
        name, equals, values = text.partition("=")
        name, split = name.strip(), tuple(value.strip() for value in values.split(",") if value.strip())
        if name not in found:
            raise ScenarioError(
                f"--levels {name}: there is no such setting; {did_you_mean(name, list(found))}"
                f"allowed: {', '.join(found)}"
            )
        if not equals or not split or len(set(split)) < len(split):
            raise ScenarioError(f"--levels '{text}' must read name=value,value,… with different values, as in T=20,40")
        old = found[name]
        found[name] = replace(old, values=split)
        for value in split:  # a wrong value is named before anything is played
            reproduce.scenario(reproduce.proposed("iid", 2), [old.at(value)])
    return found
