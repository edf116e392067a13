"""Which arms belong on one chart."""

from __future__ import annotations

from typing import Any

from feelstream.experiment import Arm, Plan
from feelstream.experiment import paper as reproduce
from feelstream.report.html.charts import Group


def groups(plan: Plan) -> list[Group]:
    """The paper's panels where the plan was made for them; else arms that differ in their policy alone."""
    return _of_the_paper(plan) or _by_world(plan)


def _of_the_paper(plan: Plan) -> list[Group]:
    panels: dict[tuple[tuple[str, str], ...], list[reproduce.Panel]] = {}
    for figure in reproduce.figures_of(plan):
        for panel in figure.panels:
            panels.setdefault(tuple((curve.arm, curve.name) for curve in panel.curves), []).append(panel)
    return [
        Group(
            f"Figure{'s' * (len(shared) > 1)} {' and '.join(panel.key for panel in shared)}: {shared[0].setting}", arms
        )
        for arms, shared in panels.items()
    ]


def _by_world(plan: Plan) -> list[Group]:
    worlds: dict[str, list[Arm]] = {}
    for arm in plan.arms:
        world = {section: table for section, table in arm.scenario.as_dict().items() if section != "policy"}
        worlds.setdefault(repr(world), []).append(arm)
    flat = [reproduce.flat(arms[0].scenario.as_dict()) for arms in worlds.values()]
    return [
        Group(_title(settings, flat), tuple((arm.label, arm.label) for arm in arms))
        for settings, arms in zip(flat, worlds.values(), strict=True)
    ]


def _title(settings: dict[str, Any], others: list[dict[str, Any]]) -> str:
    """The settings in which this world differs from any other."""
    differing = [
        f"{key} = {value}"
        for key, value in settings.items()
        if not key.startswith("policy.") and any(other.get(key) != value for other in others)
    ]
    return ", ".join(differing) or "All arms"
