"""The round loop: edge cases, what a policy learns of a round, memory, and the energies of the paper's table."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from builders import devices_of, small, verified

import feelstream as fs
from feelstream import learning as learn
from feelstream.data.datasets import load as load_dataset
from feelstream.errors import EngineError, PluginError, ScenarioError
from feelstream.evaluation import Held
from feelstream.learning.contract import Training
from feelstream.learning.local import MiniBatches
from feelstream.learning.server import FedAvg, UpdateContext
from feelstream.loop.simulation import Simulation
from feelstream.loop.world import World
from feelstream.policies import Random
from feelstream.policies.base import Decision, Observation, Outcome, State
from feelstream.run import dataset_of
from feelstream.scenario import Scenario

LEARNS = ("learning.engine=auto", "learning.model=softmax")
seen: list[Outcome] = []


def begin(scenario: Scenario, seed: int = 0, learning: bool = False) -> Simulation:
    data = load_dataset("synthetic", samples=scenario.data.samples)
    learner = learn.make(scenario.learning, data, 1) if learning else None
    return Simulation(scenario, seed, data, learner)


@pytest.mark.parametrize("policy", ["lyapunov", "random"])
def test_devices_without_data_are_scheduled_unless_data_is_asked_for(policy: str, tmp_path) -> None:
    """The paper's feasible set is by latency only; a scheduled device without data pays and changes nothing."""
    trace = tmp_path / "quiet.csv"
    trace.write_text("time,device,label\n")
    quiet = ("data.arrivals.kind=trace", f"data.arrivals.path={trace}", f"policy.name={policy}")
    none = fs.simulate(small(*quiet, "data.eligible=with_data"))
    assert none.rounds["scheduled"].sum() == 0
    assert none.rounds["queue_max_j"].sum() == 0
    run = fs.simulate(small(*quiet, *LEARNS))
    assert (run.rounds["scheduled"] > 0).all()
    assert (run.rounds["energy_mean_j"] > 0).all()
    assert run.rounds["loss"].n_unique() == 1  # θ never changes, and no weight is 0/0
    assert devices_of(run)["available"].all()


class Both(fs.Policy):
    """Devices 0 and 1, in every round."""

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        return Decision(np.array([0, 1]), observation.plan(2))

    def update(self, state: State, outcome: Outcome) -> State:
        seen.append(outcome)
        return state


@pytest.mark.parametrize("cardinality", ["exact", "cap", "free"])
def test_a_signed_queue_is_what_was_spent_less_what_was_granted(cardinality: str) -> None:
    run = fs.simulate(small("system.queue=signed", f"policy.cardinality={cardinality}", "system.energy_budget_j=0.1"))
    devices, budget_j = devices_of(run), 0.1
    spent_j = (devices["e_cmp_j"] + devices["e_tr_j"]).to_numpy().reshape(8, 6)
    queue_j = devices["queue_next_j"].to_numpy().reshape(8, 6)
    np.testing.assert_allclose(queue_j, np.cumsum(spent_j - budget_j, axis=0), rtol=0, atol=1e-12)
    assert queue_j.min() < 0
    verified(run)


@pytest.mark.parametrize("policy", ["lyapunov_joint", "ocean", "ocean policy.power=fixed"])
def test_a_policy_that_weighs_by_queues_refuses_signed_ones(policy: str) -> None:
    """With credit for spending, `ocean` would miss the best prefix: it bounds a prefix by the least energy."""
    name, *fields = policy.split()
    with pytest.raises(ScenarioError, match=rf"system.queue: must be from_zero for the policy {name}, which needs"):
        small("system.queue=signed", f"policy.name={name}", *fields)


def test_a_policy_that_ignores_queues_plays_the_same_with_signed_ones() -> None:
    runs = [fs.simulate(small(f"system.queue={q}", "policy.name=balanced_joint")) for q in ("signed", "from_zero")]
    one, other = (devices_of(run).drop("queue_j", "queue_next_j") for run in runs)
    assert one.equals(other)
    assert devices_of(runs[0])["queue_next_j"].to_numpy().min() < 0
    verified(runs[0])


