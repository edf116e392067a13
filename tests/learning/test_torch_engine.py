from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import feelstream as fs
from feelstream import learning
from feelstream.data.datasets import Dataset, load
from feelstream.errors import EngineError, ScenarioError
from feelstream.learning.contract import LocalSGD
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU, build

pytest.importorskip("torch")

import torch

from feelstream.learning.torch_engine import TorchLearner

DATA = load("synthetic", samples=600, test_samples=300)
FULL = load("synthetic")


def learner(model: Model | str, data: Dataset = DATA, threads: int = 1) -> TorchLearner:
    model = build(model, data.shape, data.classes) if isinstance(model, str) else model
    return TorchLearner(model, data, threads)


def batches(devices: int, steps: int, batch: int, samples: int = 600) -> NDArray[np.int64]:
    return np.random.default_rng(5).integers(samples, size=(devices, steps, batch))


class SoftmaxRegression:
    """The same model by hand in float64: logits x Wᵀ + b, gradient (p − onehot)ᵀ x / batch."""

    def __init__(self, data: Dataset) -> None:
        self.x, self.x_test = (
            (images.reshape(len(images), -1) / 255 - data.mean) / data.std
            for images in (data.train_images, data.test_images)
        )
        self.y, self.y_test, self.classes = data.train_labels, data.test_labels, data.classes

    def losses(self, theta: NDArray, x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        w, b = theta[: -self.classes].reshape(self.classes, -1), theta[-self.classes :]
        logits = x @ w.T + b
        shifted = logits - logits.max(1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        return -log_p[np.arange(len(y)), y], log_p

    def train(self, theta: NDArray, batches: NDArray[np.int64], lr: float) -> tuple[NDArray, NDArray]:
        theta_k, losses = theta.astype(float), []
        for batch in batches:
            x, y = self.x[batch], self.y[batch]
            loss, log_p = self.losses(theta_k, x, y)
            losses.append(loss)
            error = (np.exp(log_p) - np.eye(self.classes)[y]) / len(y)
            theta_k = theta_k - lr * np.concatenate([(error.T @ x).reshape(-1), error.sum(0)])
        return theta_k - theta, np.array(losses)


def test_training_and_evaluation_are_those_of_softmax_regression_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feelstream.learning.torch_engine.EVALUATION_CHUNK", 128)  # 300 = 128 + 128 + 44
    threads, engine, hand = torch.get_num_threads(), learner("softmax"), SoftmaxRegression(DATA)
    theta, drawn = engine.init(3), batches(4, 15, 16)
    training = engine.train(theta, drawn, 0.05)
    for k in range(4):
        update, losses = hand.train(theta, drawn[k], 0.05)
        np.testing.assert_allclose(training.updates[k], update, atol=2e-6)
        np.testing.assert_allclose(training.losses[k], losses, rtol=1e-4, atol=1e-5)
    losses, log_p = hand.losses(theta.astype(float), hand.x_test, hand.y_test)
    evaluation = engine.evaluate(theta)
    assert evaluation.loss == pytest.approx(losses.mean(), rel=1e-5)
    assert evaluation.accuracy == pytest.approx((log_p.argmax(1) == hand.y_test).mean(), abs=1e-12)
    assert torch.get_num_threads() == threads


def test_a_deep_model_has_the_documented_order() -> None:
    """A convolutional network by hand, from the vector's documented order, gives the same losses."""
    model = Model((1, 28, 28), (Conv(3, 5), MaxPool(), ReLU(), Conv(4, 4), MaxPool(), Dense(10)))
    engine = learner(model)
    theta = engine.init(1)
    x, drawn = DATA.train_images / 255, batches(1, 1, 6)
    signal = (x[drawn[0, 0]] - DATA.mean) / DATA.std
    start = 0

    def take(*shape: int) -> NDArray:
        nonlocal start
        start += int(np.prod(shape))
        return theta[start - int(np.prod(shape)) : start].reshape(shape).astype(float)

    for layer in model.layers:
        match layer:
            case Conv(out, int(k)):
                w, b = take(out, signal.shape[1], k, k), take(out)
                windows = np.lib.stride_tricks.sliding_window_view(signal, (k, k), axis=(2, 3))
                signal = np.einsum("nihwrc,oirc->nohw", windows, w) + b[:, None, None]
            case MaxPool():
                n, c, h, w_ = signal.shape
                even = signal[:, :, : h // 2 * 2, : w_ // 2 * 2]
                signal = even.reshape(n, c, h // 2, 2, w_ // 2, 2).max((3, 5))
            case ReLU():
                signal = np.maximum(signal, 0)
            case Dense(units):
                flat = signal.reshape(len(signal), -1)
                signal = flat @ take(units, flat.shape[1]).T + take(units)
    assert start == engine.parameters
    expected = np.log(np.exp(signal).sum(1)) - signal[np.arange(6), DATA.train_labels[drawn[0, 0]]]
    np.testing.assert_allclose(engine.train(theta, drawn, 0.1).losses[0, 0], expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "steps", "goal"), [("softmax", 200, 0.9), ("paper-cnn", 400, 0.8)])
def test_learns(model: str, steps: int, goal: float) -> None:
    engine = learner(model, FULL)
    theta = engine.init(0)
    before = engine.evaluate(theta)
    theta = theta + engine.train(theta, batches(1, steps, 32, 6000), 0.02).updates[0]
    after = engine.evaluate(theta)
    assert before.accuracy < 0.3
    assert goal < after.accuracy < 1
    assert after.loss < before.loss


def test_identity() -> None:
    engine = learner("paper-cnn")
    assert engine.parameters == 21840
    assert engine.name == "torch"
    assert engine.details["torch"] == torch.__version__
    assert np.array_equal(engine.init(4), build("paper-cnn", (1, 28, 28), 10).init(4))


class Softmax(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(784, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(x.flatten(1))


class Dropping(Softmax):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.nn.functional.dropout(x, 0.5, self.training))


class HalfFrozen(Softmax):
    def __init__(self) -> None:
        super().__init__()
        self.dense.bias.requires_grad_(False)


def having(**parts: Any) -> Callable[[], Softmax]:
    def make() -> Softmax:
        module = Softmax()
        for name, part in parts.items():
            setattr(module, name, part)
        return module

    return make


UNTRACKED = torch.nn.BatchNorm2d(1, track_running_stats=False)


class TestImported:
    def test_agrees_with_the_same_model_of_ours(self) -> None:
        engine, ours = TorchLearner(Softmax, DATA), learner("softmax")
        theta, drawn = engine.init(2), batches(2, 5, 8)
        assert engine.parameters == 7850
        assert np.array_equal(engine.train(theta, drawn, 0.1).updates, ours.train(theta, drawn, 0.1).updates)
        assert engine.evaluate(theta) == ours.evaluate(theta)

    def test_initial_weights_follow_the_seed_and_leave_torch_alone(self) -> None:
        torch.manual_seed(99)
        expected = torch.rand(3)
        torch.manual_seed(99)
        engine = TorchLearner(Dropping, DATA)
        theta = engine.init(7)
        engine.train(theta, batches(2, 2, 4), 0.1)
        assert torch.equal(torch.rand(3), expected)
        assert np.array_equal(theta, engine.init(7))
        assert not np.array_equal(theta, engine.init(8))
        torch.manual_seed(7)
        same = torch.nn.utils.parameters_to_vector(Softmax().parameters()).detach().numpy()
        assert np.array_equal(theta, same)

    def test_dropout_is_a_function_of_the_batches(self) -> None:
        engine, drawn = TorchLearner(Dropping, DATA), batches(3, 4, 8)
        theta = engine.init(0)
        cohort = engine.train(theta, drawn, 0.1).updates
        assert np.array_equal(cohort[2], engine.train(theta, drawn[2:], 0.1).updates[0])
        assert not np.array_equal(cohort, TorchLearner(Softmax, DATA).train(theta, drawn, 0.1).updates)

    def test_frozen_parameters_stay_whatever_is_added_to_the_gradient(self) -> None:
        engine, sgd = TorchLearner(HalfFrozen, DATA), LocalSGD(0.1, momentum=0.9, weight_decay=0.1, prox=1.0, clip=1.0)
        ones = np.ones((1, engine.parameters), np.float32)
        training = engine.train(engine.init(0), batches(1, 3, 8), sgd, momentum=ones, correction=ones)
        assert training.momentum is not None
        assert np.all(training.updates[0, -10:] == 0)
        assert np.all(training.momentum[0, -10:] == 1)
        assert np.all(training.updates[0, :-10] != 0)

    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (
                having(norm=UNTRACKED),
                r"has a BatchNorm layer \(norm\) without running statistics.*batch_norm = \"batch\"",
            ),
            (having(calls=torch.nn.Buffer(torch.zeros(1))), r"keeps a buffer \(calls\)"),
            (lambda: Softmax().double(), "only float32 is allowed"),
            (having(dense=torch.nn.Linear(784, 9)), r"gives \(1, 9\) for one sample; .* at least 10 classes"),
            (having(dense=torch.nn.Linear(783, 10)), r"does not accept samples of shape \(1, 28, 28\)"),
            (lambda width: Softmax(), "the model cannot be made: TypeError: .*width"),
            (int, "a torch.nn.Module is needed, not int"),
        ],
    )
    def test_refuses(self, make: Any, sentence: str) -> None:
        with pytest.raises(EngineError, match=sentence):
            TorchLearner(make, DATA)

    def test_shape_and_classes_come_from_the_data_set(self, tmp_path: Path) -> None:
        file = tmp_path / "sized_nets.py"
        file.write_text(
            "from math import prod\nfrom torch import nn\nfrom feelstream.learning.models import Dense, ReLU\n"
            "class Net(nn.Sequential):\n    def __init__(self, shape, classes, width=5):\n"
            "        super().__init__(nn.Flatten(), nn.Linear(prod(shape), width), nn.Linear(width, classes))\n"
            "def stack(classes):\n    return [Dense(9), ReLU(), Dense(classes)]\n"
            "def module(shape):\n    return Net(shape, 10)\n"
            "def wide(width):\n    return []\n"
            "def broken():\n    raise KeyError('x')\n"
            "few = [Dense(4)]\nnumber = 7\n"
        )
        sizes = {"Net": 784 * 5 + 5 + 60, "stack": 784 * 9 + 9 + 100, "module": 784 * 5 + 5 + 60}
        for name, size in sizes.items():
            settings = fs.preset("tiny", [f"learning.model={file}:{name}"]).learning
            made = learning.make(settings, DATA, threads=1)
            assert made is not None
            assert made.parameters == size
            assert made.name == ("native" if name == "stack" else "torch")
        for name, sentence in {
            "wide": "needs an argument width, and only shape and classes can be given",
            "broken": "failed: KeyError: 'x'",
            "few": "gives 4 logits, and the data set has 10 classes",
            "number": "must be an nn.Module class, a Model, a list of layers, or a function",
        }.items():
            with pytest.raises(ScenarioError, match=sentence):
                learning.make(fs.preset("tiny", [f"learning.model={file}:{name}"]).learning, DATA)

    def test_a_scenario_names_it_by_file_or_import_path(self, tmp_path: Path) -> None:
        file = tmp_path / "my_nets.py"
        file.write_text(
            "from torch import nn\n\nclass Net(nn.Sequential):\n"
            "    def __init__(self):\n        super().__init__(nn.Flatten(), nn.Linear(784, 10))\n"
        )
        run = fs.simulate(fs.preset("tiny", [f"learning.model={file}:Net", "system.rounds=4"]), 0)
        assert run.about["engine"]["name"] == "torch"
        assert run.rounds["accuracy"][-1] > 0.5  # ten classes: chance is 0.1


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "feelstream.learning.torch_engine")
    with pytest.raises(EngineError, match=r"install 'feelstream\[torch\]'"):
        __import__("feelstream.learning.torch_engine")
