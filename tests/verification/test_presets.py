"""Every preset verifies in a short form of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import verified
from recorded import series_of_five

import feelstream as fs


def short(name: str, directory: Path) -> fs.Scenario:
    """The preset with its own policy, few data and rounds."""
    own = ["system.rounds=4", "trace.level=full", "learning.engine=none"]
    match name:
        case "har":
            own += [f"data.dataset={series_of_five(directory / 'five.npz')}", "system.devices=5"]
        case "million":
            own += ["system.devices=300", "policy.size=20", "data.samples=6000"]
        case "within-budget":  # a turn takes the budget of nine rounds
            own += ["system.rounds=12", "data.dataset=synthetic", "data.samples=1000"]
        case _:
            own += ["data.dataset=synthetic", "data.samples=1000"]
    return fs.preset(name, own)


@pytest.mark.parametrize("name", list(fs.presets()))
def test_every_preset_verifies(name: str, tmp_path: Path) -> None:
    run = fs.simulate(short(name, tmp_path), seed=2)
    verified(run)
    assert run.rounds["scheduled"].sum() > 0
