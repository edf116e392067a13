"""What the paper leaves open, as registered, and a specification: one choice of each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from feelstream.scenario import Scenario
from feelstream.studies.hu2023 import paper

SCHEDULE = ("eligible", "fresh", "sigma", "T")  # what decides about energy
SETTINGS = (*SCHEDULE, "reading", "training", "weight")
TITLES = {
    "eligible": "eligible devices", "fresh": "fresh data", "sigma": "width σ / T", "T": "rounds T",
    "reading": "other readings", "training": "local training", "weight": "V of figures 2, 3",
}  # fmt: skip
FIELDS = {
    "eligible": "data.eligible", "fresh": "data.fresh", "sigma": "data.arrivals.sigma", "T": "system.rounds",
}  # fmt: skip
DEFAULTS = {"reading": "cyclic", "training": "settling", "weight": "infinite"}


@cache
def registration() -> dict[str, Any]:
    text = (files("feelstream.studies.hu2023.multiverse") / "registration.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def seeds(of: str = "search") -> range:
    first, last = registration()["seeds"][of]
    return range(first, last + 1)


@cache
def levels(name: str) -> tuple[str, ...]:
    """The values of a setting, as registered."""
    tables = {"reading": "readings", "training": "training", "weight": "weight"}
    known = registration()
    return tuple(known[tables[name]] if name in tables else known["schedules"][name])


def _changes(name: str, value: str) -> tuple[str, ...]:
    if name in FIELDS:
        return (f"{FIELDS[name]}={value}",)
    tables = {"reading": "readings", "training": "training", "weight": "weight"}
    return tuple(registration()[tables[name]][value])


def looks_at(label: str, name: str, value: str) -> bool:
    """Whether a choice can change the runs of an arm of the paper."""
    by_random, by_amount = " random " in label, label.endswith(" amount")
    if name == "weight":
        return paper.is_blind(label)
    if name == "fresh":
        return not by_random
    if name == "sigma" or value == "clipped":
        return "uniform" not in label
    if value == "zero_vector":
        return not by_random and not by_amount
    return value != "equal_sizes" or "digit" in label


@dataclass(frozen=True, order=True)
class Specification:
    """One choice of each setting, in the order of SETTINGS."""

    eligible: str
    fresh: str
    sigma: str
    T: str
    reading: str = DEFAULTS["reading"]
    training: str = DEFAULTS["training"]
    weight: str = DEFAULTS["weight"]

    @property
    def choices(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in SETTINGS}

    def __str__(self) -> str:
        return " ".join(self.choices.values())

    @classmethod
    def parse(cls, text: str) -> Specification:
        return cls(*text.split())

    @property
    def schedule(self) -> Specification:
        return Specification(self.eligible, self.fresh, self.sigma, self.T)

    @property
    def steps(self) -> int:
        """SGD steps of a device over a whole run, were it scheduled in every round."""
        own = next(each for each in _changes("training", self.training) if "steps" in each)
        return int(self.T) * int(own.partition("=")[2])

    @cache  # noqa: B019 - specifications are few
    def read_by(self, label: str) -> Specification:
        """The same, with the first value of whatever cannot change the runs of an arm: arms that agree share runs."""
        kept = {name: value if looks_at(label, name, value) else _blank(name) for name, value in self.choices.items()}
        return Specification(**kept)

    def scenario(self, label: str, learning: bool) -> Scenario:
        """The scenario of an arm of the paper's figures."""
        own = [change for name in SETTINGS[:-1] for change in _changes(name, getattr(self.read_by(label), name))]
        weight = _changes("weight", self.weight) if paper.is_blind(label) else ()
        every = max(1, round(int(self.T) / registration()["race"]["tests"]))
        frame = (f"learning.eval_every={every}",) if learning else ("learning.engine=none",)
        return paper.scenario(label, ("trace.level=rounds", *frame, *own), weight)


def _blank(name: str) -> str:
    return DEFAULTS.get(name) or levels(name)[0]


@cache
def schedules() -> tuple[Specification, ...]:
    """Every combination of what decides about energy."""
    return tuple(Specification(*values) for values in product(*(levels(name) for name in SCHEDULE)))


@cache
def confirmed_ones() -> tuple[Specification, ...]:
    """Those that are confirmed by themselves, in the order of the confirmation."""
    return tuple(Specification(*each) for each in registration()["race"]["already"])


@cache
def already() -> frozenset[Specification]:
    return frozenset(confirmed_ones())
