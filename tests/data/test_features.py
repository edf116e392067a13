"""Features: what devices report of their data, against sums that are made here sample by sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import devices_of, small, verified
from sealing import seal
from stopped import goes_on_bit_for_bit

import feelstream as fs
from feelstream import learning
from feelstream.data.datasets import load
from feelstream.data.features import UNITS, Features, Labels, Samples, Sketch, Vectors
from feelstream.errors import PluginError, ScenarioError
from feelstream.experiment.replaying import ask_again
from feelstream.loop.simulation import Simulation
from feelstream.loop.told import MOST, Told
from feelstream.scenario import Scenario

LEARNS = ("learning.engine=auto", "learning.model=softmax", "learning.steps=2", "learning.lr=0.1")
SLOW = ("reports.pace=slow", "reports.least_fading=0.1")
BUFFERS = ("keep", "window data.buffer.rounds=3", "fifo data.buffer.capacity=7", "use_once")


class OneHot(Labels):
    """Label counts that devices report: what is told must be what is true."""

    @property
    def reported(self) -> bool:
        return True


class Wrong(Features):
    """Numbers of one's choice."""

    number: float = 0.5

    def size(self, classes: int) -> int:
        return 2

    def vectors(self, state: dict[str, Any], samples: Samples) -> np.ndarray:
        return np.full((len(samples.ids), 2), self.number)


class One(Features):
    """The number of samples."""

    def size(self, classes: int) -> int:
        return 1

    def vectors(self, state: dict[str, Any], samples: Samples) -> np.ndarray:
        return np.ones((len(samples.ids), 1))


class Many(Features):
    """Many small numbers, which would all be rounded up."""

    def size(self, classes: int) -> int:
        return 700

    def vectors(self, state: dict[str, Any], samples: Samples) -> np.ndarray:
        small = np.tile(np.where(np.arange(700) < 600, 0.6, 6.0) / UNITS, (len(samples.ids), 1))
        return small / (samples.ids[:, None] + 1.0)


def lists(frame: pl.DataFrame, name: str) -> np.ndarray:
    return np.array(frame[name].to_list())


def begun(scenario: Scenario, seed: int = 0) -> Simulation:
    data = load("synthetic", samples=scenario.data.samples)
    learner = learning.make(scenario.learning, data, 1) if scenario.learning.engine != "none" else None
    return Simulation(scenario, seed, data, learner)


@pytest.mark.parametrize("fresh", ["since_use", "per_round"])
@pytest.mark.parametrize("buffer", BUFFERS)
def test_counts_that_are_reported_are_those_that_are_true(buffer: str, fresh: str) -> None:
    """Everybody who holds data answers in every round, so the server knows 1024 times the label counts."""
    kind, *more = buffer.split()
    scenario = small(f"data.buffer.kind={kind}", *more, f"data.fresh={fresh}", "policy.name=balanced")
    devices = devices_of(fs.simulate(scenario.with_(**{"data.features": OneHot()}), 3))
    for told, true in (("fresh_features", "fresh_labels"), ("stored_features", "stored_labels")):
        np.testing.assert_array_equal(lists(devices, told), UNITS * lists(devices, true))
    if kind != "window":  # what was held when it was used may have left before the next round
        np.testing.assert_array_equal(lists(devices, "used_features"), UNITS * lists(devices, "used_labels"))


def test_with_the_same_costs_the_same_devices_are_scheduled_as_by_label_counts() -> None:
    """Only proportions count, so units change nothing; a slot shorter than a clock tick costs no time."""
    usual = small("policy.name=balanced", "policy.size=3")
    free = usual.overridden(["reports.slot_s=1e-9", "reports.cycles=0", "reports.bits=1e-9"])
    runs = [fs.simulate(each, 5) for each in (usual, free.with_(**{"data.features": OneHot()}))]
    one, other = (devices_of(run)["scheduled"].to_list() for run in runs)
    assert one == other


