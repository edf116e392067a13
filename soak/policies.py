"""Policies of users that do everything wrong: the run fails with a sentence that names the policy."""

from __future__ import annotations

from pathlib import Path

import feelstream as fs
from soak.attack import Attack, Lost

VALUES = [
    "None", "1", "'text'", "[]", "{}", "np.zeros(3)", "np.full(6, np.nan)", "np.array(['a'])", "object()", "[0, 0]",
    "np.arange(99)", "np.array([-1])", "plan", "decision", "fs.Decision(None, plan)", "fs.Decision([0.5], plan)",
    "fs.Decision(np.array([0, 0]), plan)", "fs.Decision(np.array([99]), plan)", "fs.Decision(decision.schedule, None)",
    "replace(decision, importance=np.full(6, np.nan))", "replace(decision, importance='x')",
    "replace(decision, importance=np.full(6, 1e308))",
    "replace(decision, score=np.zeros(2))", "replace(decision, score=[1])", "replace(decision, f_hz=np.zeros(9))",
    "replace(decision, f_hz='fast')", "replace(decision, plan=replace(plan, n=10**9))", "{'a': object()}",
    "replace(decision, plan=replace(plan, energy_j=None))", "{1: np.zeros(1)}", "{'a': np.array(['x'])}",
]  # fmt: skip
DEEDS = [
    "sys.exit(3)", "raise SystemExit", "raise GeneratorExit", "raise MemoryError", "1 / 0", "raise Exception('a\\nb')",
    "recurse = lambda: recurse(); recurse()", "observation.f_hz[:] = 0", "observation.queue_j += 1",
    "import nothing_here",
    "raise StopIteration", "raise BaseException('x')", "raise KeyError", "np.zeros(-1)", "raise UnicodeError",
]  # fmt: skip
METHODS = {
    "init": "def init(self, system):",
    "select": "def select(self, state, observation, rng):",
    "transmit": "def transmit(self, observation, decision, gain):",
    "update": "def update(self, state, outcome):",
}


class Policies(Attack):
    name = "policies"

    def trial(self, directory: Path) -> str:
        method = self.draw.choice(list(METHODS))
        deed = self.draw.choice(DEEDS) if self.draw.random() < 0.5 else f"return {self.draw.choice(VALUES)}"
        self.what = f"{method}: {deed}"
        lines = [
            "import sys", "from dataclasses import replace", "import numpy as np", "import feelstream as fs",
            "from feelstream.policies.random import Random", "", "class Wrong(fs.Policy):",
            *([] if method == "select" else ["    select = Random.select"]),
            f"    {METHODS[method]}",
            *(["        plan = observation.plan(self.size)",
               "        decision = Random.select(self, state, observation, rng)"] if method == "select" else []),
            f"        {deed}",
            *(["        return decision"] if method == "select" else []),
        ]  # fmt: skip
        file = directory / f"wrong_{self.tried}.py"
        file.write_text("\n".join(lines) + "\n")
        overrides = ["learning.engine=none", "system.rounds=3", "system.devices=6", f"policy.name={file}:Wrong"]
        run = fs.simulate(fs.preset("tiny", overrides))
        report = fs.verify(run.save(directory / "run"))  # what it did was lawful after all
        if not report.ok:
            raise Lost(f"verify disagrees: {' '.join(str(report.disagreement).split())}")
        return self.what
