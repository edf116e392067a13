"""The torch engine: modules of one's own, and what they may be fed and built of; ours are in test_engines.py."""

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
from feelstream.data.datasets import load
from feelstream.errors import EngineError, ScenarioError
from feelstream.learning.contract import LocalSGD
from feelstream.learning.models import build
from feelstream.run import dataset_of

torch = pytest.importorskip("torch")
from feelstream.learning.torch_engine import TorchLearner  # noqa: E402
from feelstream.learning.torch_modules import draws_random_numbers  # noqa: E402

DATA = load("synthetic", samples=600, test_samples=300)


def learner(model: Any, **settings: Any) -> TorchLearner:
    model = build(model, DATA.shape, DATA.classes) if isinstance(model, str) else model
    return TorchLearner(model, DATA, **settings)


def batches(devices: int = 3, steps: int = 4, batch: int = 8) -> NDArray[np.int64]:
    return np.random.default_rng(5).integers(600, size=(devices, steps, batch))


class Normed(torch.nn.Module):
    def __init__(self, shape: Any = (1, 28, 28), classes: int = 10) -> None:
        super().__init__()
        self.body = torch.nn.Linear(784, 6)
        self.norm = torch.nn.BatchNorm1d(6, momentum=0.5)
        self.head = torch.nn.Linear(6, classes)

    def forward(self, x: Any) -> Any:
        self.last = torch.relu(self.norm(self.body(x.flatten(1))))  # kept in an attribute, as people do
        return self.head(self.last)


