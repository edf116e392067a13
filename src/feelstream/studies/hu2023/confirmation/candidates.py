"""What is confirmed: the literal specification and the fitted one, each under both readings of fresh data.

Both were fixed before a run with one of the seeds 2000 to 2019 was made. `literal` was chosen by rules that look at no
claim on learning: the paper's own definition of fresh data, the width in its labels, the training of the classic
example with its number of parameters; only T is fitted, to the energy savings. `fitted` are the presets `paper-*`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from feelstream.scenario import Scenario
from feelstream.studies.hu2023 import paper

Settings = Literal["literal", "fitted"]
Fresh = Literal["per_round", "since_use"]

LITERAL = (
    "system.rounds=25",
    "data.fresh=per_round",
    "data.arrivals.sigma=0.125",
    "learning.local.steps=24",
    "learning.local.batch=64",
    "learning.local.lr=0.01",
    "learning.local.momentum=0.5",
)
CHANGES: dict[Settings, tuple[str, ...]] = {"literal": LITERAL, "fitted": ()}
TESTED = {"literal": "learning.eval_every=3", "fitted": "learning.eval_every=4"}  # about ten times a run
SEEDS = range(2000, 2020)


class Specified(Protocol):
    """A specification of all that the paper leaves open, as the table names it."""

    @property
    def settings(self) -> str: ...
    @property
    def fresh(self) -> str: ...
    def scenario(self, label: str) -> Scenario: ...


@dataclass(frozen=True)
class Candidate:
    """One of those that were fixed before any search."""

    settings: Settings
    fresh: Fresh

    def __str__(self) -> str:
        return f"{self.settings}, {self.fresh}"

    @property
    def overrides(self) -> tuple[str, ...]:
        return (*CHANGES[self.settings], f"data.fresh={self.fresh}", TESTED[self.settings])

    def scenario(self, label: str) -> Scenario:
        """The scenario of an arm of the paper's figures."""
        return paper.scenario(label, self.overrides)


# The literal one first; each with the reading of fresh data that its settings were chosen with first.
CANDIDATES = (
    Candidate("literal", "per_round"),
    Candidate("literal", "since_use"),
    Candidate("fitted", "since_use"),
    Candidate("fitted", "per_round"),
)


def figures() -> list[str]:
    """Labels of all arms of the paper's own figures."""
    shown = (paper.FIGURES[key] for key in ("fig1", "fig2", "fig3"))
    return list(dict.fromkeys(curve.arm for figure in shown for panel in figure.panels for curve in panel.curves))


def widths() -> list[str]:
    """Labels of the arms that compare proposed and random by the width of arrivals."""
    arms = (arm(setting, paper.SIZES[0]) for setting in ("iid", "3digit") for arm in (paper.proposed, paper.random))
    return [paper.at_width(label, width) for label in arms for width in paper.WIDTHS]


def without_empty() -> list[str]:
    """Labels of figure 1 where only devices that hold data are eligible."""
    return list(dict.fromkeys(c.arm for panel in paper.FIGURES["fig1-with-data"].panels for c in panel.curves))
