"""Does V = "auto" reach the front of hand-tuned V? Accuracy at equal energy, budget by budget, in pairs over seeds.

    python benchmarks/auto_v.py            5 seeds of six cases, 210 runs
    python benchmarks/auto_v.py --smoke    2 seeds of `tiny`

For each scenario and budget: V = auto once, and every V of a grid, all with `cap`, on the same worlds. Of the grid, the
weights that no other one beats in both mean energy and mean accuracy are the front. At the mean energy of auto the
front's accuracy is interpolated over the logarithm of energy, with the same coefficients for every seed, so that auto −
front is one number per seed and has a t interval. Where auto spends less than every V of the grid, no V reaches that
energy, and the cheapest of the front is what auto is set against.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import feelstream as fs
from feelstream.experiment.plan import Arm, Plan
from feelstream.experiment.runner import execute
from feelstream.experiment.runs import of_rounds
from feelstream.experiment.statistics import Interval, interval, pareto_front

GRID = (1e-4, 1e-3, 1e-2, 5e-2, 2e-1, 1.0)
ACCURACIES = {"late_accuracy": "accuracy", "accuracy_area": "mean accuracy"}  # columns of `of_rounds`, and their names


@dataclass(frozen=True)
class Case:
    """A scenario at a budget, J per device and round."""

    preset: str
    budget_j: float
    settings: tuple[str, ...]

    def plan(self, seeds: range) -> Plan:
        common = [
            "policy.name=lyapunov", "policy.cardinality=cap", "trace.level=rounds",
            f"system.energy_budget_j={self.budget_j!r}", *self.settings,
        ]  # fmt: skip
        arms = [
            Arm(f"V={V}", fs.preset(self.preset, [*common, f"policy.V={V}"]))
            for V in ("auto", *(f"{V!r}" for V in GRID))
        ]
        return Plan(f"{self.preset} at {self.budget_j * 1e3:g} mJ", tuple(arms), tuple(seeds))


PAPER, LONG = ("learning.eval_every=4",), ("learning.eval_every=30",)
CASES = [
    *(Case("paper-3digit", budget, PAPER) for budget in (1e-4, 5e-4, 1e-2)),
    *(Case("long-iid", budget, LONG) for budget in (1e-4, 5e-4, 5e-3)),
]
SMOKE = [Case("tiny", budget, ()) for budget in (5e-4, 1e-1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/auto-v"))
    options = parser.parse_args()
    seeds = range(2 if options.smoke else options.seeds)
    for case in SMOKE if options.smoke else CASES:
        plan = case.plan(seeds)
        results = execute(plan, options.out / plan.name.replace(" ", "-"), workers=options.workers)
        print(f"\n{plan.name}, {len(seeds)} seeds", flush=True)
        report(of_rounds(results.rounds()), [arm.label for arm in plan.arms])


def report(runs: pl.DataFrame, arms: list[str]) -> None:
    """Every arm's energy and accuracy, and auto against the front by either accuracy."""
    for arm in arms:
        own = runs.filter(arm=arm)
        values = "".join(f"  {name} {_of(interval(own[column]), 100):>15} %" for column, name in ACCURACIES.items())
        print(f"  {arm:9}  energy {_of(interval(own['energy_j']), 1e3):>15} mJ{values}")
    for column, name in ACCURACIES.items():
        energy_j, accuracy = (by_seed(runs, arms, wanted) for wanted in ("energy_j", column))
        gap, names, overlap = against_front(energy_j, accuracy, arms[1:])
        where = "at equal energy" if overlap else "no V is as cheap; against the cheapest"
        found = "one seed" if gap.low is None or gap.high is None else f"[{gap.low * 100:+.2f}, {gap.high * 100:+.2f}]"
        print(f"  auto − front, {name}: {gap.mean * 100:+.2f} points {found}  ({where}: {', '.join(names)})")


def by_seed(runs: pl.DataFrame, arms: list[str], column: str) -> np.ndarray:
    """(arms, seeds)."""
    return np.array([runs.filter(arm=arm).sort("seed")[column].to_numpy() for arm in arms])


def against_front(energy_j: np.ndarray, accuracy: np.ndarray, names: list[str]) -> tuple[Interval, list[str], bool]:
    """Auto, the first row, minus the front of the others at its energy; which of them; whether they bracket it."""
    mean_j = energy_j[1:].mean(axis=1)
    front = np.flatnonzero(pareto_front(mean_j, accuracy[1:].mean(axis=1)))
    front = front[np.argsort(mean_j[front])]
    place, spent = np.log(mean_j[front]), np.log(energy_j[0].mean())
    # The interpolation is linear in the accuracies, so each weight of the front has one coefficient.
    coefficient = np.array([np.interp(spent, place, unit) for unit in np.eye(len(front))])
    gap = interval(accuracy[0] - coefficient @ accuracy[1:][front])
    used = [names[front[i]] for i in np.flatnonzero(coefficient)]
    return gap, used, bool(place[0] <= spent)


def _of(value: Interval, scale: float) -> str:
    half = "" if value.half_width is None else f" ± {value.half_width * scale:.2f}"
    return f"{value.mean * scale:.2f}{half}"


if __name__ == "__main__":
    main()
