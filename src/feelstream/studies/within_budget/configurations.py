"""What is run: scenarios × policies, with everyone trained in every round as the reference.

The settings of `balanced_joint` were chosen on seeds 1000 to 1004 of paper-3digit and 1000 to 1002 of paper-iid;
results are to be taken on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from feelstream.experiment import Arm, Plan
from feelstream.experiment.comparison import arms
from feelstream.scenario.files import load

# Presets, and what their runs change. A test of the accuracy takes as long as several rounds of training.
SCENARIOS: dict[str, tuple[str, ...]] = {
    "paper-3digit": ("learning.eval_every=4",),
    "paper-iid": ("learning.eval_every=4",),
    "paper-2digit": ("learning.eval_every=4",),
    "stress": ("learning.eval_every=4",),
    "long-iid": ("learning.eval_every=20",),
    "har": ("learning.eval_every=10",),
}
REFERENCE = "select_all"
OURS = "balanced_joint(size=K)"
RUNNING = "balanced_joint(size=K,pace=running)"
SIZES = "balanced_joint(size=K,knows=sizes)"
# K stands for the number of devices: how many train is then left to the budget.
JOINT = "lyapunov_joint(size=K)"
POLICIES = (REFERENCE, OURS, RUNNING, SIZES, JOINT, "balanced", "lyapunov")
IMPOSSIBLE = {("stress", JOINT)}  # it plans for all K, who together never fit that band


@dataclass(frozen=True)
class Key:
    """One configuration; its label is its name in the results."""

    scenario: str
    policy: str

    @property
    def label(self) -> str:
        return f"{self.scenario} / {self.policy}"

    @staticmethod
    def of(label: str) -> Key:
        return Key(*label.split(" / "))


def plan(seeds: Sequence[int], overrides: Sequence[str] = ()) -> Plan:
    """Every policy in every scenario, with the table of devices, which tells who exceeded a budget."""
    found = []
    for name, changes in SCENARIOS.items():
        settings = [*changes, *overrides]
        devices = load(name, settings).system.devices
        for policy in (each for each in POLICIES if (name, each) not in IMPOSSIBLE):
            own = arms(name, [policy.replace("=K", f"={devices}")], settings)[0]
            found.append(Arm(Key(name, policy).label, own.scenario))
    return Plan("within-budget", tuple(found), tuple(seeds))
