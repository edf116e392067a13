"""Every engine and instruction set: what it refuses, what its results do not depend on; predictions, gradients and all
terms of local SGD against PyTorch in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from float64 import (
    MEAN,
    STD,
    TOLERANCE,
    data,
    data_set,
    needs_torch,
    of_arrays,
    torch,
    torch_input,
    torch_module,
    torch_training,
)  # fmt: skip

from feelstream.data.datasets import Dataset
from feelstream.errors import EngineError
from feelstream.learning.contract import Learner, LocalSGD
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU, build
from feelstream.learning.native import ISA_VARIABLE, NativeLearner, instruction_sets

SMALL = Model((2, 9, 11), (Conv(5, 3), ReLU(), MaxPool(), Conv(4, (2, 3), same=True), MaxPool(1, 2), Dense(6)))
PAPER = build("paper-cnn", (1, 28, 28), 10)
# Without ReLU and maximum, which side of a corner a float32 is on cannot decide anything.
SMOOTH = Model((2, 9, 11), (Conv(5, 3), Conv(4, (2, 3), same=True), Dense(6)))
LARGE = Model((1, 28, 28), (Conv(10, 5), Dense(30), Dense(10)))  # 173,000 parameters
SAMPLES = 120  # of the training set
TESTS = 60

NATIVE = [f"native {isa}" for isa in instruction_sets()]
every_engine = pytest.mark.parametrize("engine", [*NATIVE, "torch"])
every_instruction_set = pytest.mark.parametrize("engine", NATIVE)


def learner_of(engine: str, model: Model, threads: int = 1, data: Dataset | None = None) -> Learner:
    """engine: "torch", or "native" and an instruction set."""
    data = data or data_set(model, SAMPLES, TESTS)
    name, _, isa = engine.partition(" ")
    if name == "native":
        with pytest.MonkeyPatch.context() as patch:  # read when the learner is made
            patch.setenv(ISA_VARIABLE, isa)
            return NativeLearner(model, data, threads)
    needs_torch()
    from feelstream.learning.torch_engine import TorchLearner

    return TorchLearner(model, data, threads)


def draw(*shape: int) -> np.ndarray:
    """Numbers of samples of the training set, which may repeat."""
    return np.random.default_rng(7).integers(0, SAMPLES, shape)


def ints(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int64)


ONE, THREE, NOT_FINITE = draw(1, 1, 1), draw(2, 3, 4), "not finite numbers"
WRONG: Any = np.zeros((1, 1, 1))  # no whole numbers
STATE, RANGE = np.ones((3, 369), np.float32), "sample numbers must lie in 0 … 119"
MOMENTUM = LocalSGD(0.1, momentum=0.9)
REFUSED: list[tuple[Callable[[Learner, Any], Any], str]] = [
    (lambda of, theta: of.train(theta, ints([[SAMPLES]]), 0.1), RANGE),
    (lambda of, theta: of.train(theta, ints([[-2]]), 0.1), f"{RANGE}, or be −1"),
    (lambda of, theta: of.train(theta, ints([[3, -1, 4]]), 0.1), "must come behind the samples of its batch"),
    (lambda of, theta: of.train(theta, ints([0]), 0.1), r"shape \(devices, steps, batch\)"),
    (lambda of, theta: of.train(theta, WRONG, 0.1), "must be int64"),
    (lambda of, theta: of.gradients(theta, ints([SAMPLES])), RANGE),
    (lambda of, theta: of.predict(theta, "train", ints(0, SAMPLES)), RANGE),
    (lambda of, theta: of.predict(theta, "train", ints(0, -1)), "every number must name a sample"),
    (lambda of, theta: of.predict(theta, "train", ints([0])), r"int64 of shape \(samples\)"),
    (lambda of, theta: of.predict(theta, "train", WRONG[0, 0]), "must be int64"),
    (lambda of, theta: of.evaluate(theta[:-1]), "theta must be float32 of shape"),
    (lambda of, theta: of.evaluate(theta.astype(np.float64)), "theta must be float32 of shape"),
    (lambda of, theta: of.evaluate(theta * np.nan), NOT_FINITE),
    (lambda of, theta: of.train(theta * np.nan, ONE, 0.1), NOT_FINITE),
    (lambda of, theta: of.train(theta, THREE, LocalSGD((0.1, 0.1))), "as many learning rates .* are needed: 3, not 2"),
    (lambda of, theta: of.train(theta, THREE, MOMENTUM, momentum=STATE), "momentum must be float32 of shape"),
    (lambda of, theta: of.train(theta, THREE, 0.1, correction=STATE[:2].astype(float)), "correction must be float32"),
    (lambda of, theta: of.train(theta, THREE, 0.1, momentum=STATE[:2]), "momentum is 0"),
]


@every_engine
@pytest.mark.parametrize(("use", "sentence"), REFUSED)
def test_what_is_handed_in_must_fit(engine: str, use: Callable[[Learner, Any], Any], sentence: str):
    learner = learner_of(engine, SMALL)
    assert learner.parameters == STATE.shape[1]
    with pytest.raises(EngineError if sentence is NOT_FINITE else ValueError, match=sentence):
        use(learner, learner.init(0))


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


def answers(model: Model, theta: np.ndarray, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(losses, most probable classes) in float64."""
    needs_torch()
    with torch.inference_mode():
        logits = torch_module(model, theta)(torch_input(images))
        losses = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels), reduction="none")
    return losses.numpy(), logits.argmax(1).numpy()


@every_engine
@pytest.mark.parametrize("model", [SMALL, PAPER])
def test_predictions_are_torchs(engine: str, model: Model, monkeypatch: pytest.MonkeyPatch):
    learner = learner_of(engine, model)
    if engine == "torch":
        monkeypatch.setattr("feelstream.learning.torch_engine.EVALUATION_CHUNK", 16)  # 60 = 3 · 16 + 12
    theta = learner.init(3)
    assert np.array_equal(theta, model.init(3))
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
    whole = learner.evaluate(theta)
    assert (whole.loss, whole.accuracy) == pytest.approx((losses.mean(), (classes == labels).mean()), rel=1e-5)


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


LR = 0.02
CLOSE = 1e-5  # of a vector's norm
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
        assert np.abs(training.updates[k] - update).max() <= CLOSE * np.linalg.norm(update)
        np.testing.assert_allclose(training.losses[k], losses, rtol=CLOSE, atol=CLOSE, equal_nan=True)
        if velocity is not None:
            assert training.momentum is not None
            assert np.abs(training.momentum[k] - velocity).max() <= CLOSE * np.linalg.norm(velocity)


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
    assert np.linalg.norm(with_term - without) > 1000 * CLOSE * np.linalg.norm(without)  # the term did something


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
