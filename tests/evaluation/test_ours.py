"""Our evaluators against their definitions, computed sample by sample; test sets that change with the round."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import devices_of, small

import feelstream as fs
from feelstream import learning, simulate
from feelstream.evaluation import EVALUATORS, EvaluationContext, Held, Predict, Predictions, TestSet
from feelstream.run.preparing import dataset_of, prepare

ALL = 'learning.evaluators=["test", "stream", "devices", "classes"]'
ENGINES = ("native", "torch")


class Engine:
    """Says of samples what it is given, and notes which training samples it was asked about."""

    def __init__(self, said: dict[str, Predictions]) -> None:
        self.said, self.asked = said, list[list[int]]()

    def predict(self, theta: Any, of: str, samples: Any) -> Predictions:
        if samples is None:
            return self.said[of]
        self.asked.append(samples.tolist())
        return self.said[of].of(samples)


def context(
    said: dict[str, Predictions] | Engine, held: Held, *, classes: int = 3, round: int = 1, rounds: int = 5
) -> EvaluationContext:
    predict = Predict(np.zeros(1, np.float32), said if isinstance(said, Engine) else Engine(said))
    test = TestSet(np.zeros(0, np.uint8), lambda: np.zeros((0, 1, 1, 1)))
    return EvaluationContext(predict, test, held, round, rounds, classes)


def predictions(classes: list[int], labels: list[int], losses: list[float] | None = None) -> Predictions:
    given = losses or [0.0] * len(labels)
    return Predictions(np.array(given, np.float32), np.array(classes, np.int32), np.array(labels, np.int32))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_number_follows_from_single_samples(engine: str) -> None:
    """Eq. (2) and the rest, from predictions of one sample at a time by a learner of its own."""
    if engine == "torch":
        pytest.importorskip("torch")
    scenario = small(f"learning.engine={engine}", ALL, "learning.lr=0.1", "learning.steps=2", "system.rounds=4")
    player, _ = prepare(scenario, 3, 1)
    learner = learning.make(scenario.learning, dataset_of(scenario), 1)
    assert learner is not None
    best = np.zeros(10)
    for _ in range(scenario.system.rounds):
        record = player.step()
        theta, stream = record.theta, player.world.stream
        assert theta is not None
        numbers, arrays = record.measured.numbers, {entry[:2]: entry[2] for entry in record.measured.arrays}
        loss, right = np.full(6, np.nan), np.full(6, np.nan)
        for k in range(6):
            held = stream.samples(k)
            if len(held):
                each = [learner.predict(theta, "train", np.array([number])) for number in held]
                loss[k] = np.mean([float(one.losses[0]) for one in each])
                right[k] = np.mean([float(one.correct[0]) for one in each])
        weight = stream.stored / stream.stored.sum()
        assert numbers["stream_loss"] == pytest.approx(np.nansum(weight * loss), rel=1e-5)
        assert numbers["stream_accuracy"] == pytest.approx(np.nansum(weight * right), rel=1e-12)
        np.testing.assert_allclose(arrays["stream", "loss"], loss, rtol=1e-5)
        np.testing.assert_array_equal(arrays["devices", "accuracy"], right)
        there = right[~np.isnan(right)]
        assert numbers["device_accuracy_mean"] == pytest.approx(there.mean())
        assert numbers["device_accuracy_std"] == pytest.approx(there.std())
        assert numbers["worst_tenth"] == there.min()  # of six devices, the worst tenth is one
        said = learner.predict(theta, "test")
        recall = np.array([said.correct[said.labels == label].mean() for label in range(10)])
        best = np.maximum(best, recall)
        assert numbers["forgetting"] == pytest.approx((best - recall).mean())
        assert (numbers["loss"], numbers["accuracy"]) == astuple(learner.evaluate(theta))
        assert (("classes", "confusion") in arrays) == (record.observation.round == 4)
        if ("classes", "confusion") in arrays:
            confusion = arrays["classes", "confusion"].reshape(10, 10)
            assert confusion.sum(axis=1).tolist() == arrays["classes", "tested"].tolist()
            assert np.trace(confusion) == said.correct.sum()


def test_the_worst_tenth_of_25_devices_is_the_mean_of_three() -> None:
    right = [number / 25 for number in range(25)]
    samples = [np.array([k, 25 + k]) for k in range(25)]
    said = {"train": predictions([0] * 50, [0] * 25 + [1] * 25)}
    values, _ = EVALUATORS.instance("devices").evaluate(context(said, Held(lambda: samples)), {})
    assert values["worst_tenth"] == 0.5
    assert values["device_accuracy_std"] == 0
    samples = [np.concatenate([np.full(k, 0), np.full(25 - k, 49)]) for k in range(25)]
    values, _ = EVALUATORS.instance("devices").evaluate(context(said, Held(lambda: samples)), {})
    assert values["worst_tenth"] == pytest.approx(np.mean(right[:3]))
    assert values["device_accuracy_mean"] == pytest.approx(np.mean(right))


def test_a_sample_counts_as_often_as_it_is_held_and_is_computed_once() -> None:
    engine = Engine({"train": predictions([0, 1, 1], [0, 0, 1], [1.0, 2.0, 4.0])})
    found = context(engine, Held(lambda: [np.array([0, 0, 2]), np.array([], np.int64), np.array([2])]))
    values, _ = EVALUATORS.instance("stream").evaluate(found, {})
    assert values["stream_loss"] == (1 + 1 + 4 + 4) / 4
    assert values["stream_accuracy"] == 1.0
    EVALUATORS.instance("devices").evaluate(found, {})
    found.predict("train", np.array([[1, 0], [2, 1]]))
    assert engine.asked == [[0, 2], [1]]


def test_nothing_is_measured_of_what_nobody_holds() -> None:
    held = Held(lambda: [np.array([], np.int64)] * 2)
    for name in ("stream", "devices"):
        values, _ = EVALUATORS.instance(name).evaluate(context({"train": predictions([], [])}, held), {})
        assert all(np.isnan(value).all() for value in values.values())


def test_forgetting_remembers_each_class_by_itself() -> None:
    evaluator, held = EVALUATORS.instance("classes"), Held(list)
    state = evaluator.init(1, 3)
    labels = [0, 0, 1, 1]  # nothing of class 2
    forgot = []
    for classes in ([0, 0, 2, 2], [0, 1, 1, 1], [2, 2, 1, 0]):
        values, state = evaluator.evaluate(context({"test": predictions(classes, labels)}, held), state)
        forgot.append(values["forgetting"])
    assert forgot == [0, 0.25, (1 + 0.5) / 2]
    assert state["best"].tolist() == [1, 1, 0]
    assert np.isnan(values["recall"][2])


def test_a_class_that_no_label_has_counts_as_wrong() -> None:
    """A model may have more logits than the data set has classes."""
    said = {"test": predictions([0, 7, 1, 2], [0, 0, 1, 2])}
    evaluator = EVALUATORS.instance("classes")
    values, _ = evaluator.evaluate(context(said, Held(list), round=5), evaluator.init(1, 3))
    assert values["recall"].tolist() == [0.5, 1, 1]
    assert values["confusion"].sum() == 3
    assert values["tested"].tolist() == [2, 1, 1]


def test_the_test_alone_is_as_before_and_gathers_nothing() -> None:
    plain, all_of_them, without = (
        simulate(small("learning.engine=native", *more), 2) for more in ((), (ALL,), ("learning.evaluators=[]",))
    )
    assert plain.evaluations is None
    assert all_of_them.rounds.select(plain.rounds.columns).equals(plain.rounds)
    assert devices_of(all_of_them).equals(devices_of(plain))
    assert without.rounds["accuracy"].null_count() == 8
    assert without.rounds.drop("accuracy", "loss").equals(plain.rounds.drop("accuracy", "loss"))


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
