"""Every preset verifies in a short form of itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from recorded import series_of_five

import feelstream as fs


def pictures_of_ten(path: Path) -> str:
    """As CIFAR-10's, 3 x 32 x 32 and ten classes, but few; a class is a brightness."""
    rng = np.random.default_rng(0)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(count) % 10
        noise = rng.integers(0, 20, (count, 3, 32, 32))
        return (20 * labels[:, None, None, None] + noise).astype(np.uint8), labels

    x_train, y_train = part(200)
    x_test, y_test = part(40)
    np.savez(path, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    return str(path)


def short(name: str, directory: Path) -> fs.Scenario:
    """The preset with its own policy, data of its own kind, and a few rounds."""
    own = ["system.rounds=4", "trace.level=full", "learning.engine=none"]
    match name:
        case "har":
            own += [f"data.dataset={series_of_five(directory / 'five.npz')}", "system.devices=5"]
        case "cifar10":
            own += [f"data.dataset={pictures_of_ten(directory / 'ten.npz')}", "system.devices=8"]
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
    report = fs.verify(run.save(tmp_path / "run"))
    assert report.ok, str(report)
    assert run.rounds["scheduled"].sum() > 0