def test_a_device_without_data_weighs_nothing(tmp_path) -> None:
    """Two devices send; the one that holds data decides the model alone, and the other has no loss to report."""
    seen.clear()
    trace = tmp_path / "one.csv"
    trace.write_text("time,device,label\n" + "0.5,0,1\n" * 5)
    scenario = small(
        f"data.arrivals.path={trace}", *LEARNS, "data.arrivals.kind=trace", "cpu.frequency_hz=[1e9, 1.5e9]"
    )
    both = begin(scenario.with_(policy=Both()), learning=True)
    both.step()
    assert both.learner is not None
    start, local = both.learner.init(0), scenario.learning.local
    assert isinstance(local, MiniBatches)
    alone = both.learner.train(start, local.batches(both.world.cohort(1, np.array([0]))), 0.02)
    assert np.array_equal(both.theta, (start + alone.updates[0].astype(float)).astype(np.float32))
    assert seen[0].losses is not None
    assert np.isfinite(seen[0].losses[0]).all()
    assert np.isnan(seen[0].losses[1]).all()


class Diverging:
    """A learner whose updates are too large."""

    name, details, parameters = "diverging", {}, 1

    def init(self, seed: int) -> np.ndarray:
        return np.full(1, 3e38, np.float32)

    def train(self, theta: np.ndarray, batches: np.ndarray, lr: float) -> Training:
        updates = np.full((len(batches), 1), 3e38, np.float32)
        return Training(updates, np.zeros(batches.shape, np.float32))


def test_learning_that_diverges_is_told_in_a_sentence() -> None:
    learner: Any = Diverging()
    scenario = small("data.arrivals.kind=poisson", "cpu.frequency_hz=[1e9, 1e9]")
    simulation = Simulation(scenario, 0, load_dataset("synthetic", samples=240), learner)
    with pytest.raises(EngineError, match=r"learning\.local\.lr: training diverged in round 1 .* choose a smaller one"):
        simulation.step()


def deciding(change: Callable[[Decision], Any]) -> Random:
    """A policy that decides at random, and then otherwise."""

    class Changed(Random):
        tag: ClassVar[str] = ""

        def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Any:
            return change(super().select(state, observation, rng))

    return Changed()


def scheduling(*ids: int) -> Callable[[Decision], Decision]:
    return lambda decision: replace(decision, schedule=np.array(ids, int))


@pytest.mark.parametrize("ids", [(0, 0), (-1,), (6,), (0, 6)])
def test_a_policy_schedules_devices_that_there_are(ids: tuple[int, ...]) -> None:
    """What else it may return wrongly is in test_contracts.py."""
    with pytest.raises(PluginError, match="different device numbers from 0 to 5"):
        fs.simulate(small("data.arrivals.kind=poisson").with_(policy=deciding(scheduling(*ids))))


def test_a_policy_may_give_an_empty_array() -> None:
    """As a newcomer writes it: one of floats."""
    run = fs.simulate(small().with_(policy=deciding(lambda decision: replace(decision, schedule=np.array([])))))
    assert run.rounds["scheduled"].sum() == 0


@pytest.mark.parametrize("lie", [False, True])
def test_a_policy_cannot_schedule_a_device_without_data(lie: bool, tmp_path) -> None:
    trace = tmp_path / "quiet.csv"
    trace.write_text("time,device,label\n")
    quiet = small("data.arrivals.kind=trace", f"data.arrivals.path={trace}", "data.eligible=with_data")

    def first(decision: Decision) -> Decision:
        plan = replace(decision.plan, feasible=decision.plan.feasible | lie)
        return replace(decision, schedule=np.array([0]), plan=plan)

    with pytest.raises(PluginError, match="not feasible, in round 1"):
        fs.simulate(quiet.with_(policy=deciding(first)))


class Watching(Random):
    """Random, and every outcome is kept: only what arrived, and the norm of each update that did."""

    def update(self, state: State, outcome: Outcome) -> State:
        seen.append(outcome)
        return state


