"""Predictions sample by sample and gradients without a step, on every engine, against PyTorch in float64."""

from __future__ import annotations

import numpy as np
import pytest
from engines import PAPER, SAMPLES, SMALL, TESTS, draw, every_engine, every_instruction_set, learner_of
from float64 import TOLERANCE, data, needs_torch, torch, torch_input, torch_module

from feelstream.learning.models import Model


def answers(model: Model, theta: np.ndarray, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(losses, most probable classes) in float64."""
    needs_torch()
    with torch.inference_mode():
        logits = torch_module(model, theta)(torch_input(images))
        losses = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels), reduction="none")
    return losses.numpy(), logits.argmax(1).numpy()


@every_engine
@pytest.mark.parametrize("model", [SMALL, PAPER])
def test_predictions_are_torchs(engine: str, model: Model):
    learner = learner_of(engine, model)
    theta = learner.init(3)
    chosen = draw(45)
    train_images, train_labels = data(model, SAMPLES)
    for found, images, labels in (
        (learner.predict(theta, "train", chosen), train_images[chosen], train_labels[chosen]),
        (learner.predict(theta), *data(model, TESTS, 1)),
    ):
        losses, classes = answers(model, theta, images, labels)
        np.testing.assert_allclose(found.losses, losses, rtol=1e-5, atol=1e-6)
        assert np.array_equal(found.classes, classes)
        assert np.array_equal(found.labels, labels)
        assert np.array_equal(found.correct, classes == labels)


@every_engine
def test_predictions_add_up_to_the_evaluation(engine: str):
    learner = learner_of(engine, SMALL)
    theta = learner.init(0)
    evaluation, found = learner.evaluate(theta), learner.predict(theta)
    assert found.losses.mean(dtype=np.float64) == pytest.approx(evaluation.loss, rel=1e-12)
    assert found.correct.mean() == evaluation.accuracy


@every_instruction_set  # PyTorch chooses its algorithms by the size of the batch
def test_a_prediction_does_not_depend_on_its_neighbours(engine: str):
    learner = learner_of(engine, SMALL)
    theta, chosen = learner.init(0), draw(37)
    all_of_them = learner.predict(theta, "train")
    some = learner.predict(theta, "train", chosen)
    assert np.array_equal(some.losses, all_of_them.losses[chosen])
    assert np.array_equal(some.classes, all_of_them.classes[chosen])


@every_engine
@pytest.mark.parametrize("model", [SMALL, PAPER])
def test_gradients_are_torchs(engine: str, model: Model):
    """Also of a device with fewer samples than the others, and of one with none."""
    learner = learner_of(engine, model)
    theta, samples = learner.init(0), draw(4, 70)
    samples[1, 5:], samples[2] = -1, -1
    found = learner.gradients(theta, samples)
    images, labels = data(model, SAMPLES)
    for k, numbers in enumerate(samples):
        own = numbers[numbers >= 0]
        module = torch_module(model, theta)
        if len(own):
            losses = torch.nn.functional.cross_entropy(
                module(torch_input(images[own])), torch.from_numpy(labels[own]), reduction="none"
            )
            losses.mean().backward()
            gradient = torch.cat([w.grad.reshape(-1) for w in module.parameters() if w.grad is not None]).numpy()
            assert np.abs(found.values[k] - gradient).max() <= TOLERANCE * np.linalg.norm(gradient)
            np.testing.assert_allclose(found.losses[k, : len(own)], losses.detach().numpy(), rtol=1e-5, atol=1e-6)
            assert found.norms[k] == pytest.approx(np.linalg.norm(gradient), rel=TOLERANCE)
        assert np.isnan(found.losses[k, len(own) :]).all()
    assert not found.values[2].any()