def test_a_sketch_counts_the_nearest_centres() -> None:
    data = load("synthetic", samples=300)
    sketch = Sketch(cells=5, components=3, reference_samples=80)
    vectors = Vectors(sketch, data, np.random.default_rng(4))
    state, ids = vectors.state, np.arange(300)
    inputs = (data.train_images[ids].reshape(300, -1) / 255 - data.mean) / data.std
    found = vectors.of(ids)
    for i in range(300):
        point = (inputs[i] - state["middle"]) @ state["axes"]
        nearest = min(range(5), key=lambda cell: float(((point - state["centres"][cell]) ** 2).sum()))
        assert found[i].tolist() == [UNITS * (cell == nearest) for cell in range(5)]
    drawn = np.sort(np.random.default_rng(4).choice(300, 80, replace=False))
    mix = found[drawn].sum(axis=0) / UNITS / 80
    np.testing.assert_allclose(vectors.reference, mix, rtol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_outputs_are_the_probabilities_of_what_a_device_holds(noise: float) -> None:
    scenario = small(*LEARNS, "data.features.kind=outputs", f"data.features.noise={noise}", "policy.name=balanced")
    simulation = begun(scenario)
    before = np.zeros((scenario.system.devices, 10), np.int64)
    away = []
    for _ in range(6):
        theta = simulation.theta
        senders = simulation.senders
        record = simulation.step()
        told, stream, learner = simulation.world.told, simulation.world.stream, simulation.learner
        assert told is not None
        assert learner is not None
        assert record.e_report_j is not None
        for k in np.flatnonzero(record.e_report_j):
            held = stream.samples(int(k))
            exactly = np.exp(learner.log_probabilities(theta, held).astype(float)) * UNITS
            too_many = np.rint(exactly).sum(axis=1, keepdims=True) > UNITS
            each = np.where(too_many, np.floor(exactly), np.rint(exactly))
            away += (told.stored[k] - each.sum(axis=0)).tolist()
        np.testing.assert_array_equal(told.used[senders], before[senders])  # X has what was told at use
        before = told.stored
    spread = np.array(away)
    if noise:  # L1 sensitivity of the two vectors is 2, in units of 1/UNITS; cut off at 0
        assert 0.5 < np.abs(spread).mean() / (2 * UNITS / noise) < 1.2
    else:
        assert len(spread) > 20
        assert not spread.any()


def test_rounding_lets_no_sample_count_for_more_than_noise_rests_on() -> None:
    """600 numbers of 0.6 and 100 of 6 would be 1,200 units when rounded up; half of that, 300, is left as it is."""
    found = Vectors(Many(), load("synthetic", samples=100), np.random.default_rng(0)).of(np.arange(2))
    assert found.sum(axis=1).tolist() == [600, 300]
    assert (found >= 0).all()


def test_sums_beyond_what_a_number_can_be_told_as_stay_there() -> None:
    more = ("data.arrivals.kind=poisson", "data.arrivals.rate=1e6", "system.devices=1", "policy.size=1")
    run = fs.simulate(small(*more, "system.rounds=3").with_(**{"data.features": One()}))
    devices = devices_of(run)
    stored = [min(UNITS * each, MOST) for each in devices["stored"].to_list()]
    assert lists(devices, "stored_features")[:, 0].tolist() == stored
    assert stored[-1] == MOST


def test_noise_is_added_once_to_what_is_new() -> None:
    """With ε = 1 the sum after r reports is off by the sum of r Laplace variables of scale 1: variance 2r."""
    told = Told(Vectors(Labels(noise=1.0), load("synthetic", samples=100), np.random.default_rng(0)), 400,
                since_use=True, empties=False, keeps=True)  # fmt: skip

    class Stream:
        stored_features = np.full((400, 10), 100 * UNITS, np.int32)
        fresh_features = stored_features

    for t in range(1, 4):
        told.tell(np.arange(400), Stream(), None, np.random.default_rng(t))  # type: ignore[arg-type]
        off = (told.snapshot()["total"] - Stream.stored_features) / UNITS
        assert off.var() == pytest.approx(2 * t, rel=0.15)  # 4,000 numbers: a standard error of some 4 %
    last = told.stored
    told.tell(np.arange(400), Stream(), None, np.random.default_rng(9))  # type: ignore[arg-type]
    assert (told.stored >= last).all()


def test_vectors_are_copied_when_they_change_and_only_then() -> None:
    """A million devices have hundreds of megabytes of them, and an observation must stay what it was."""
    told = Told(Vectors(Labels(), load("synthetic", samples=100), np.random.default_rng(0)), 3,
                since_use=True, empties=False, keeps=True)  # fmt: skip

    class Stream:
        stored_features = fresh_features = np.full((3, 10), UNITS)

    stored, fresh, used = told.stored, told.fresh, told.used
    told.tell(np.array([0, 2]), Stream(), None, np.random.default_rng(1))  # type: ignore[arg-type]
    assert not stored.flags.writeable
    assert not stored.any()
    assert not fresh.any()
    assert told.used is used
    stored, fresh = told.stored, told.fresh
    told.forget(np.array([False, True, False]))  # of which nothing is known
    assert told.stored is stored
    told.use(np.array([2]))
    assert told.stored is stored
    assert (used.any(), fresh[2].any(), told.used[2].all(), told.fresh[2].any()) == (False, True, True, False)


@pytest.mark.parametrize("kind", ["labels", "sketch", "outputs"])
@pytest.mark.parametrize(
    "more", [(), ("data.features.noise=1.0",), ("data.features.noise=1e-70",), ("data.features.every=3",), SLOW]
)
def test_runs_are_verified_asked_again_and_resumed(kind: str, more: tuple[str, ...], tmp_path: Path) -> None:
    cells = ["data.features.cells=6"] if kind == "sketch" else []
    scenario = small(*LEARNS, f"data.features.kind={kind}", *cells, "policy.name=balanced", *more)
    whole = goes_on_bit_for_bit(tmp_path, scenario, at=5)
    assert fs.verify(whole).ok
    assert ask_again(whole).ok


@pytest.mark.parametrize("column", ["fresh_features", "used_features", "stored_features"])
def test_a_changed_vector_is_seen(column: str, tmp_path: Path) -> None:
    fs.simulate(small("data.features.kind=sketch", "data.features.cells=6"), 1, out=tmp_path)
    path = tmp_path / "devices.parquet"
    frame = pl.read_parquet(path)
    row = int(np.flatnonzero(lists(frame, "stored_features").any(axis=1))[-1])
    values = frame[column].to_list()
    values[row] = [values[row][0] + UNITS, *values[row][1:]]
    frame.with_columns(pl.Series(column, values, frame.schema[column])).write_parquet(path)
    seal(tmp_path)
    assert not fs.verify(tmp_path).ok


def test_the_policy_within_the_budget_sets_the_cost_of_reports_aside() -> None:
    """So many joules that reports take a good part of them; none of the devices exceeds its budget."""
    scenario = small(
        "system.rounds=30", "policy.name=balanced_joint", "data.features.kind=sketch", "data.features.cells=6",
        "system.energy_budget_j=0.005", "reports.slot_s=0.2", "reports.cycles=2e7", *SLOW,
    )  # fmt: skip
    run = fs.simulate(scenario, 2)
    assert verified(run).ok
    devices = devices_of(run)
    spent = devices.group_by("device").agg(pl.sum("e_cmp_j", "e_tr_j", "e_report_j"))
    assert devices["scheduled"].sum() > 0
    computing, sending, reporting = (spent[name].to_numpy() for name in ("e_cmp_j", "e_tr_j", "e_report_j"))
    assert reporting.sum() > 0.01 * computing.sum()
    assert (computing + sending + reporting).max() <= 30 * 0.005


@pytest.mark.parametrize("policy", ["lyapunov policy.V=auto policy.cardinality=cap", "myopic_energy", "fedbacys"])
def test_policies_that_remember_what_was_spent_know_of_the_reports_of_all(policy: str, tmp_path: Path) -> None:
    """The queue of the whole fleet, which `verify` knows from the energies of all, and what each device has left."""
    name, *fields = policy.split()
    reports = ("data.features.kind=sketch", "data.features.cells=6", "reports.cycles=1e6", "reports.bits=1e4")
    budget = ("system.rounds=30", "system.energy_budget_j=0.05", "radio.fading=none")
    simulation = begun(scenario := small(f"policy.name={name}", *fields, *reports, *budget), 1)
    spent_j, scheduled = np.zeros(6), 0
    for _ in range(30):
        record = simulation.step()
        spent_j, scheduled = spent_j + record.energy_j, scheduled + len(record.decision.schedule)
        if name != "lyapunov":
            np.testing.assert_allclose(simulation.server.policy_state["spent_j"], spent_j, rtol=1e-12)
    assert scheduled > 5
    path = fs.simulate(scenario, 1).save(tmp_path / "run")
    assert fs.verify(path).ok
    assert ask_again(path).ok


def test_a_budget_that_reports_of_moving_devices_exceed_is_no_disagreement() -> None:
    """Those to come are reckoned at present mean gains: who moves away pays more, and nothing said otherwise."""
    run = fs.simulate(small(
        "system.rounds=60", "system.energy_budget_j=0.002", "policy.name=balanced_joint", "policy.size=4",
        "data.features.kind=sketch", "data.features.cells=4", "reports.cycles=0", "reports.bits=1e4",
        "reports.least_fading=0.1", "world.mobility.kind=random_direction", "world.mobility.speed_m_s=30",
        "radio.gain_db=[-25, 0]",
    ), 4)  # fmt: skip
    spent = devices_of(run).group_by("device").agg(pl.sum("e_cmp_j", "e_tr_j", "e_report_j")).drop("device")
    assert spent.sum_horizontal().max() > 60 * 0.002  # type: ignore[operator]
    assert verified(run).ok


def test_a_slow_report_takes_less_and_a_fade_keeps_devices_from_reporting() -> None:
    full = small("data.features.kind=sketch", "data.features.cells=6")
    slow = full.overridden(["reports.pace=slow"])
    deep = full.overridden(["reports.least_fading=0.5"])
    one, other, few = (devices_of(fs.simulate(each, 4)) for each in (full, slow, deep))
    assert (one["e_report_j"] > 0).to_list() == (other["e_report_j"] > 0).to_list()
    assert other["e_report_j"].to_numpy().sum() < 0.5 * one["e_report_j"].to_numpy().sum()
    answered = few.filter(pl.col("e_report_j") > 0)
    assert (answered["gain"] / answered["beta"]).min() >= 0.5  # type: ignore[operator]
    assert 0 < len(answered) < (one["e_report_j"] > 0).sum()


def test_reports_that_would_take_a_whole_budget_are_refused_by_the_policy_that_keeps_it() -> None:
    dear = small("policy.name=balanced_joint", "data.features.kind=sketch", "data.features.cells=6")
    with pytest.raises(ScenarioError, match=r"it could never train; set reports\.pace = slow"):
        fs.simulate(dear)


REFUSED = [
    (["data.features.kind=outputs"], "learning.engine: must not be none for features 'outputs'"),
    (["data.features.kind=sketch", "data.features.noise=1.0", "data.buffer.kind=window", "data.buffer.rounds=2"],
     "data.features.noise: must be 0 with the buffer window"),
    (["data.features.kind=sketch", "reports.slot_s=9"], "reports.slot_s: must be below system.round_s"),
    (["data.features.kind=sketch", "data.features.cells=0"], "data.features.cells: must be"),
    (["data.features.kind=cells"], "data.features.kind: 'cells' is not known"),
    ([*LEARNS, "data.features.every=2", "policy.name=gradient_norm"],
     "data.features.every: must be 1 for policy 'gradient_norm', which asks for reports in every round"),
    (["data.features.kind=sketch", "costs.download_bits=100"], "costs.download_bits: must be 0"),
]  # fmt: skip


@pytest.mark.parametrize(("overrides", "sentence"), REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        small(*overrides)


@pytest.mark.parametrize(("number", "sentence"), [(-0.5, "at least 0"), (0.75, "add up to 1.5, above its `most` of 1")])
def test_vectors_that_cannot_be_are_refused(number: float, sentence: str) -> None:
    with pytest.raises(PluginError, match=sentence):
        fs.simulate(small().with_(**{"data.features": Wrong(number=number)}))


def test_more_cells_than_reference_samples_are_refused() -> None:
    with pytest.raises(ScenarioError, match="at most the number of different reference samples"):
        fs.simulate(small("data.features.kind=sketch", "data.features.reference_samples=5"))
