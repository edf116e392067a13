"""Local training as a scenario asks for it: SGD's schedules, mini-batches and what devices keep; a user's function."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import small

import feelstream as fs
from feelstream.data.datasets import assembled
from feelstream.errors import EngineError, FeelstreamError, ScenarioError
from feelstream.learning.contract import ABSENT, Learner
from feelstream.learning.local import Cohort, Schedule, Sgd, rows_of, with_rows
from feelstream.learning.models import Dense, Model
from feelstream.learning.native import NativeLearner
from feelstream.testing.kinds import named
from feelstream.testing.player import check_kind


@lru_cache
def learner() -> Learner:
    """A linear model of two classes of noisy points."""
    rng = np.random.default_rng(5)
    labels = rng.integers(2, size=120)
    points = (rng.normal(size=(120, 1, 1, 6)) + labels[:, None, None, None]).astype(np.float32)
    arrays = {"x_train": points, "y_train": labels, "x_test": points, "y_test": labels}
    return NativeLearner(Model((1, 1, 6), (Dense(2),)), assembled("points", arrays, "none"), 1)


def cohort(held: dict[int, int], round: int = 1) -> Cohort:
    """Devices that hold so many samples each, numbered from 10 times the device."""

    def numbers(device: int) -> np.ndarray:
        return 10 * device + np.arange(held[device])

    def draw(device: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.choice(numbers(device), shape)

    return Cohort(0, round, 10, 9, np.array(sorted(held)), numbers, draw)


def test_the_old_names_are_read_as_the_new_ones() -> None:
    wanted = fs.preset("tiny", ["learning.local.lr=0.1", "learning.local.steps=3"])
    assert wanted.learning.local == Sgd(lr=0.1, steps=3)
    assert fs.preset("tiny", ["learning.lr=0.1", "learning.steps=3"]) == wanted
    assert fs.preset("tiny").with_(lr=0.1, steps=3) == wanted
    fields = {"lr": 0.1, "steps": 3}
    assert fs.Scenario.of({"learning": fields}) == fs.Scenario.of({"learning": {"local": fields}})
    with pytest.raises(ScenarioError, match=r"learning\.lr: is learning\.local\.lr, which is given too"):
        fs.Scenario.of({"learning": {"lr": 0.1, "local": {"lr": 0.1}}})


@pytest.mark.parametrize("schedule", ["step", "cosine", "inverse"])
def test_schedules_are_those_of_pytorch(schedule: Schedule) -> None:
    torch = pytest.importorskip("torch")
    from torch.optim import lr_scheduler

    sgd = Sgd(lr=0.4, schedule=schedule, decay=0.3, every=4, floor=0.1)
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    theirs = {
        "step": lambda: lr_scheduler.StepLR(optimiser, 4, 0.3),
        "cosine": lambda: lr_scheduler.CosineAnnealingLR(optimiser, 20, 0.04),
        "inverse": lambda: lr_scheduler.LambdaLR(optimiser, lambda t: 1 / (1 + 0.3 * t / 4)),
    }[schedule]()
    for t in range(1, 21):
        assert sgd.rate(t, 20) == pytest.approx(theirs.get_last_lr()[0])
        optimiser.step()
        theirs.step()


def test_an_epoch_takes_every_sample_once_and_the_last_batch_is_short() -> None:
    devices = cohort({2: 7})
    drawn = Sgd(epochs=2, batch=3, sampling="epoch").of_device(devices, 2)
    assert drawn.shape == (6, 3)
    for order in (drawn[:3].ravel(), drawn[3:].ravel()):
        assert sorted(order[:7]) == devices.held(2).tolist()
        assert (order[7:] == ABSENT).all()
    assert not np.array_equal(drawn[:3], drawn[3:])


def test_epochs_give_each_device_steps_by_what_it_holds() -> None:
    for sampling in ("epoch", "replacement"):
        local = Sgd(epochs=2, batch=4, sampling=sampling)
        steps = [len(local.of_device(cohort({1: held}), 1)) for held in (1, 4, 9)]
        assert steps == ([2, 2, 6] if sampling == "epoch" else [1, 2, 5])  # ⌈2·9/4⌉ = 5, not 2·⌈9/4⌉


def test_rows_of_devices_are_kept_by_number() -> None:
    rng = np.random.default_rng(0)
    kept: dict[str, Any] = {}
    dense = np.zeros((9, 3), np.float32)
    for _ in range(20):
        ids = rng.permutation(9)[:4]
        rows, where = rng.normal(size=(4, 3)).astype(np.float32), rng.random(4) < 0.6
        kept = with_rows(kept, {"ids": ids[where], "rows": rows[where]})
        dense[ids[where]] = rows[where]
        assert np.array_equal(rows_of(kept, np.arange(9), 3), dense)


def test_momentum_that_is_kept_goes_on_where_it_was() -> None:
    """Two rounds of 3 steps from θ and from where they ended are one round of 6 steps, where nobody else trains."""
    engine, devices = learner(), cohort({2: 40})
    whole, parts = Sgd(steps=6, momentum=0.9, keep="momentum"), Sgd(steps=3, momentum=0.9, keep="momentum")
    theta = engine.init(0)
    batches = whole.of_device(devices, 2)
    halves = iter((batches[:3], batches[3:]))
    halved = Cohort(0, 1, 10, 9, devices.ids, devices.held, lambda *_: next(halves))
    wanted, _ = whole.train(engine, theta, devices, {})
    state: dict[str, Any] = {}
    for _ in range(2):
        training, after = parts.train(engine, theta, halved, state)
        state = parts.update(state, after, halved, np.array([False]))  # lost on the way, and kept all the same
        theta = theta + training.updates[0]
    np.testing.assert_allclose(theta, engine.init(0) + wanted.updates[0], rtol=1e-5, atol=1e-6)


def test_scaffold_is_its_algorithm() -> None:
    """Against Algorithm 1, option II, of Karimireddy et al. 2020, step by step with gradients in float64."""
    rng, engine, local = np.random.default_rng(1), learner(), Sgd(steps=4, batch=6, lr=0.2, keep="scaffold")
    held, theta = (10, 33, 1, 64, 7, 32), engine.init(0)
    state: dict[str, Any] = {}
    common, own = np.zeros(len(theta)), np.zeros((9, len(theta)))
    for t in range(1, 6):
        ids, sent = rng.permutation(6)[:3].tolist(), rng.random(3) >= 0.3
        devices = cohort({k: held[k] for k in ids}, t)
        training, after = local.train(engine, theta, devices, state)
        state = local.update(state, after, devices, sent)
        before = common.copy()
        for row, k in enumerate(devices.ids):
            y = theta.astype(np.float64)
            for batch in local.of_device(devices, int(k)):
                gradient = engine.gradients(y.astype(np.float32), batch[None]).values[0]
                y = y - 0.2 * (gradient + before - own[k])
            np.testing.assert_allclose(training.updates[row], y - theta, rtol=1e-3, atol=1e-5)
            change = -before + (theta - y) / (4 * 0.2)
            if sent[row]:
                own[k] += change
                common += change / 9
        np.testing.assert_allclose(state["common"], common, rtol=1e-3, atol=1e-4)
        kept = rows_of(state["own"], np.arange(9), len(theta))
        np.testing.assert_allclose(kept, own, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(common, own.mean(axis=0), atol=1e-12)  # what the choice about lost updates is for
        theta = (theta + training.updates[sent].sum(axis=0) / 3).astype(np.float32)


OWN = """
import numpy as np
import torch
from torch.nn.functional import cross_entropy

