"""What a torch model may be fed and built of: tokens, BatchNorm, devices, threads; and data left as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feelstream as fs
from feelstream.data.datasets import load
from feelstream.errors import DataError, EngineError
from feelstream.run import dataset_of

torch = pytest.importorskip("torch")
from feelstream.learning.torch_engine import TorchLearner  # noqa: E402
from feelstream.learning.torch_modules import draws_random_numbers  # noqa: E402

DATA = load("synthetic", samples=60, test_samples=40)


class Normed(torch.nn.Module):
    def __init__(self, shape: Any = (1, 28, 28), classes: int = 10) -> None:
        super().__init__()
        self.body = torch.nn.Linear(784, 6)
        self.norm = torch.nn.BatchNorm1d(6, momentum=0.5)
        self.head = torch.nn.Linear(6, classes)

    def forward(self, x: Any) -> Any:
        self.last = torch.relu(self.norm(self.body(x.flatten(1))))  # kept in an attribute, as people do
        return self.head(self.last)


class Dropping(Normed):
    def forward(self, x: Any) -> Any:
        return super().forward(torch.nn.functional.dropout(x, 0.5, self.training))


def learner(make: Any = Normed, **settings: Any) -> TorchLearner:
    return TorchLearner(make, DATA, **settings)


def batches(devices: int = 3, steps: int = 4, batch: int = 8) -> Any:
    return np.random.default_rng(1).integers(0, 60, (devices, steps, batch))


class TestBatchNorm:
    def test_running_statistics_are_part_of_the_model(self) -> None:
        engine = learner()
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

    def test_a_variance_below_zero_counts_as_zero(self) -> None:
        engine = learner()
        theta = engine.init(0)
        theta[-6:] = -1.0
        assert np.isfinite(engine.evaluate(theta).loss)

    def test_without_statistics_a_batch_is_normalised_by_itself(self) -> None:
        engine = learner(batch_norm="batch")
        theta = engine.init(3)
        assert engine.parameters == learner().parameters - 12
        assert np.array_equal(theta, learner().init(3)[:-12])
        assert engine.train(theta, batches(), 0.05).updates.shape == (3, engine.parameters)
        many, few = (engine.predict(theta, "train", np.arange(n)).losses[:5] for n in (40, 5))
        assert not np.allclose(many, few)  # said in the page

    def test_a_batch_of_one_is_a_sentence(self) -> None:
        engine = learner()
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
        one, three = learner(threads=1), learner(threads=3)
        assert (one._threads, three._threads) == (1, 3)
        theta, drawn = one.init(0), batches(5)
        assert np.array_equal(one.train(theta, drawn, 0.1).updates, three.train(theta, drawn, 0.1).updates)
        assert one.evaluate(theta) == three.evaluate(theta)
        held = np.random.default_rng(0).integers(0, 60, (4, 9))
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
        assert learner(device="cpu").details == learner().details
        theta = learner().init(0)
        named = learner(device="cpu:0").train(theta, batches(), 0.1).updates
        assert np.array_equal(named, learner().train(theta, batches(), 0.1).updates)

    @pytest.mark.parametrize("device", ["cuda:7", "quantum", "meta"])
    def test_one_that_is_not_there_is_a_sentence(self, device: str) -> None:
        with pytest.raises(EngineError, match=f"learning.device: '{device}' cannot be used here"):
            learner(device=device)

    def test_the_native_engine_has_none(self) -> None:
        scenario = fs.preset("tiny").with_(device="cuda", engine="native")
        with pytest.raises(EngineError, match="the native engine computes on the CPU alone, not on 'cuda'"):
            fs.simulate(scenario)
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


class TestNormalise:
    def test_floats_stay_and_bytes_become_shares(self, tmp_path: Path) -> None:
        x, y = np.arange(24.0).reshape(12, 2) * 3 + 1, np.arange(12) % 2
        np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        plain = load(str(tmp_path / "own.npz"), normalise="none")
        assert plain.train_images.dtype == np.float32
        assert plain.train_images[:, :, 0, 0].tolist() == x.tolist()
        assert load(str(tmp_path / "own.npz")).train_images.mean() == pytest.approx(0, abs=1e-6)
        assert load(str(tmp_path / "own.npz")).digest == plain.digest
        shares = load("synthetic", samples=20, normalise="none")
        assert (shares.mean, shares.std) == (0.0, 1.0)

    def test_a_scenario_says_so_and_the_data_set_at_hand_is_not_taken_for_the_other(self) -> None:
        scenario = fs.preset("tiny")
        assert dataset_of(scenario).std != 1
        assert dataset_of(scenario.with_(normalise="none")).std == 1
        assert dataset_of(scenario).std != 1
        plain, usual = (fs.simulate(scenario.with_(normalise=how, rounds=2)) for how in ("none", "auto"))
        assert plain.rounds["loss"][-1] != usual.rounds["loss"][-1]
        assert plain.model().evaluate().loss == plain.rounds["loss"][-1]


def test_a_regression_is_a_sentence(tmp_path: Path) -> None:
    x = np.arange(8.0).reshape(4, 2)
    np.savez(tmp_path / "own.npz", x_train=x, y_train=x[:, 0], x_test=x, y_test=x[:, 0])
    with pytest.raises(DataError, match="feelstream learns classes, so labels must be integers from 0"):
        load(str(tmp_path / "own.npz"))
