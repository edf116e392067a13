"""Small results for the tests of reports and of the commands that write them."""

from __future__ import annotations

from pathlib import Path

import pytest

import feelstream as fs
from feelstream.experiment import Arm, Plan, Results
from feelstream.studies import reporting
from feelstream_studies.hu2023 import paper as reproduce

# The paper's plan, small enough to play in a second: no learning, few rounds.
SMALL = (
    "system.rounds=6",
    "system.devices=8",
    "data.dataset=synthetic",
    "data.samples=400",
    "data.fresh=per_round",
    "learning.engine=none",
)
NASTY = "</script><img src=x onerror=alert(1)> & \"quoted\" 'label' [red]"


def played(plan: Plan, runs: Path) -> Results:
    """Results of a plan, played here and now: the tests of this package are not about workers."""
    directories = {}
    for number, arm in enumerate(plan.arms):
        for seed in plan.seeds:
            path = runs / f"{number}-{seed}"
            fs.simulate(arm.scenario, seed).save(path)
            directories[arm.label, seed] = path
    return Results(plan, directories, [])


@pytest.fixture(scope="session")
def paper_results(tmp_path_factory) -> Results:
    return played(reproduce.plan("fig1", range(3), SMALL), tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="session")
def learned_results(tmp_path_factory) -> Results:
    """Two policies that really learn, under labels that try to break out of the page."""
    overrides = ["system.rounds=5", "learning.steps=2"]
    arms = (
        Arm("lyapunov", fs.preset("tiny", overrides)),
        Arm(NASTY, fs.preset("tiny", [*overrides, "policy.name=random"])),
    )
    return played(Plan("compare <b>tiny</b>", arms, (0, 1, 2)), tmp_path_factory.mktemp("learned"))


@pytest.fixture(scope="session")
def paper_output(paper_results, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("output")
    reporting.write(paper_results, out)
    return out
