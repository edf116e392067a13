"""Measures of the device table on tables made by hand, and against a count of the samples themselves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import feelstream as fs
from feelstream.data.streaming.buffers import Buffer, Fifo, Keep, Reservoir, UseOnce, Window
from feelstream.experiment.comparison import SHARES, arrivals, budget_ratio, data_used, participation
from feelstream.loop.simulation import Simulation
from feelstream.run import dataset_of


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
