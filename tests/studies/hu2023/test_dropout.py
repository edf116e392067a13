"""The classic example's model with dropout runs where the literal presets leave it out."""

from __future__ import annotations

from pathlib import Path

import pytest

import feelstream as fs

MODEL = Path(__file__).parents[3] / "examples" / "dropout_cnn.py"


def test_the_model_with_dropout_has_the_papers_parameters_and_learns_on_torch():
    pytest.importorskip("torch")
    fields = [f"learning.model={MODEL}:DropoutCNN", "system.rounds=1", "learning.local.steps=1", "trace.level=rounds"]
    run = fs.simulate(fs.preset("literal-iid", fields))
    assert run.theta is not None
    assert run.theta.size == 21_840
    assert 0 <= run.rounds["accuracy"][0] <= 1
