"""Which change of a scenario would keep its energy budget: each is planned on the same world, none is guessed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from feelstream.errors import FeelstreamError
from feelstream.experiment.tuning import schedule_only
from feelstream.run import simulate
from feelstream.scenario import Scenario

# From the smallest change of what was asked for to the largest.
CHANGES = (
    ("policy.cardinality=cap",),
    ("policy.V=auto", "policy.cardinality=cap"),
    ("policy.size=1",),
    ("policy.name=lyapunov_joint",),
    ("policy.name=balanced_joint",),
)
MOST = 10_000  # devices × rounds that are planned; beyond, the joint policies take longer than a hint is worth
LEAST_SENT = 0.5  # updates per round: whoever never trains keeps every budget


@dataclass(frozen=True)
class Affordable:
    """Overrides of a scenario, and what it comes to with them."""

    overrides: tuple[str, ...]
    energy_j: float  # per device and round
    transmitted: int  # updates over the run

    @property
    def options(self) -> str:
        """As they are typed: --set policy.V=auto --set policy.cardinality=cap"""
        return " ".join(f"--set {override}" for override in self.overrides)


def affordable(scenario: Scenario, seed: int, budget_j: float) -> Affordable | None:
    """The first of CHANGES that spends at most budget_j per device and round over the run, and still trains.

    A change that leaves the scenario as it is, or that its policy has no field for, is passed over. Nothing is learned,
    so each takes moments; None where none keeps the budget, or where trying would take long.
    """
    if scenario.system.devices * scenario.system.rounds > MOST:
        return None
    for overrides, changed in _changed(scenario):
        try:
            rounds = simulate(schedule_only(changed), seed).rounds
        except FeelstreamError:  # a policy that cannot run in this world keeps no budget in it
            continue
        spent_j = float(rounds["energy_mean_cum_j"][-1])
        sent = int(rounds["transmitted"].sum())
        if spent_j <= budget_j and sent >= LEAST_SENT * len(rounds):
            return Affordable(overrides, spent_j, sent)
    return None


def _changed(scenario: Scenario) -> Iterator[tuple[tuple[str, ...], Scenario]]:
    """Each change that is possible, without what the scenario says already, and the scenario with it."""
    for overrides in CHANGES:
        changed = _with(scenario, *overrides)
        if changed is not None and changed != scenario:
            yield tuple(override for override in overrides if _with(scenario, override) != scenario), changed


def _with(scenario: Scenario, *overrides: str) -> Scenario | None:
    try:
        return scenario.overridden(overrides)
    except FeelstreamError:
        return None