class Softmax(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(784, 10)

    def forward(self, x: Any) -> Any:
        return self.dense(x.flatten(1))


class Dropping(Softmax):
    def forward(self, x: Any) -> Any:
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
        engine, ours = learner(Softmax), learner("softmax")
        theta, drawn = engine.init(2), batches(2, 5, 8)
        assert engine.parameters == 7850
        assert np.array_equal(engine.train(theta, drawn, 0.1).updates, ours.train(theta, drawn, 0.1).updates)
        assert engine.evaluate(theta) == ours.evaluate(theta)

    def test_initial_weights_follow_the_seed_and_leave_torch_alone(self) -> None:
        torch.manual_seed(99)
        expected, threads = torch.rand(3), torch.get_num_threads()
        torch.manual_seed(99)
        engine = learner(Dropping)
        assert (engine.name, engine.details["torch"]) == ("torch", torch.__version__)
        theta = engine.init(7)
        engine.train(theta, batches(2, 2, 4), 0.1)
        engine.evaluate(theta)
        assert torch.equal(torch.rand(3), expected)
        assert torch.get_num_threads() == threads
        assert np.array_equal(theta, engine.init(7))
        assert not np.array_equal(theta, engine.init(8))
        torch.manual_seed(7)
        same = torch.nn.utils.parameters_to_vector(Softmax().parameters()).detach().numpy()
        assert np.array_equal(theta, same)

    def test_dropout_is_a_function_of_the_batches(self) -> None:
        engine, drawn = learner(Dropping), batches(3, 4, 8)
        theta = engine.init(0)
        cohort = engine.train(theta, drawn, 0.1).updates
        assert np.array_equal(cohort[2], engine.train(theta, drawn[2:], 0.1).updates[0])
        assert not np.array_equal(cohort, learner(Softmax).train(theta, drawn, 0.1).updates)

    def test_frozen_parameters_stay_whatever_is_added_to_the_gradient(self) -> None:
        engine, sgd = learner(HalfFrozen), LocalSGD(0.1, momentum=0.9, weight_decay=0.1, prox=1.0, clip=1.0)
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
                r'has a BatchNorm layer \(norm\) without running statistics.*batch_norm = "batch"',
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
            learner(make)

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


class TestBatchNorm:
    def test_running_statistics_are_part_of_the_model(self) -> None:
        engine = learner(Normed)
        trained = sum(parameter.numel() for parameter in Normed().parameters())
        theta = engine.init(3)
        assert engine.parameters == trained + 12
        assert theta[-12:].tolist() == [0.0] * 6 + [1.0] * 6
        update = engine.train(theta, batches(1), 0.05).updates[0]
        module, drawn = Normed(), batches(1)[0]
        torch.nn.utils.vector_to_parameters(torch.from_numpy(theta[:trained].copy()), module.parameters())
        optimiser = torch.optim.SGD(module.parameters(), 0.05)
        for batch in drawn:  # PyTorch's own training, which moves the statistics in each step
            optimiser.zero_grad()
            images = (torch.from_numpy(DATA.train_images[batch]) / 255 - DATA.mean) / DATA.std
            labels = torch.from_numpy(DATA.train_labels[batch].astype(np.int64))
            torch.nn.functional.cross_entropy(module(images.float()), labels).backward()
            optimiser.step()
        moved = [*module.parameters(), module.norm.running_mean, module.norm.running_var]
        after = torch.cat([values.detach().reshape(-1) for values in moved]).numpy()
        np.testing.assert_allclose(theta + update, after, atol=2e-5)
        module.eval()
        said = engine.predict(after.astype(np.float32), "train", np.arange(5))
        images = (torch.tensor(DATA.train_images[:5]) / 255 - DATA.mean) / DATA.std
        assert said.classes.tolist() == module(images.float()).argmax(1).tolist()

    def test_without_statistics_a_batch_is_normalised_by_itself(self) -> None:
        engine = learner(Normed, batch_norm="batch")
        theta = engine.init(3)
        assert engine.parameters == learner(Normed).parameters - 12
        assert np.array_equal(theta, learner(Normed).init(3)[:-12])
        assert engine.train(theta, batches(), 0.05).updates.shape == (3, engine.parameters)
        many, few = (engine.predict(theta, "train", np.arange(n)).losses[:5] for n in (40, 5))
        assert not np.allclose(many, few)  # said in the page

    def test_a_variance_below_zero_counts_as_zero_and_a_batch_of_one_is_a_sentence(self) -> None:
        engine = learner(Normed)
        theta = engine.init(0)
        theta[-6:] = -1.0
        assert np.isfinite(engine.evaluate(theta).loss)
        with pytest.raises(EngineError, match="cannot normalise a batch of one sample"):
            engine.train(engine.init(0), batches(1, 2, 1), 0.05)

    def test_a_run_averages_them_and_repeats(self, tmp_path: Path) -> None:
        fields: dict[str, Any] = {"model": f"{__file__}:Normed", "rounds": 4, "lr": 0.1, "samples": 400}
        run = fs.simulate("tiny", out=tmp_path / "run", **fields)
        theta = run.model().theta
        assert not np.array_equal(theta[-12:], [0.0] * 6 + [1.0] * 6)
        assert (theta[-6:] > 0).all()
        assert run.rounds["accuracy"][-1] == run.model().evaluate().accuracy
        again = fs.simulate("tiny", threads=1, **fields)
        assert again.rounds.equals(run.rounds)
        assert fs.simulate("tiny", **fields, batch_norm="batch").model().theta.size == theta.size - 12


class TestThreads:
    def test_a_module_of_ones_own_uses_them_and_gives_the_same_bits(self) -> None:
        one, three = learner(Normed, threads=1), learner(Normed, threads=3)
        assert (one._threads, three._threads) == (1, 3)
        theta, drawn = one.init(0), batches(5)
        assert np.array_equal(one.train(theta, drawn, 0.1).updates, three.train(theta, drawn, 0.1).updates)
        assert one.evaluate(theta) == three.evaluate(theta)
        held = np.random.default_rng(0).integers(0, 600, (4, 9))
        assert np.array_equal(one.gradients(theta, held).values, three.gradients(theta, held).values)

    def test_random_numbers_keep_devices_one_after_the_other(self) -> None:
        engine = learner(Dropping, threads=3)
        assert engine._threads == 1
        theta, drawn = engine.init(0), batches(4)
        assert np.array_equal(
            engine.train(theta, drawn, 0.1).updates, learner(Dropping).train(theta, drawn, 0.1).updates
        )
        inputs = torch.zeros(2, 1, 28, 28)
        before = torch.get_rng_state()
        assert [draws_random_numbers(make(), inputs) for make in (Normed, Dropping)] == [False, True]
        assert not torch.equal(before, torch.get_rng_state())  # making the modules drew, trying them did not


class TestDevice:
    def test_cpu_is_the_same_under_its_name(self) -> None:
        assert learner(Normed, device="cpu").details == learner(Normed).details
        theta = learner(Normed).init(0)
        named = learner(Normed, device="cpu:0").train(theta, batches(), 0.1).updates
        assert np.array_equal(named, learner(Normed).train(theta, batches(), 0.1).updates)

    def test_one_that_is_not_there_is_a_sentence_and_the_native_engine_has_none(self) -> None:
        for device in ("cuda:7", "quantum", "meta"):
            with pytest.raises(EngineError, match=f"learning.device: '{device}' cannot be used here"):
                learner(Normed, device=device)
        with pytest.raises(EngineError, match="the native engine computes on the CPU alone, not on 'cuda'"):
            fs.simulate(fs.preset("tiny").with_(device="cuda", engine="native"))
        with pytest.raises(EngineError, match="cannot be used here"):  # auto means torch there
            fs.simulate(fs.preset("tiny").with_(device="quantum"))


class Bag(torch.nn.Module):
    """Mean of embeddings; the class is whether small or large tokens prevail."""

    def __init__(self, vocabulary: int, classes: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, 4)
        self.head = torch.nn.Linear(4, classes)

    def forward(self, tokens: Any) -> Any:
        assert tokens.dtype == torch.int64
        assert tokens.shape[1:] == (7,)
        return self.head(self.words(tokens).mean(1))


class SmallBag(Bag):
    def __init__(self, classes: int) -> None:
        super().__init__(5, classes)


def tokens(path: Path, kind: Any = np.int32) -> Path:
    rng = np.random.default_rng(0)

    def part(n: int) -> tuple[Any, Any]:
        labels = rng.integers(0, 2, n)
        return (rng.integers(0, 10, (n, 7)) + 10 * labels[:, None]).astype(kind), labels

    (x, y), (x_test, y_test) = part(600), part(200)
    np.savez(path, x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    return path


class TestTokens:
    def test_they_reach_an_embedding_as_whole_numbers(self, tmp_path: Path) -> None:
        path = tokens(tmp_path / "tokens.npz")
        data = load(str(path))
        assert (data.shape, data.vocabulary, data.train_images.dtype) == ((7, 1, 1), 20, np.int64)
        assert (data.mean, data.std) == (0.0, 1.0)
        fields: dict[str, Any] = {"dataset": str(path), "rounds": 6, "lr": 1.0, "model": f"{__file__}:Bag"}
        fields |= {"evaluators": ["test", "stream"], "cpu.cycles": "auto"}
        run = fs.simulate("tiny", **fields)
        assert run.rounds["accuracy"][-1] > 0.9
        assert run.model().predict(np.full((1, 7), 19)).shape == (1,)
        assert load(str(tokens(tmp_path / "other.npz", np.uint16))).digest == data.digest

    def test_a_model_of_real_numbers_is_a_sentence(self, tmp_path: Path) -> None:
        fields: dict[str, Any] = {"dataset": str(tokens(tmp_path / "tokens.npz"))}
        for engine in ("auto", "torch"):
            with pytest.raises(EngineError, match=r"holds tokens, and 'softmax' takes real numbers; .*nn\.Embedding"):
                fs.simulate("tiny", engine=engine, **fields)

    def test_a_small_vocabulary_is_seen_before_the_first_round(self, tmp_path: Path) -> None:
        with pytest.raises(EngineError, match="does not accept tokens from 0 to 19"):
            fs.simulate("tiny", dataset=str(tokens(tmp_path / "tokens.npz")), model=f"{__file__}:SmallBag")


def test_features_may_stay_as_they_are(tmp_path: Path) -> None:
    x, y = np.arange(24.0).reshape(12, 2) * 3 + 1, np.arange(12) % 2
    np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    plain, usual = (load(str(tmp_path / "own.npz"), normalise=how) for how in ("none", "auto"))
    assert plain.train_images[:, :, 0, 0].tolist() == x.tolist()
    assert usual.train_images.mean() == pytest.approx(0, abs=1e-6)
    assert usual.digest == plain.digest
    scenario = fs.preset("tiny")
    assert [dataset_of(each).std == 1 for each in (scenario, scenario.with_(normalise="none"), scenario)] == [0, 1, 0]
    run = fs.simulate(scenario.with_(normalise="none", rounds=2))
    assert run.rounds["loss"][-1] != fs.simulate(scenario.with_(rounds=2)).rounds["loss"][-1]
    assert run.model().evaluate().loss == run.rounds["loss"][-1]


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "feelstream.learning.torch_engine")
    with pytest.raises(EngineError, match=r"get it with pip install 'torch>="):
        __import__("feelstream.learning.torch_engine")
