"""The policy that promises budgets, in scenarios of any kind: no device above its promise in any round."""

from __future__ import annotations

import numpy as np

import feelstream as fs
from feelstream.loop.changes import in_order, scenario_in
from feelstream.policies.balanced_joint import BalancedJoint
from soak import fields
from soak.attack import Lost
from soak.scenarios import Scenarios, Tables

ROUNDING = 1e-9  # relative: sums of up to 40 energies


class Budgets(Scenarios):
    name = "budgets"
    verified = 0.3  # to solve each round a second time takes longer than to play it; what is promised is seen without

    def check(self, run: fs.Run) -> None:
        """Whoever pays in round t has then spent T·E_k at most with a horizon, t·E_k and one turn at most without.

        E_k is the budget in force in round t: a budget that changes counts as if it had been so from the beginning.
        """
        policy, devices = run.scenario.policy, run.devices
        if not isinstance(policy, BalancedJoint) or devices is None:
            raise Lost("it is not the policy that was asked for")
        rounds = run.scenario.system.rounds
        changes = in_order(run.scenario, [fs.Change.parse(text) for text in self.changes])
        budget_j = np.array(
            [scenario_in(run.scenario, changes, t + 1).population.energy_budget_j for t in range(rounds)]
        )
        energy_j = (devices["e_cmp_j"] + devices["e_tr_j"]).to_numpy().reshape(rounds, -1)
        granted_j = np.arange(1, rounds + 1)[:, None] * budget_j + energy_j.max(axis=0)
        if policy.pace == "horizon":
            granted_j = rounds * budget_j
        over = (energy_j > 0) & (energy_j.cumsum(axis=0) > granted_j * (1 + ROUNDING))
        if over.any():
            t, k = (int(place[0]) for place in np.nonzero(over))
            raise Lost(f"device {k} spent {energy_j[: t + 1, k].sum():g} J by round {t + 1}, not {granted_j[t, k]:g} J")

    def _ordinary(self) -> Tables:
        tables, draw = super()._ordinary(), self.draw
        tables["system"]["rounds"] = draw.randint(1, draw.choice([6, 6, 20]))
        tables["policy"] = {"name": BalancedJoint.tag, "size": draw.randint(1, tables["system"]["devices"])}
        for name in ("pace", "knows"):
            tables["policy"][name] = fields.drawn(draw, BalancedJoint, name)
        for name in ("lead", "price", "scarcity", "spread"):  # any value keeps the promise; often the usual one
            if draw.random() < 0.5:
                tables["policy"][name] = draw.choice([fields.drawn(draw, BalancedJoint, name), draw.uniform(0.01, 5.0)])
        tables["trace"] = {"level": "full"}
        return tables
