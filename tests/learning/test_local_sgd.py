"""Local SGD beyond the plain one, on every engine and instruction set, against PyTorch's optimiser in float64."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from engines import LARGE, SAMPLES, SMALL, SMOOTH, draw, every_engine, learner_of
from float64 import data, torch_training

from feelstream.learning.contract import Learner, LocalSGD
from feelstream.learning.models import Model

LR = 0.02
TOLERANCE = 1e-5  # of a vector's norm
TERMS = {
    "momentum": LocalSGD(LR, momentum=0.9),
    "nesterov": LocalSGD(LR, momentum=0.7, nesterov=True),
    "weight decay": LocalSGD(LR, weight_decay=0.1),
    "prox": LocalSGD(LR, prox=2.0),
    "clip": LocalSGD(LR, clip=0.05),
    "schedule": LocalSGD(tuple(LR / (1 + 0.3 * step) for step in range(12))),
    "all": LocalSGD(
        tuple(LR * (0.2 + np.cos(step / 8) ** 2) for step in range(12)),
        momentum=0.8, nesterov=True, weight_decay=0.05, prox=0.5, clip=0.1,
    ),
}  # fmt: skip


def vectors(learner: Learner, devices: int, scale: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, (devices, learner.parameters)).astype(np.float32)


def padded(batches: np.ndarray, counts: list[list[int]]) -> np.ndarray:
    """With so many samples left in each step of each device."""
    batches = batches.copy()
    batches[np.arange(batches.shape[2]) >= np.array(counts)[:, :, None]] = -1
    return batches


REFERENCES: dict[tuple, tuple] = {}  # the same ones for every engine and instruction set


def reference(
    model: Model, theta: np.ndarray, own: np.ndarray, sgd: LocalSGD, momentum: np.ndarray | None, correction: Any
) -> tuple:
    arrays = (None if each is None else sha256(each.tobytes()).digest() for each in (theta, own, momentum, correction))
    key = (repr(model), repr(sgd), own.shape, *arrays)
    if key not in REFERENCES:
        images, labels = data(model, SAMPLES)
        REFERENCES[key] = torch_training(model, images, labels, theta, own, sgd, momentum, correction)
    return REFERENCES[key]


def assert_like_torch(
    learner: Learner, model: Model, batches: np.ndarray, sgd: LocalSGD, momentum=None, correction=None
) -> None:
    theta = learner.init(0)
    training = learner.train(theta, batches, sgd, momentum=momentum, correction=correction)
    assert (training.momentum is not None) == (sgd.momentum > 0)
    for k, own in enumerate(batches):
        state = [None if array is None else array[k] for array in (momentum, correction)]
        update, losses, velocity = reference(model, theta, own, sgd, *state)
        assert np.abs(training.updates[k] - update).max() <= TOLERANCE * np.linalg.norm(update)
        np.testing.assert_allclose(training.losses[k], losses, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        if velocity is not None:
            assert training.momentum is not None
            assert np.abs(training.momentum[k] - velocity).max() <= TOLERANCE * np.linalg.norm(velocity)


@pytest.mark.slow
@every_engine
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize(
    ("model", "batch"), [(SMOOTH, 10), (SMOOTH, 70), (LARGE, 10)], ids=["small", "shares", "large"]
)
def test_every_term_is_torchs(engine: str, model: Model, batch: int, term: str):
    learner, batches = learner_of(engine, model), draw(2, 12, batch)
    assert_like_torch(learner, model, batches, TERMS[term])
    theta = learner.init(0)
    with_term, without = (learner.train(theta, batches, sgd).updates for sgd in (TERMS[term], LR))
    assert np.linalg.norm(with_term - without) > 1000 * TOLERANCE * np.linalg.norm(without)  # the term did something


@every_engine
@pytest.mark.parametrize("term", ["momentum", "all"])
def test_state_and_correction_are_each_devices_own(engine: str, term: str):
    learner = learner_of(engine, SMOOTH)
    momentum, correction = vectors(learner, 3, 0.05, 0), vectors(learner, 3, 0.03, 1)
    before = momentum.copy()
    assert_like_torch(learner, SMOOTH, draw(3, 12, 10), TERMS[term], momentum, correction)
    assert np.array_equal(momentum, before)  # what was handed in stays as it was


@every_engine
@pytest.mark.parametrize("term", ["clip", "all"])
def test_short_batches_are_torchs(engine: str, term: str):
    """Epochs of devices with 33, 81 and 40 samples in batches of 40: the last is short, or missing."""
    sgd = replace(TERMS[term], lr=(0.03, 0.02, 0.01))
    batches = padded(draw(3, 3, 40), [[33, 0, 0], [40, 40, 1], [40, 0, 0]])
    assert_like_torch(learner_of(engine, SMOOTH), SMOOTH, batches, sgd)


@every_engine
@pytest.mark.parametrize("count", [1, 15, 16, 17, 33, 49, 64, 80])
def test_room_behind_a_short_batch_changes_no_bit(engine: str, count: int):
    learner, batches = learner_of(engine, SMALL), draw(2, 3, 80)
    theta, sgd = learner.init(0), TERMS["momentum"]
    tight = learner.train(theta, batches[:, :, :count], sgd)
    loose = learner.train(theta, padded(batches, [[count] * 3] * 2), sgd)
    assert np.array_equal(tight.updates, loose.updates)
    assert np.array_equal(tight.losses, loose.losses[:, :, :count])
    assert np.isnan(loose.losses[:, :, count:]).all()


@every_engine
def test_a_step_without_samples_is_not_taken(engine: str):
    learner, sgd = learner_of(engine, SMALL), LocalSGD(LR, momentum=0.9, weight_decay=0.1, prox=1.0)
    theta, batches = learner.init(0), padded(draw(2, 4, 20), [[20, 5, 0, 0], [0, 0, 0, 0]])
    momentum = vectors(learner, 2, 0.1, 0)
    training = learner.train(theta, batches, sgd, momentum=momentum)
    alone = learner.train(theta, batches[:1, :2], sgd, momentum=momentum[:1])
    assert training.momentum is not None
    assert alone.momentum is not None
    assert np.array_equal(training.updates[0], alone.updates[0])
    assert np.array_equal(training.momentum[0], alone.momentum[0])
    assert not training.updates[1].any()
    assert np.array_equal(training.momentum[1], momentum[1])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lr": float("nan")}, "learning rate must be a finite number"),
        ({"lr": (0.1, float("inf"))}, "learning rate must be a finite number"),
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1"),
        ({"momentum": -0.1}, "momentum must be at least 0 and below 1"),
        ({"nesterov": True}, "nesterov needs a momentum"),
        ({"weight_decay": -1.0}, "weight_decay must be a finite number of at least 0"),
        ({"prox": float("nan")}, "prox must be a finite number of at least 0"),
        ({"clip": 0.0}, "clip must be a positive finite number or None"),
    ],
)
def test_terms_that_make_no_sense(change: dict, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        LocalSGD(**{"lr": 0.1, **change})


def test_schedules_can_be_any_sequence():
    schedules: list[Any] = [np.array([0.5, 0.25]), [0.5, 0.25]]
    assert all(LocalSGD(lr) == LocalSGD((0.5, 0.25)) for lr in schedules)
