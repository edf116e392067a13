"""Which configurations belong on one chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from feelstream.experiment import Arm, Plan
from feelstream.experiment.panels import Panel, PanelFigure
from feelstream.report.html.charts import Group
from feelstream.scenario.fields import flat


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
    return [
        Group(_title(own, settings), _named(arms, own)) for own, arms in zip(settings, worlds.values(), strict=True)
    ]


def _named(arms: Sequence[Arm], settings: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Label and name of each arm: of `random devices=20`, only `random` where all arms of the group have 20 devices."""
    shared = {f"{name}={value}" for key, value in settings.items() for name in (key, key.rpartition(".")[2])
              if not key.startswith("policy.")}  # fmt: skip
    names = [" ".join(word for word in arm.label.split(" ") if word not in shared) for arm in arms]
    if len(set(names)) < len(arms) or not all(names):
        names = [arm.label for arm in arms]
    return tuple((arm.label, name) for arm, name in zip(arms, names, strict=True))


def _title(settings: dict[str, Any], others: list[dict[str, Any]]) -> str:
    """The settings in which this world differs from any other."""
    differing = [
        f"{key} = {value}"
        for key, value in settings.items()
        if not key.startswith("policy.") and any(other.get(key) != value for other in others)
    ]
    return ", ".join(differing) or "All configurations"