def test_only_replies_that_arrived_are_seen() -> None:
    """In so narrow a band some of the scheduled are dropped: what they trained is not known."""
    seen.clear()
    radio = ["radio.bandwidth_hz=5e5", "radio.received_power_dbm=-36", "radio.rate_discount=4.0"]
    scenario = fs.preset("tiny", [*radio, "system.rounds=12"]).with_(policy=Watching(size=4))
    fs.simulate(scenario, 1)
    dropped = [~outcome.transmitted for outcome in seen]
    assert any(rows.any() for rows in dropped), "nobody was dropped, so nothing is tested"
    assert any(outcome.transmitted.any() for outcome in seen)
    for outcome in seen:
        assert outcome.losses is not None
        assert outcome.update_norm is not None
        held = outcome.observation.stored[outcome.schedule] > 0
        arrived = outcome.transmitted
        assert np.isnan(outcome.losses[~arrived]).all()
        assert np.isnan(outcome.update_norm[~arrived]).all()
        assert np.isfinite(outcome.losses[arrived & held]).all()
        assert (outcome.update_norm[arrived & held] > 0).all()
        assert (outcome.update_norm[arrived & ~held] == 0).all()


def test_the_norm_is_that_of_the_update() -> None:
    """Where one device alone gets through, the model moves by just its update."""
    seen.clear()
    scenario = fs.preset("tiny", ["system.rounds=6"]).with_(policy=Watching(size=1))
    data = dataset_of(scenario)
    simulation = Simulation(scenario, 1, data, learn.make(scenario.learning, data, 1))
    before = simulation.theta.copy()
    for _ in range(6):
        simulation.step()
        outcome = seen[-1]
        assert outcome.update_norm is not None
        moved = float(np.linalg.norm(simulation.theta.astype(float) - before))
        if outcome.transmitted.any() and outcome.observation.stored[outcome.schedule[0]]:
            assert outcome.update_norm[0] == pytest.approx(moved, rel=1e-3)  # θ is stored in single precision
        before = simulation.theta.copy()


def hungry(observation, plan):
    """Goes by what a metric of two arrays cannot see: queues and all that is held."""
    return plan.amount + observation.stored / (1 + observation.queue_j)


HERE = "tests/test_simulation.py"


def test_a_metric_may_go_by_the_observation() -> None:
    run = fs.simulate(small(f"policy.metric={HERE}:hungry"), 1)
    chosen = devices_of(run).filter("feasible")
    expected = chosen["amount"] + chosen["stored"] / (1 + chosen["queue_j"])
    np.testing.assert_allclose(chosen["importance"].to_numpy(), expected.to_numpy(), rtol=1e-12)
    verified(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    "buffer", ["keep", "window(rounds=5)", "fifo(capacity=7)", "reservoir(capacity=7)", "use_once"]
)
def test_an_endless_stream_does_not_grow(buffer: str) -> None:
    """What is held in memory after 1,000 rounds is what was held after 100."""
    simulation, held = begin(fs.preset("theorem", [f"data.buffer={buffer}"])), []
    tracemalloc.start()
    try:
        for t in range(1, 1001):
            simulation.step()
            if t in (100, 1000):
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # One array per round would be 900 · 40 · 8 bytes = 288 kB, a byte for each sample 180 kB; Python keeps some 50.
    assert held[1] - held[0] < 144_000


@pytest.mark.parametrize(("n", "energy_j"), [(2, 0.74e-3), (4, 2.4e-3)])
def test_the_papers_budget_cannot_be_met_with_an_exact_size(n: int, energy_j: float) -> None:
    """Even the n cheapest feasible devices of each round spend more than the 0.5 mJ."""
    scenario = fs.preset("paper-iid", ["system.rounds=3000"])
    labels = load_dataset("synthetic", samples=400).train_labels
    world, system = World(scenario, 3, labels, 10), scenario.known_system(10)
    time_s, spent = system.surrogate_time_s(n), []
    for t in range(1, 3001):
        world.advance(t)
        f_hz = world.f_hz
        energy = system.power_coefficient * system.cycles * f_hz**2 + system.received_power_w / world.beta * time_s
        able = system.cycles / f_hz + time_s <= system.round_s
        spent.append(np.sort(energy[able])[:n].sum() / scenario.system.devices)
    assert np.mean(spent) == pytest.approx(energy_j, rel=0.07)
    assert np.mean(spent) > scenario.system.energy_budget_j


