"""Other readings: what each does to the savings with the paper's numbers, and the model with dropout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import feelstream as fs

SEEDS = range(4)
MODEL = Path(__file__).parents[3] / "examples" / "dropout_cnn.py"


def saved(size: int, *changes: str) -> list[float]:
    """Energy saved against random in each seed, %; in none of the rounds is anybody dropped."""
    found = []
    for seed in SEEDS:
        spent = []
        for policy in ("lyapunov", "random"):
            own = (f"policy.name={policy}", f"policy.size={size}", "learning.engine=none", "trace.level=rounds")
            rounds = fs.simulate(fs.preset("literal-iid", (*own, *changes)), seed).rounds
            assert (rounds["scheduled"] == rounds["transmitted"]).all()  # so data counts as used when the model is sent
            spent.append(rounds["energy_mean_cum_j"][-1])
        found.append(100 * (1 - spent[0] / spent[1]))
    return found


def test_noise_as_total_power_changes_the_savings_far_less_than_seeds_do():
    base, total = saved(4), saved(4, "radio.noise_w_per_hz=5e-21")  # 1e-13 W over 20 MHz
    assert np.mean(total) == pytest.approx(np.mean(base), abs=0.25 * float(np.std(base, ddof=1)))


def test_queues_without_max_save_less_with_two_devices_a_round():
    """With the max, a device that has spent nothing for long is no cheaper than one that spends its budget."""
    assert np.mean(saved(2, "system.queue=signed")) < np.mean(saved(2)) - 3


def test_the_model_with_dropout_has_the_papers_parameters_and_learns_on_torch():
    """The classic example's model runs where the literal presets omit its dropout."""
    pytest.importorskip("torch")
    fields = [f"learning.model={MODEL}:DropoutCNN", "system.rounds=1", "learning.local.steps=1", "trace.level=rounds"]
    run = fs.simulate(fs.preset("literal-iid", fields))
    assert run.theta is not None
    assert run.theta.size == 21_840
    assert 0 <= run.rounds["accuracy"][0] <= 1