def plain(module, sampler, round, state, generator, lr):
    weights = list(module.parameters())
    for inputs, labels in sampler:
        losses = cross_entropy(module(inputs), labels, reduction="none")
        sampler.report(losses)
        gradients = torch.autograd.grad(losses.mean(), weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients):
                weight -= lr * gradient

def shaky(module, sampler, round, state, generator):
    noise = float(torch.rand(1, generator=generator)) + float(torch.rand(1))
    with torch.no_grad():
        for weight in module.parameters():
            weight += noise * 1e-3
    return {"rounds": state.get("rounds", np.zeros(0)).tolist() and state["rounds"] or np.array([round])}

def now_and_then(module, sampler, round, state, generator):
    assert bool(state) == (round % 2 == 0), state
    return {"round": np.array(round)} if round % 2 else None

def forgetful(module, sampler, round, state, generator):
    return [1]

def broken(module, sampler, round, state, generator):
    raise RuntimeError("no such luck")

def short(module, sampler):
    pass
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def learning(*more: str) -> fs.Scenario:
    return small("learning.engine=torch", "learning.local.steps=3", "learning.local.batch=8", *more)


def test_a_function_that_does_what_sgd_does_gives_its_model(own: Path) -> None:
    ours, theirs = fs.simulate(learning()), fs.simulate(learning(f"learning.local.kind={own}:plain"))
    np.testing.assert_allclose(theirs.model().theta, ours.model().theta, rtol=1e-5, atol=1e-7)
    assert theirs.rounds["scheduled"].equals(ours.rounds["scheduled"])


def test_a_function_is_handed_what_it_returned_last(own: Path) -> None:
    """Nothing, where that was nothing."""
    alone = ("system.devices=1", "policy.size=1", "cpu.frequency_hz=[1e9, 1.5e9]")
    fs.simulate(learning(f"learning.local.kind={own}:now_and_then", *alone))


def test_auto_takes_the_torch_engine_and_native_is_refused(own: Path) -> None:
    kind = f"learning.local.kind={own}:plain"
    assert fs.simulate(small("learning.engine=auto", kind, "system.rounds=1")).manifest.engine["name"] == "torch"
    with pytest.raises(EngineError, match=r"learning\.engine: '.*own\.py:plain' of learning\.local trains nn\.Modules"):
        fs.simulate(small("learning.engine=native", kind))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("forgetful", r"'.*own\.py:forgetful' must return a dictionary of arrays, or nothing, for device \d"),
        ("broken", r"'.*own\.py:broken' failed for device \d in round \d: .*no such luck .*own\.py, line 31"),
        ("short", r"learning\.local\.kind: '.*short' must take five arguments"),
    ],
)
def test_what_a_function_does_wrong_becomes_a_sentence(name: str, sentence: str, own: Path) -> None:
    with pytest.raises(FeelstreamError, match=sentence):
        fs.simulate(learning(f"learning.local.kind={own}:{name}"))


@pytest.mark.parametrize("name", ["plain", "shaky"])
def test_functions_keep_the_contract(name: str, own: Path) -> None:
    results = check_kind(*named(f"{own}:{name}", "local_training"))
    assert [result.problem for result in results if not result.ok] == []
