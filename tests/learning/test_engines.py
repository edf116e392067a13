"""What is the same of every engine and instruction set: what it refuses, and what its results do not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engines import LARGE, PAPER, SAMPLES, SMALL, SMOOTH, draw, every_engine, learner_of
from float64 import MEAN, STD, TOLERANCE, data, of_arrays, torch_training

from feelstream.errors import EngineError
from feelstream.learning.contract import LocalSGD
from feelstream.learning.models import Model, build


@every_engine
@pytest.mark.parametrize(
    ("method", "numbers", "sentence"),
    [
        ("train", np.full((1, 1, 1), SAMPLES), "sample numbers must lie in 0 … 119"),
        ("train", np.full((1, 1, 1), -2), "sample numbers must lie in 0 … 119, or be −1"),
        ("train", np.array([[[3, -1, 4]]]), "must come behind the samples of its batch"),
        ("train", np.zeros((1, 1), np.int64), r"shape \(devices, steps, batch\)"),
        ("train", np.zeros((1, 1, 1)), "must be int64"),
        ("gradients", np.full((1, 1), SAMPLES), "sample numbers must lie in 0 … 119"),
        ("predict", np.array([0, SAMPLES]), "sample numbers must lie in 0 … 119"),
        ("predict", np.array([0, -1]), "every number must name a sample"),
        ("predict", np.array([[0]]), r"int64 of shape \(samples\)"),
        ("predict", np.array([0.0]), "must be int64"),
    ],
)
def test_samples_that_there_are_not(engine: str, method: str, numbers: Any, sentence: str):
    learner = learner_of(engine, SMALL)
    theta = learner.init(0)
    ways = {
        "train": lambda: learner.train(theta, numbers, 0.1),
        "gradients": lambda: learner.gradients(theta, numbers),
        "predict": lambda: learner.predict(theta, "train", numbers),
    }
    with pytest.raises(ValueError, match=sentence):
        ways[method]()


@every_engine
def test_nothing_to_learn_from_or_to_predict(engine: str):
    learner = learner_of(engine, SMALL)
    theta = learner.init(0)
    for shape in ((0, 5, 8), (2, 0, 8), (2, 5, 0)):
        training = learner.train(theta, np.empty(shape, np.int64), 0.1)
        assert training.updates.shape == (shape[0], learner.parameters)
        assert not training.updates.any()
        assert training.losses.shape == shape
    found = learner.predict(theta, "train", np.empty(0, np.int64))
    assert [array.shape for array in (found.losses, found.classes, found.labels)] == [(0,)] * 3


@every_engine
def test_theta_must_be_a_finite_float32_vector(engine: str):
    learner = learner_of(engine, SMALL)
    theta = learner.init(0)
    doubles: Any = theta.astype(np.float64)
    for wrong in (theta[:-1], doubles):
        with pytest.raises(ValueError, match="theta must be float32 of shape"):
            learner.evaluate(wrong)
    theta[7] = np.nan
    for use in (learner.evaluate, lambda theta: learner.train(theta, draw(1, 1, 1), 0.1)):
        with pytest.raises(EngineError, match="not finite numbers"):
            use(theta)


@every_engine
def test_divergence_names_the_device_and_what_to_do(engine: str):
    learner = learner_of(engine, PAPER)
    with pytest.raises(EngineError, match=r"diverged: device 0 .*learning\.local\.lr below 1e\+30"):
        learner.train(learner.init(0), draw(2, 12, 4), 1e30)
    with pytest.raises(ValueError, match="finite"):
        learner.train(learner.init(0), draw(2, 12, 4), float("inf"))
    huge = np.full(learner.parameters, 3e38, np.float32)
    for use in (learner.evaluate, learner.predict, lambda theta: learner.gradients(theta, draw(1, 5))):
        with pytest.raises(EngineError, match=r"grown too large; choose a smaller learning\.local\.lr"):
            use(huge)


@every_engine
@pytest.mark.parametrize("model", [SMALL, PAPER])
def test_a_device_does_not_see_its_cohort(engine: str, model: Model):
    learner, batches = learner_of(engine, model), draw(4, 3, 7)
    theta = learner.init(0)
    cohort = learner.train(theta, batches, 0.05)
    alone = [learner.train(theta, batches[k : k + 1], 0.05).updates for k in range(4)]
    assert np.array_equal(np.concatenate(alone), cohort.updates)


@every_engine
def test_federated_averaging_of_one_step_is_one_step_on_all_samples(engine: str):
    learner, batches = learner_of(engine, SMOOTH), draw(4, 1, 8)
    theta = learner.init(0)
    apart = learner.train(theta, batches, 0.1).updates.mean(0)
    together = learner.train(theta, batches.reshape(1, 1, 32), 0.1).updates[0]
    np.testing.assert_allclose(apart, together, atol=1e-6)
    assert np.abs(together).max() > 1e-4


@every_engine
@pytest.mark.parametrize("name", ["softmax", "har-cnn"])
def test_float_features_are_taken_as_they_are(engine: str, name: str):
    """The same inputs as uint8 pixels to be normalised and as normalised numbers give the same training."""
    model = build(name, (3, 1, 45), 7)
    images, labels = data(model, 80)
    values = (images.astype(np.float32) * np.float32(1 / (255 * STD)) + np.float32(-MEAN / STD)).astype(np.float32)
    data_sets = (
        of_arrays(images, labels, images, labels),
        of_arrays(values, labels, values, labels, 0.0, 1.0),
        of_arrays(values * 3 + 2, labels, values * 3 + 2, labels, 2.0, 3.0),
    )
    learners = [learner_of(engine, model, data=each) for each in data_sets]
    theta, batches = learners[0].init(0), np.random.default_rng(0).integers(0, 80, (2, 5, 21))
    update, *_ = torch_training(model, images, labels, theta, batches[0], 0.1)
    for learner in learners:
        found = learner.train(theta, batches, 0.1).updates[0]
        assert np.abs(found - update).max() <= TOLERANCE * np.linalg.norm(update)
    losses = [learner.evaluate(theta).loss for learner in learners]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)


@every_engine
def test_arrays_of_state_that_do_not_fit(engine: str):
    learner = learner_of(engine, SMALL)
    theta, batches, state = learner.init(0), draw(2, 3, 4), np.ones((3, learner.parameters), np.float32)
    doubles: Any = state[:2].astype(np.float64)
    momentum = LocalSGD(0.1, momentum=0.9)
    with pytest.raises(ValueError, match=r"as many learning rates as steps are needed: 3, not 2"):
        learner.train(theta, batches, LocalSGD((0.1, 0.1)))
    with pytest.raises(ValueError, match="momentum must be float32 of shape"):
        learner.train(theta, batches, momentum, momentum=state)
    with pytest.raises(ValueError, match="correction must be float32 of shape"):
        learner.train(theta, batches, 0.1, correction=doubles)
    with pytest.raises(ValueError, match="momentum is 0"):
        learner.train(theta, batches, 0.1, momentum=state[:2])


@every_engine
@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_do_not_change_a_bit(engine: str, threads: int):
    """Also where threads share a device: a batch of 100 is cut into four shares. LARGE: dense layers only pay there."""
    others = (PAPER, LARGE, build("cifar-cnn", (3, 16, 16), 10), build("har-cnn", (6, 1, 40), 10))
    for model in (SMALL, *others) if threads == 3 else (SMALL,):
        alone, together = (learner_of(engine, model, n) for n in (1, threads))
        theta, batches = alone.init(0), draw(3, 4, 100)
        batches[1, 1:], batches[1, 0, 17:], batches[0, 3], batches[0, 2, 3:] = -1, -1, -1, -1
        sgd = LocalSGD(0.02, momentum=0.8, nesterov=True, weight_decay=0.05, prox=0.5, clip=0.1)
        rng = np.random.default_rng(0)
        state = {name: rng.normal(0, 0.05, (3, alone.parameters)).astype(np.float32) for name in
                 ("momentum", "correction")}  # fmt: skip
        one, many = (learner.train(theta, batches, sgd, **state) for learner in (alone, together))
        for name in ("updates", "losses", "momentum"):
            assert np.array_equal(getattr(one, name), getattr(many, name), equal_nan=True)
        assert np.array_equal(
            alone.gradients(theta, batches[:, 0]).values, together.gradients(theta, batches[:, 0]).values
        )
        for of in ("train", "test"):
            assert np.array_equal(alone.predict(theta, of).losses, together.predict(theta, of).losses)
        assert alone.evaluate(theta) == together.evaluate(theta)