def mnist_energy_j(preset: str, *overrides: str) -> float:
    """Mean per device and round over 12 seeds; scheduling only."""
    scenario, data, spent = fs.preset(preset, [*overrides, "trace.level=rounds"]), load_dataset("mnist"), []
    for seed in range(100, 112):
        simulation = Simulation(scenario, seed, data, None)
        spent += [simulation.step().energy_j.mean() for _ in range(scenario.system.rounds)]
    return float(np.mean(spent))


@pytest.mark.slow
@pytest.mark.mnist
@pytest.mark.parametrize("preset", ["paper-iid", "paper-3digit"])
@pytest.mark.parametrize(
    ("eligible", "n", "low", "high"),
    # The paper reports 16 % and 35 %; its own reading gives that, since T and σ were chosen so that it does. A server
    # that skips empty devices saves more, because random scheduling then never idles on cheap, empty ones.
    [("any", 2, 0.10, 0.26), ("any", 4, 0.26, 0.42), ("with_data", 2, 0.22, 0.34), ("with_data", 4, 0.33, 0.45)],
)
def test_energy_saved_over_random(preset: str, eligible: str, n: int, low: float, high: float) -> None:
    proposed, random = (
        mnist_energy_j(preset, f"data.eligible={eligible}", f"policy.size={n}", f"policy.name={name}")
        for name in ("lyapunov", "random")
    )
    assert low < 1 - proposed / random < high


@pytest.mark.slow
@pytest.mark.mnist
def test_the_proposed_policy_leads_with_three_digits_per_device() -> None:
    """Averaged over the run, as in figure 1b; measured elsewhere at +18 points over five seeds, so 6 is loose."""
    runs = [
        fs.simulate(fs.preset("paper-3digit", [f"policy.name={name}", "learning.eval_every=4"]), 0)
        for name in ("lyapunov", "random")
    ]
    proposed, random = (run.rounds["accuracy"].drop_nulls().to_numpy() for run in runs)
    assert (proposed - random).mean() > 0.06


@pytest.mark.parametrize("shape", [(1, 1), (9, 1), (40, 7), (3, 21_840), (2, 2**17 + 3)])
def test_norms_are_bit_for_bit_those_of_all_updates_at_once(shape: tuple[int, int]) -> None:
    updates = np.random.default_rng(shape).normal(size=shape).astype(np.float32)
    assert np.array_equal(Training(updates, updates).norms, np.sqrt(np.square(updates, dtype=np.float64).sum(axis=1)))


def test_a_sample_that_two_devices_hold_counts_once() -> None:
    """Equations (1) to (3) by hand: both hold all four samples, so the union has four, and each update weighs 1."""
    updates = np.array([[0.25], [0.5]], np.float32)

    def moved(distinct: int | None) -> float:
        held, gain = np.array([4, 4]), np.ones(2)
        of = UpdateContext(1, 1, 2, np.arange(2), held, gain, None, 8.0, np.zeros(2, np.int64), distinct)
        return float(FedAvg().step(np.zeros(1, np.float32), updates, of, {}, np.random.default_rng(0))[0][0])

    assert moved(None) == 0.375  # Σ |S_j| = 8
    assert moved(4) == 0.75  # |∪ S_j| = 4
    simulation = begin(small("data.arrivals.shared=1.0", "system.devices=2", "policy.size=2", "data.samples=60"))
    for _ in range(8):
        simulation.step()
    stream = simulation.world.stream
    one, other = (set(stream.samples(k).tolist()) for k in range(2))
    assert stream.stored.sum() == 2 * len(one | other) == 120  # each of 60 samples came to both
    assert stream.distinct(np.arange(2)) == 60
    assert Held(lambda: [stream.samples(k) for k in range(2)], overlaps=True).distinct == 60


def test_as_many_samples_are_shared_as_was_said() -> None:
    simulation = begin(small("data.arrivals.shared=0.25", "data.samples=2000", "system.devices=5"))
    for _ in range(8):
        simulation.step()
    stream = simulation.world.stream
    times = np.bincount(np.concatenate([stream.samples(k) for k in range(5)]))
    assert times.max() == 2
    assert 0.21 < (times == 2).mean() < 0.29  # 2,000 samples: a standard error of 1 %
    assert stream.distinct(np.arange(5)) == 2000 < stream.stored.sum()
