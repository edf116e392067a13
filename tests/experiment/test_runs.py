"""What a run comes to, on tables made by hand, against SciPy, closed forms, and a count of the samples themselves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import feelstream as fs
from feelstream.data.streaming.buffers import Buffer, Fifo, Keep, Reservoir, UseOnce, Window
from feelstream.experiment.runs import (
    SHARES,
    arrivals,
    budget_ratio,
    data_used,
    jain_index,
    normalised_auc,
    of_rounds,
    participation,
)  # fmt: skip
from feelstream.experiment.statistics import band_by_round, compare_arms, interval
from feelstream.loop.simulation import Simulation
from feelstream.run import dataset_of


def rounds_table() -> pl.DataFrame:
    """Arm z before arm a; arm a lacks seed 2; only even rounds are tested."""
    rng = np.random.default_rng(0)
    rows = [
        (arm, seed, t, e := rng.uniform(), e / 2, rng.uniform() if t % 2 == 0 else None, 1.0, 0.1 * t, 4, 4 - t % 2)
        for arm, seeds in (("z", (0, 1, 2)), ("a", (0, 1)))
        for seed in seeds
        for t in range(1, 7)
    ]
    columns = ["arm", "seed", "round", "energy_mean_j", "energy_mean_cum_j", "accuracy", "loss", "queue_mean_j"]
    return pl.DataFrame(rows, schema=[*columns, "scheduled", "transmitted"], orient="row")


def test_band_by_round() -> None:
    rounds = rounds_table()
    band = band_by_round(rounds, "accuracy")
    assert band.columns == ["arm", "round", "mean", "low", "high", "n"]
    assert band.select("arm", "round").rows() == [(arm, t) for arm in "za" for t in (2, 4, 6)]
    for row in band.rows(named=True):
        values = rounds.filter(arm=row["arm"], round=row["round"])["accuracy"].to_numpy()
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        np.testing.assert_allclose((row["mean"], row["low"], row["high"]), (values.mean(), low, high))
    one = band_by_round(rounds.filter(seed=0), "accuracy")
    assert one["low"].null_count() == one["high"].null_count() == len(one) == 6


def test_per_run_and_pairs_over_common_seeds() -> None:
    rounds = rounds_table()
    runs = of_rounds(rounds)
    assert runs.select("arm", "seed").rows() == [("z", 0), ("z", 1), ("z", 2), ("a", 0), ("a", 1)]
    one = rounds.filter(arm="z", seed=1)
    tested = one.drop_nulls("accuracy")
    area = integrate.trapezoid(tested["accuracy"].to_numpy(), tested["round"].to_numpy()) / 4
    last = one["accuracy"][-1]  # rounds 5 and 6 of 6 are the last fifth, and 6 is tested
    expected = ("z", 1, last, last, pytest.approx(area), 1.0, one["energy_mean_cum_j"][-1], 0.1 * 6, 3 / 24)
    assert runs.row(1)[:9] == expected
    energy = dict(zip(runs.select("arm", "seed").rows(), runs["energy_j"], strict=True))
    differences = [energy["a", seed] - energy["z", seed] for seed in (0, 1)]
    assert compare_arms(runs, "energy_j", "a", "z") == interval(differences)


def test_runs_that_learn_nothing_have_no_accuracy() -> None:
    nothing = rounds_table().with_columns(pl.lit(None, pl.Float64).alias("accuracy"))
    assert of_rounds(nothing)["final_accuracy"].null_count() == 5
    assert of_rounds(nothing)["accuracy_area"].null_count() == 5
    assert len(band_by_round(nothing, "accuracy")) == 0
    assert compare_arms(of_rounds(nothing), "final_accuracy", "a", "z").verdict == "no seed in common"


def test_reaching_an_accuracy() -> None:
    accuracy = pl.Series("accuracy", [None, 0.5, None, 0.85, None, 0.8])
    spent = pl.Series("energy_mean_j", [1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    run = of_rounds(rounds_table().filter(arm="z", seed=0).with_columns(accuracy, spent)).row(0, named=True)
    assert (run["rounds_to_80"], run["joules_to_80"], run["reached_80"]) == (4, 15.0, 1.0)
    assert (run["rounds_to_90"], run["joules_to_90"], run["reached_90"]) == (6, 63.0, 0.0)  # the whole run


def test_mean_height_of_a_line_and_of_a_point() -> None:
    assert normalised_auc([10, 20, 40], [1.0, 2.0, 4.0]) == pytest.approx(2.5)
    assert normalised_auc([7], [0.25]) == 0.25


@pytest.mark.parametrize(
    ("shares", "index"),
    [([3, 3, 3], 1), ([0, 0, 5, 0], 0.25), ([0, 0], 1), ([1, 2, 3], 36 / 42), ([1e-300, 1e300], 0.5)],
)
def test_jain_index(shares: list[float], index: float) -> None:
    assert jain_index(shares) == pytest.approx(index)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_jain_index_knows_no_unit(shares: list[float], unit: float) -> None:
    index = jain_index(shares)
    assert 1 / len(shares) <= index * (1 + 1e-12)
    assert index <= 1 + 1e-12
    if max(shares) > 1e-200:
        assert jain_index([unit * share for share in shares]) == pytest.approx(index)


def test_a_table_made_by_hand() -> None:
    """Two devices, three rounds. Device 0 holds 4, 4, 10 and sends in round 2; 1 holds 0, 6, 6 and trains in vain.

    Budgets 1 and 2: device 0 spends (3 + 3)/3 = 2, device 1 spends 3/3 = 1; ratio (2/1 + 1/2)/2, the worst 2/1, one of
    two is over. 4 of 16 samples were used. Scheduled 2 and 1 times: (2 + 1)²/(2·(4 + 1)) = 0.9.
    """
    table = pl.DataFrame(
        {
            "stored": [4, 0, 4, 6, 10, 6],
            "scheduled": [True, False, True, False, False, True],
            "transmitted": [False, False, True, False, False, False],
            "e_cmp_j": [3.0, 0.0, 2.0, 0.0, 0.0, 3.0],
            "e_tr_j": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        }
    )
    scenario = fs.preset("tiny", ["system.devices=2", "system.rounds=3", "system.energy_budget_j=[1.0, 2.0]"])
    assert participation(table, scenario) == {
        "energy_over_budget": 1.25,
        "devices_over_budget": 0.5,
        "worst_device": 2.0,
        "data_used": 0.25,
        "fairness": pytest.approx(0.9),
    }


def test_what_cannot_be_said_is_not_said() -> None:
    scenario = fs.preset("tiny", ["system.devices=2", "system.rounds=1", "system.energy_budget_j=0.0"])
    assert participation(None, scenario) == dict.fromkeys(SHARES)
    nobody = {"stored": [0, 0], "scheduled": [False] * 2, "transmitted": [False] * 2}
    table = pl.DataFrame(nobody | {"e_cmp_j": [0.0, 0.0], "e_tr_j": [0.0, 0.0]})
    found = participation(table, scenario)
    assert found == dict.fromkeys(SHARES) | {"devices_over_budget": 0.0}
    assert budget_ratio(np.array([3.0, 1.0]), np.array([1.0, 2.0])) == 1.75
    stored, sent = np.ones((2, 1), int), np.zeros((2, 1), bool)
    assert data_used(stored, sent, Fifo(capacity=1)) is data_used(stored, sent, Reservoir(capacity=1)) is None


def test_arrivals_from_what_is_held() -> None:
    """5, 0, 2, 1 arrive; sent in round 2."""
    sent = np.array([[False], [True], [False], [False]])
    for buffer, stored in ((Keep(), [5, 5, 7, 8]), (UseOnce(), [5, 5, 2, 3]), (Window(rounds=2), [5, 5, 2, 3])):
        came = arrivals(np.array(stored)[:, None], sent, buffer)
        assert came is not None
        assert came[:, 0].tolist() == [5, 0, 2, 1], buffer
    # Window of 1 round, sent in rounds 1 and 3: of 4, 3, 2, 1 samples the 4 and the 2 were used.
    stored = np.array([[4], [3], [2], [1]])
    sent = np.array([[True], [False], [True], [False]])
    assert data_used(stored, sent, Window(rounds=1)) == 0.6


@pytest.mark.parametrize("fresh", ["since_use", "per_round"])
@pytest.mark.parametrize("buffer", [Keep(), UseOnce(), Window(rounds=3)], ids=lambda buffer: buffer.tag)
def test_data_used_is_the_share_of_samples_seen(buffer: Buffer, fresh: str) -> None:
    """Every sample arrives at most once here, so the sets of sample numbers say it all."""
    settings = [f"data.buffer.kind={buffer.tag}", f"data.fresh={fresh}", "learning.engine=none", "policy.name=random"]
    settings += ["system.devices=6", "system.rounds=12", "policy.size=1"]
    settings += ["data.buffer.rounds=3"] if isinstance(buffer, Window) else []
    scenario = fs.preset("tiny", settings)
    simulation = Simulation(scenario, 3, dataset_of(scenario), None)
    stream, arrived, used = simulation.world.stream, set(), set()
    held: list[set[int]] = []
    use, advance = stream.use, stream.advance

    def watched_advance(round: int) -> None:
        advance(round)
        held[:] = [set(stream.samples(k).tolist()) for k in range(6)]
        arrived.update(*held)  # no buffer here discards a sample in the round of its arrival

    def watched_use(devices: np.ndarray) -> None:
        used.update(*(held[k] for k in devices))
        use(devices)

    stream.advance, stream.use = watched_advance, watched_use  # type: ignore[method-assign]
    for _ in range(12):
        simulation.step()
    watched_use(simulation.senders)  # of the last round, which no further one follows
    assert 0 < len(used) < len(arrived)
    found = participation(fs.simulate(scenario, 3).devices, scenario)
    assert found["data_used"] == pytest.approx(len(used) / len(arrived), rel=1e-12)
