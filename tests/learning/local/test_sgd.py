"""Local SGD as a scenario asks for it: schedules, mini-batches, what devices keep, and how runs go on."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import small
from stopped import goes_on_bit_for_bit

import feelstream as fs
from feelstream.data.datasets import assembled
from feelstream.errors import EngineError, ScenarioError
from feelstream.experiment.replaying import replay
from feelstream.learning.contract import ABSENT, Learner
from feelstream.learning.local import Cohort, Schedule, Sgd, rows_of, with_rows
from feelstream.learning.models import Dense, Model
from feelstream.learning.native import NativeLearner
from feelstream.testing import check
from feelstream.verification import verify

LEARNING = ("learning.engine=native", "learning.local.steps=3", "learning.local.batch=8")
KINDS = {
    "momentum": ("learning.local.momentum=0.9", "learning.local.keep=momentum"),
    "scaffold": ("learning.local.keep=scaffold", "learning.local.lr=0.1"),
    "fedprox in epochs": (
        "learning.local.prox=0.1", "learning.local.epochs=1", "learning.local.sampling=epoch", "policy.name=oort",
    ),
    "all of it": (
        "learning.local.nesterov=true", "learning.local.momentum=0.5", "learning.local.weight_decay=1e-3",
        "learning.local.clip=1.0", "learning.local.schedule=cosine",
    ),
}  # fmt: skip


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


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"nesterov": True}, r"learning\.local\.nesterov: must be false where momentum = 0"),
        ({"keep": "momentum"}, r"learning\.local\.keep: must not be momentum where momentum = 0"),
        ({"keep": "scaffold", "prox": 0.1}, r"learning\.local\.keep: scaffold goes with plain SGD"),
        ({"momentum": 1.0}, r"learning\.local\.momentum: must be less than 1, not 1\.0"),
        ({"schedule": "line"}, r"learning\.local\.schedule: must be 'constant', 'step', 'cosine' or 'inverse'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        fs.Scenario.of({"learning": {"local": settings}})


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


def test_what_a_run_cannot_do_is_a_sentence() -> None:
    with pytest.raises(EngineError, match=r"learning\.local\.lr"):
        fs.simulate(small(*LEARNING, "learning.local.lr=3e38"))
    with pytest.raises(ScenarioError, match=r"cpu\.cycles: auto needs learning\.local with a number of steps"):
        fs.simulate(small("cpu.cycles=auto", "learning.local.epochs=1"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_goes_on_from_a_checkpoint_bit_for_bit_and_is_verified(kind: str, tmp_path: Path) -> None:
    whole = goes_on_bit_for_bit(tmp_path, small(*LEARNING, *KINDS[kind]), at=5)
    assert verify(whole).ok
    assert replay(whole).ok


@pytest.mark.parametrize(
    "local",
    [
        Sgd(keep="scaffold", lr=0.1), Sgd(keep="momentum", momentum=0.9), Sgd(epochs=2, sampling="epoch", prox=0.1),
        Sgd(epochs=1, clip=0.5, schedule="cosine", weight_decay=0.01),
    ],
    ids=lambda each: each.keep,
)  # fmt: skip
def test_every_way_keeps_the_contract(local: Sgd) -> None:
    assert [result.problem for result in check(local) if not result.ok] == []
