"""A test set that changes with the round: concept drift, with recorded arrivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import feelstream as fs
from feelstream.evaluation import TestSet

DRIFT, ROUNDS, DEVICES = 13, 24, 4


def drifting(path: Path) -> Path:
    """docs/evaluators.md has this recipe: from round DRIFT on, classes 0 and 1 change places."""
    rng = np.random.default_rng(0)
    centres = 4 * np.eye(3, 8)

    def samples(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, 3, n)
        return centres[labels] + rng.normal(size=(n, 8)), labels

    def swapped(labels: np.ndarray) -> np.ndarray:
        return np.array([1, 0, 2])[labels]

    x, y = samples(1200)
    time_s = rng.uniform(0, ROUNDS, 1200)  # with rounds of 1 s
    x_test, y_test = samples(300)
    np.savez(
        path,
        x_train=x,
        y_train=np.where(time_s < DRIFT - 1, y, swapped(y)),
        time_train=time_s,
        x_test=np.concatenate([x_test, x_test]),
        y_test=np.concatenate([y_test, swapped(y_test)]),
        round_test=np.repeat([1, DRIFT], 300),
    )
    return path


def test_the_test_set_follows_a_drift(tmp_path: Path) -> None:
    fields = {
        "dataset": str(drifting(tmp_path / "drift.npz")),
        "arrivals": "recorded",
        "devices": DEVICES,
        "rounds": ROUNDS,
        "system.round_s": 1.0,
        "evaluators": ["test", "classes"],
        "buffer": "window",
        "lr": 0.1,
        "policy": "select_all",
    }
    run = fs.simulate("tiny", out=tmp_path / "run", **fields)
    accuracy = run.rounds["accuracy"].to_numpy()
    before, after = accuracy[DRIFT - 2], accuracy[DRIFT - 1]
    assert before > 0.9
    assert after < before - 0.3  # two of three classes are others now
    assert accuracy[-1] > after + 0.2  # and it learns them
    assert run.rounds["forgetting"][DRIFT - 1] > 0.3
    assert run.evaluations is not None
    assert run.evaluations.filter(name="tested")["value"].sum() == 300
    assert run.model().evaluate().accuracy == pytest.approx(accuracy[-1])
    report = fs.verify(tmp_path / "run")
    assert report.ok, str(report)


def test_a_later_test_set_takes_the_place_of_an_earlier_one() -> None:
    rounds = TestSet(np.arange(5), lambda: np.arange(5.0), np.array([1, 4, 1, 9, 4]))
    found = [(rounds.of(t)[0].labels.tolist(), rounds.of(t)[0].x.tolist()) for t in (1, 3, 4, 8, 9, 100)]
    assert found == [([0, 2],) * 2] * 2 + [([1, 4],) * 2] * 2 + [([3],) * 2] * 2
    whole = TestSet(np.arange(5), lambda: np.arange(5.0))
    assert whole.of(3) == (whole, None)
