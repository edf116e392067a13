"""What is run: two scenarios × energy laws × budgets × policies, nearly all of them without learning.

A law is scaled out, so that its shape is all that differs. With s = the mean energy of computing under the law over
that under the cubic one, at frequencies drawn evenly from the range of each,

    budget → s·budget,   V of lyapunov, lyapunov_joint and ocean, in J² → s²·V,   price of balanced, in 1/J → price/s

since energies that are all s times as large, with these, leave every decision as it was. The energy of the radio stays
what it is, so it weighs more where computing costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from feelstream.studies.plans import POLICIES, Arm, Plan, Scenario, load

SCENARIOS = ("paper-3digit", "stress")
BY_TEXT = "literal-3digit"
CUBIC = "cubic"
OWN_RANGE = " (own range)"  # of the name of a law: frequencies from the core's lowest point to its highest
LAWS = (CUBIC, "rk3399-a72", "hi3660-a53", f"gs101-x1{OWN_RANGE}")
# The scenario's budget is 3 % of what random scheduling spends (1.5 % in stress), and on a core pays no turn; one of
# half of what random spends can be kept.
BUDGETS = ("scenario", "half")
REFERENCE = "random"
# With half the budget: those that go by budgets, and whom they are compared with. What lyapunov_joint spends hardly
# depends on the budget.
BY_BUDGET = (REFERENCE, "lyapunov", "balanced_joint", "myopic_energy", "fedbacys")
# Which have nothing to go by where nothing is learned.
BY_MODEL = ("oort", "power_of_choice", "update_norm", "gradient_norm")
WEIGHED_IN_J2 = ("lyapunov", "lyapunov_joint", "ocean")
# Training takes thirty times as long as scheduling, so accuracy is measured for these only.
TRAINED = (REFERENCE, "lyapunov", "lyapunov_joint", "balanced", "greedy_energy")
TRAINED_ON = SCENARIOS[0]
TRAINED_UNDER = LAWS[:2]


@dataclass(frozen=True)
class Key:
    """One configuration; its label is its name in the results."""

    scenario: str
    budget: str
    law: str
    policy: str

    @property
    def label(self) -> str:
        return " / ".join((self.scenario, self.budget, self.law, self.policy))

    @property
    def trained(self) -> bool:
        where = self.scenario == TRAINED_ON and self.budget == BUDGETS[0] and self.law in TRAINED_UNDER
        return where and self.policy in TRAINED

    @staticmethod
    def of(label: str) -> Key:
        return Key(*label.split(" / "))


def policies(budget: str) -> tuple[str, ...]:
    return BY_BUDGET if budget == "half" else tuple(name for name in POLICIES.ours if name not in BY_MODEL)


def keys() -> list[Key]:
    """Those of the page, and the paper's policy with the settings that are read by the text."""
    by_text = [Key(BY_TEXT, BUDGETS[0], law, policy) for law in LAWS for policy in (REFERENCE, "lyapunov")]
    return by_text + [
        Key(scenario, budget, law, policy)
        for scenario in SCENARIOS
        for budget in BUDGETS
        for law in LAWS
        for policy in policies(budget)
    ]


def law_changes(law: str) -> list[str]:
    """`section.field=value` that set a law; points are discrete, as those of a governor are."""
    if law == CUBIC:
        return []
    profile = law.removesuffix(OWN_RANGE)
    own = ["cpu.frequency_hz=profile"] if law.endswith(OWN_RANGE) else []
    return ["cpu.energy.kind=voltage", "cpu.energy.points=discrete", f"cpu.profile={profile}", *own]


def plan(seeds: Sequence[int], overrides: Sequence[str] = ()) -> Plan:
    """Every configuration; a model is trained only where accuracy is measured, and no table of devices is kept."""

    def fixed(key: Key) -> tuple[str, ...]:
        learning = "learning.eval_every=4" if key.trained else "learning.engine=none"
        return (learning, "trace.level=rounds", *overrides)

    return Plan("silicon", tuple(Arm(key.label, scenario_of(key, fixed(key))) for key in keys()), tuple(seeds))


@cache
def _with_law(scenario: str, law: str, overrides: tuple[str, ...]) -> Scenario:
    return load(scenario, [*overrides, *law_changes(law)])


def scenario_of(key: Key, overrides: Sequence[str]) -> Scenario:
    own = _with_law(key.scenario, key.law, tuple(overrides))
    cubic = _with_law(key.scenario, CUBIC, tuple(overrides))
    mean_j = mean_energy_j(key.scenario, key.law, tuple(overrides))
    s = mean_j / mean_energy_j(key.scenario, CUBIC, tuple(overrides))
    found = own.with_(policy=key.policy)
    size, devices = cubic.policy.size, cubic.system.devices
    given_j = s * float(cubic.known_system(1).energy_budget_j[0])
    budget_j = 0.5 * size / devices * mean_j if key.budget == "half" else given_j
    changes: dict[str, float] = {"system.energy_budget_j": budget_j}
    if key.policy in WEIGHED_IN_J2:
        changes["policy.V"] = s**2 * found.policy.V  # type: ignore[attr-defined]
    if key.policy == "balanced":
        changes["policy.price"] = found.policy.price / s  # type: ignore[attr-defined]
    return found.with_(**changes)


@cache
def mean_energy_j(name: str, law: str, overrides: tuple[str, ...]) -> float:
    """Of computing once, at a frequency drawn evenly from the range of the scenario."""
    scenario = _with_law(name, law, overrides)
    system = scenario.known_system(classes=1)
    low, high = scenario.frequency_range_hz
    at = low + (high - low) * (np.arange(1000) + 0.5) / 1000
    return float(np.mean([system.compute_energy_j(np.full(system.devices, f_hz))[0] for f_hz in at]))
