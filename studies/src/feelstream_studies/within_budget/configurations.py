"""What is run: scenarios × policies, with everyone trained in every round as the reference.

The settings of `balanced_joint` and of the server were chosen on seeds 100 to 105 and 1000 to 1004 of these scenarios;
seeds 3000 to 3019, 4000 to 4019, 6000 to 6009, 7000 to 7019, 8000 to 8019 and 9000 to 9019 have shown what was wrong
with earlier ones. Seeds 11000 to 11019 are those of the results with longer steps; others are to be taken for new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from feelstream.studies.plans import Arm, Plan, arms, load


@dataclass(frozen=True)
class Setting:
    """A preset, and what its runs change."""

    preset: str
    changes: tuple[str, ...]


FEW = 5  # seeds of every policy but those that the margins are about
# A test of the accuracy takes as long as several rounds of training, so it is not made in every round.
SCENARIOS: dict[str, Setting] = {
    "paper-3digit": Setting("paper-3digit", ("learning.eval_every=4",)),
    "paper-iid": Setting("paper-iid", ("learning.eval_every=4",)),
    "paper-2digit": Setting("paper-2digit", ("learning.eval_every=4",)),
    "fashion-3digit": Setting("paper-3digit", ("learning.eval_every=4", "data.dataset=fashion-mnist")),
    "stress": Setting("stress", ("learning.eval_every=4",)),
    "har": Setting("har", ("learning.eval_every=10",)),
    "long-iid": Setting("long-iid", ("learning.eval_every=20",)),
}
REFERENCE = "select_all"
# A configuration is a policy, or a policy and a server that makes more of what few devices send.
WITH = " with "
SERVERS = {
    "memory": ("learning.server.kind=smoothed", "learning.server.inner.kind=remembered"),
    "smoothing": ("learning.server.kind=smoothed",),
    "longer steps": (
        "learning.server.kind=smoothed",
        "learning.server.inner.kind=limited",
        "learning.server.inner.inner.kind=remembered",
        "learning.server.inner.inner.server_learning_rate=1.4",
    ),
}
PLAIN = "balanced_joint(size=K)"
OURS = f"{PLAIN}{WITH}memory"
LONGER = f"{PLAIN}{WITH}longer steps"
EVERYONE_LONGER = f"{REFERENCE}{WITH}longer steps"  # whoever trains, the server may step further: the fair reference
RUNNING = "balanced_joint(size=K,pace=running)"
SIZES = "balanced_joint(size=K,knows=sizes)"
# K stands for the number of devices: how many train is then left to the budget.
POLICIES = (
    REFERENCE, OURS, PLAIN, f"{REFERENCE}{WITH}memory", f"{REFERENCE}{WITH}smoothing", RUNNING, SIZES, "balanced",
    "lyapunov", f"lyapunov{WITH}memory", "lyapunov_joint", LONGER, EVERYONE_LONGER,
)  # fmt: skip
ALL_SEEDS = (REFERENCE, PLAIN, OURS, LONGER, EVERYONE_LONGER)


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
    for name, setting in SCENARIOS.items():
        changes = [*setting.changes, *overrides]
        devices = load(setting.preset, changes).system.devices
        for policy in POLICIES:
            name_of, _, server = policy.replace("=K", f"={devices}").partition(WITH)
            [own] = arms(setting.preset, [name_of], [*changes, *(SERVERS[server] if server else ())])
            most = None if policy in ALL_SEEDS else FEW
            found.append(Arm(Key(name, policy).label, own.scenario, most))
    return Plan("within-budget", tuple(found), tuple(seeds))
