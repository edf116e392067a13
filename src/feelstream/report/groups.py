"""Which configurations stand together: in a panel of a paper, on one chart of a page, or along a field that was varied.

All of it is data: label of each arm, and what a legend calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from feelstream.experiment import Arm, Plan
from feelstream.experiment.measures import differing
from feelstream.experiment.store import differing_fields
from feelstream.scenario.fields import flat


@dataclass(frozen=True)
class Curve:
    """One line of a panel: an arm of the plan, and what the legend calls it."""

    arm: str
    name: str


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: a quantity by round, for several arms.

    Attributes:
        key: Number of the figure and letter, "1a"; what may follow is not shown: "1a-with-data".
        setting: The data, in words.
        quantity: A column of the rounds table.
        curves: One for each arm.
    """

    key: str
    setting: str
    quantity: str
    curves: tuple[Curve, ...]

    @property
    def letter(self) -> str:
        return self.key.lstrip("0123456789")[:1]


@dataclass(frozen=True)
class PanelFigure:
    """A figure of a paper: its panels share a legend.

    Attributes:
        key: As files are called: "fig1".
        title: "Figure 1".
        caption: What stands under it.
        panels: From left to right.
    """

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Group:
    """Arms that are shown together, because they share a world: label of each, and its name in the legend."""

    title: str
    arms: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Varied:
    """A numeric field that arms differ in, and the arms along it: name of the line → (value, arm) in order; and arms
    that have no such field, as a policy without V.
    """

    field: str
    lines: dict[str, list[tuple[float, str]]]
    without: tuple[str, ...] = ()


def by_panel(figures: Sequence[PanelFigure]) -> list[Group]:
    """The arms that panels show together; panels of the same arms share a group."""
    panels: dict[tuple[tuple[str, str], ...], list[Panel]] = {}
    for figure in figures:
        for panel in figure.panels:
            panels.setdefault(tuple((curve.arm, curve.name) for curve in panel.curves), []).append(panel)
    return [
        Group(
            f"Figure{'s' * (len(shared) > 1)} {' and '.join(panel.key for panel in shared)}: {shared[0].setting}", arms
        )
        for arms, shared in panels.items()
    ]


def by_world(plan: Plan) -> list[Group]:
    """Arms that differ in their policy alone; their names leave out what the title of the group says."""
    worlds: dict[str, list[Arm]] = {}
    for arm in plan.arms:
        world = {section: table for section, table in arm.scenario.as_dict().items() if section != "policy"}
        worlds.setdefault(repr(world), []).append(arm)
    settings = [flat(arms[0].scenario.as_dict()) for arms in worlds.values()]
    shown = [field for field in differing_fields(settings) if not field.startswith("policy.")]
    titles = [", ".join(f"{field} = {own[field]}" for field in shown if field in own) for own in settings]
    return [
        Group(title or "All configurations", _named(arms, own))
        for title, own, arms in zip(titles, settings, worlds.values(), strict=True)
    ]


def _named(arms: Sequence[Arm], settings: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Label and name of each arm: of `random devices=20`, only `random` where all arms of the group have 20 devices."""
    shared = {f"{name}={value}" for key, value in settings.items() for name in (key, key.rpartition(".")[2])
              if not key.startswith("policy.")}  # fmt: skip
    names = [" ".join(word for word in name.split(" ") if word not in shared)
             for name in differing([arm.label for arm in arms]).values()]  # fmt: skip
    if len(set(names)) < len(arms) or not all(names):
        names = [arm.label for arm in arms]
    return tuple((arm.label, name) for arm, name in zip(arms, names, strict=True))


def varied(plan: Plan) -> list[Varied]:
    """Every numeric field with several values among arms that are otherwise the same, policy apart."""
    settings = {arm.label: flat(arm.scenario.as_dict()) for arm in plan.arms}
    axes = []
    for field in dict.fromkeys(field for table in settings.values() for field in table):
        lines: dict[str, list[tuple[float, str]]] = {}
        for arm in plan.arms:
            own = settings[arm.label]
            value = own.get(field)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            rest = repr(sorted((name, str(entry)) for name, entry in own.items() if name != field))
            lines.setdefault(rest, []).append((float(value), arm.label))
        several = {_name(plan, points, field): sorted(points) for points in lines.values() if len(points) > 1}
        if several:
            without = tuple(label for label, own in settings.items() if field not in own)
            axes.append(Varied(field, several, without))
    return axes


def _name(plan: Plan, points: Sequence[tuple[float, str]], field: str) -> str:
    """What the arms of a line have in common: their label without the field that differs."""
    arm = plan.arm(points[0][1])
    short = field.removeprefix("policy.")
    words = [word for word in arm.label.split() if not word.startswith((f"{field}=", f"{short}="))]
    return " ".join(words) or arm.scenario.policy.plugin_name()


def same_budget_j(plan: Plan, group: Group | None = None) -> float | None:
    """The budget of every device of every arm, or of those of a group, if it is one number."""
    arms = plan.arms if group is None else [plan.arm(label) for label, _ in group.arms]
    budgets = {arm.scenario.system.energy_budget_j for arm in arms}
    first = budgets.pop()
    return None if budgets or isinstance(first, tuple) else float(first)
