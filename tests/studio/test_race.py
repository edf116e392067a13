"""Races without a page: pause, step, jump, change, fork, close; what is shown is what the command line computes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from builders import small

from feelstream.errors import RunError, ScenarioError
from feelstream.run import Change, simulate
from feelstream.studio.lanes import LiveLane, StoredLane, open_runs, side_by_side, stored_runs
from feelstream.studio.race import Race
from feelstream.verification import verify

FAST = float("inf")


@pytest.fixture
def start() -> Iterator:
    """Starts a race of lyapunov against random, paused unless told otherwise, and ends it with the test."""
    begun: list[Race] = []

    def begin(playing: bool = False, speed: float = FAST) -> Race:
        def lanes() -> list[LiveLane]:
            return [LiveLane("lyapunov", small(), 3), LiveLane("random", small("policy.name=random"), 3)]

        begun.append(Race(lanes, speed=speed, playing=playing))
        assert begun[-1].wait(lambda race: race.ready or race.problem is not None)
        return begun[-1]

    yield begin
    for race in begun:
        race.close()
        race.join(10)


def reached(race: Race, round: int) -> None:
    assert race.wait(lambda race: (race.shown == round and not race.busy) or race.problem is not None)
    assert race.problem is None
    assert race.shown == round


def same_rows(lane, run) -> None:
    """All is the very same, but for the running mean, which is summed up in another order."""
    for row, stored in zip(lane.rows, run.rounds.to_dicts(), strict=True):
        mean = stored.pop("energy_mean_cum_j")
        assert {name: row[name] for name in stored} == stored
        assert row["energy_mean_cum_j"] == pytest.approx(mean, rel=1e-12)


def test_a_race_plays_to_its_end_and_shows_what_simulate_computes(start) -> None:
    race = start(playing=True)
    reached(race, 8)
    assert not race.playing
    for lane in race.lanes:
        run = simulate(lane.scenario, 3)
        same_rows(lane, run)
        assert run.devices is not None
        table = run.devices.filter(round=5)
        for name, column in lane.view(5).devices.items():
            stored = np.array(table[name].to_list(), float)
            np.testing.assert_array_equal(np.asarray(column, float), stored, err_msg=name)


def test_step_back_jump_and_play_on(start) -> None:
    race = start()
    assert (race.shown, race.head) == (0, 0)
    race.step()
    reached(race, 1)
    race.jump(5)
    reached(race, 5)
    race.step(-1)
    reached(race, 4)
    assert race.head == 5
    race.jump(99)
    reached(race, 8)
    race.jump(2)
    race.play()
    reached(race, 8)
    race.set_speed(1e-6)
    race.play()  # at the end: again from the start, and the next round in eleven days
    reached(race, 1)
    assert race.playing


def test_a_paused_or_suspended_race_plays_nothing(start) -> None:
    race = start(playing=True, speed=1e-6)  # the first round at once, the next in eleven days
    reached(race, 1)
    race.pause()
    race.suspend()
    race.jump(3)
    assert race.shown == 1
    race.suspend(False)
    reached(race, 3)


def test_a_change_takes_effect_in_the_next_round_of_all_lanes_that_have_the_field(start) -> None:
    race = start()
    race.jump(3)
    reached(race, 3)
    race.change("policy.V", "0.5")
    race.change("policy.size", "3")
    race.play()
    reached(race, 8)
    assert race.lanes[0].changes == (Change(4, "policy.V", "0.5"), Change(4, "policy.size", "3"))
    assert race.lanes[1].changes == (Change(4, "policy.size", "3"),)
    for lane in race.lanes:
        same_rows(lane, simulate(lane.scenario, 3, changes=lane.changes))
        assert [row["scheduled"] for row in lane.rows] == [2, 2, 2, 3, 3, 3, 3, 3]


def test_a_fork_shares_the_past_and_goes_its_own_way(start) -> None:
    race = start(playing=True)
    reached(race, 8)
    label = race.fork(0, 3, "policy.V", "5")
    assert race.wait(lambda race: len(race.lanes) == 3 and not race.busy)
    lane, forked = race.lanes[0], race.lanes[2]
    assert forked.label == label
    assert forked.head == 8
    assert forked.rows[:3] == lane.rows[:3]
    assert forked.rows[3:] != lane.rows[3:]
    assert forked.schedule[:6] == lane.schedule[:6]
    same_rows(forked, simulate(small(), 3, changes=[Change(4, "policy.V", "5")]))


def test_a_fork_of_a_fork_and_of_a_round_without_a_snapshot(start, monkeypatch) -> None:
    monkeypatch.setattr("feelstream.studio.lanes.SNAPSHOT_BYTES", 1)
    race = start(playing=True)
    reached(race, 8)
    race.fork(0, 5, "policy.V", "5")
    assert race.wait(lambda race: len(race.lanes) == 3 and not race.busy)
    race.fork(2, 6, "system.energy_budget_j", "0.1")
    assert race.wait(lambda race: len(race.lanes) == 4 and not race.busy)
    changes = [Change(6, "policy.V", "5"), Change(7, "system.energy_budget_j", "0.1")]
    same_rows(race.lanes[3], simulate(small(), 3, changes=changes))


def test_the_history_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr("feelstream.studio.lanes.HISTORY_BYTES", 1)
    lane = LiveLane("lyapunov", small("system.rounds=40"), 0)
    for _ in range(40):
        lane.step()
    assert lane.oldest == 21
    assert len(lane.rows) == 40
    race = Race(lambda: [lane], playing=False)
    race.wait(lambda race: race.ready)
    race.jump(3)
    assert race.shown == 21
    race.close()


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("policy.V", "-1", r"policy\.V: must be greater than 0, not -1"),
        ("policy.size", "7", r"policy\.size: must be at most system\.devices = 6"),
        ("policy.size", "x", r"policy\.size: must be a whole number"),
    ],
)
def test_bad_changes_get_the_sentence_of_the_command_line(start, field: str, value: str, sentence: str) -> None:
    race = start()
    with pytest.raises(ScenarioError, match=sentence):
        race.change(field, value)
    with pytest.raises(ScenarioError, match=sentence):
        race.fork(0, 2, field, value)
    assert not any(lane.changes for lane in race.lanes)


def test_what_is_over_cannot_change_and_forks_are_counted(start) -> None:
    race = start(playing=True)
    reached(race, 8)
    with pytest.raises(RunError, match="the race is over"):
        race.change("policy.V", "1")
    with pytest.raises(RunError, match="no other future"):
        race.fork(0, 8, "policy.V", "1")
    with pytest.raises(RunError, match="random has no field"):
        race.fork(1, 2, "policy.V", "1")
    with pytest.raises(RunError, match=r"lyapunov has V = 0\.05 in round 3 already; give another value"):
        race.fork(0, 2, "policy.V", "0.05")
    for number in range(4):
        race.fork(0, 2, "policy.V", str(number + 1))
        assert race.wait(lambda race, number=number: len(race.lanes) == 3 + number and not race.busy)
    with pytest.raises(RunError, match="at most 6 lanes"):
        race.fork(0, 2, "policy.V", "9")
    race.remove(5)
    assert len(race.lanes) == 5


def test_what_goes_wrong_in_the_worker_is_told() -> None:
    def fails() -> list[LiveLane]:
        raise RunError("there is no such thing")

    race = Race(fails)
    assert race.wait(lambda race: race.problem is not None)
    assert race.problem == "there is no such thing"
    race.close()


def test_stored_runs_and_results_are_replayed(tmp_path: Path) -> None:
    runs = {name: simulate(small(f"policy.name={name}"), 3) for name in ("lyapunov", "random")}
    for name, run in runs.items():
        assert verify(run.save(tmp_path / name)).ok
    assert list(stored_runs(tmp_path)) == [("lyapunov", None), ("random", None)]
    assert list(side_by_side([tmp_path / "random"])) == ["random"]
    race = Race(lambda: open_runs(side_by_side([tmp_path])), speed=FAST)
    reached(race, 8)
    live = LiveLane("lyapunov", small(), 3)
    for _ in range(8):
        live.step()
    stored = race.lanes[0]
    same_rows(live, runs["lyapunov"])
    assert isinstance(stored, StoredLane)
    for round in (1, 8):
        old, new = stored.view(round), live.view(round)
        np.testing.assert_array_equal(old.used_labels, new.used_labels)
        assert old.devices is not None
        assert new.devices is not None
        assert old.devices.keys() == new.devices.keys()
        for name in old.devices:
            np.testing.assert_array_equal(old.devices[name], new.devices[name])
    assert stored.schedule == live.schedule
    race.close()
    with pytest.raises(RunError, match="holds neither a run"):
        stored_runs(tmp_path / "nothing")


def test_many_devices_are_sampled_with_all_that_were_scheduled() -> None:
    lane = LiveLane("lyapunov", small("system.devices=3000", "data.samples=6000", "policy.size=7"), 0)
    lane.step()
    view = lane.view(1)
    assert view.devices is not None
    assert 400 <= len(view.devices["device"]) <= 407
    assert int(view.devices["scheduled"].sum()) == view.row["scheduled"] == 7


def test_a_round_is_played_ahead_and_shown_by_the_step(start) -> None:
    race = start()
    race.jump(3)
    reached(race, 3)
    assert race.wait(lambda race: all(lane.is_ahead for lane in race.lanes))
    assert {lane.head for lane in race.lanes} == {race.shown} == {3}  # nobody sees it yet
    race.step()
    reached(race, 4)


def test_what_was_played_ahead_is_forgotten_when_a_setting_changes() -> None:
    plain, looked = LiveLane("lyapunov", small(), 3), LiveLane("lyapunov", small(), 3)
    for round in range(1, 9):
        if round in (3, 6):
            for lane in (plain, looked):
                lane.change("policy.V", {3: "0.5", 6: "0.01"}[round])
        plain.step()
        looked.look_ahead()  # before a step, and after it, so that each change meets a round played ahead
        looked.step()
        looked.look_ahead()
    assert looked.rows == plain.rows
    assert looked.schedule == plain.schedule
    same_rows(looked, simulate(looked.scenario, 3, changes=looked.changes))
    assert looked.head == 8  # there is no round after the last
    forks = [lane.fork("fork", 4, "policy.V", "0.5") for lane in (plain, looked)]
    for fork in forks:
        while fork.head < 8:
            fork.step()
    assert forks[0].rows == forks[1].rows


def test_what_a_long_race_keeps_is_bounded(monkeypatch) -> None:
    """The history may fill its share, and of older rounds a row remains: 4 kB a round, not the devices' 30 kB."""
    monkeypatch.setattr("feelstream.studio.lanes.HISTORY_BYTES", 2**18)
    monkeypatch.setattr("feelstream.studio.lanes.SNAPSHOT_BYTES", 2**18)
    lane = LiveLane("lyapunov", small("system.rounds=300", "learning.eval_every=50"), 3)
    for _ in range(20):
        lane.step()
    tracemalloc.start()
    try:
        kept = {}
        for round in range(21, 301):
            lane.step()
            if round in (100, 300):
                gc.collect()
                kept[round] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert lane.oldest > 100  # so that nothing of round 100 is left but its row
    assert kept[300] < 3 * (2**18 + 2**18)  # what is counted is about what Python takes
    assert kept[300] - kept[100] < 200 * 4096


def test_a_step_is_drawn_once(start) -> None:
    """A page that hears of it before the round is played would draw the old one first, and the new one after that."""
    race = start()
    race.jump(1)
    reached(race, 1)
    before = race.version
    race.step()
    reached(race, 2)
    assert race.version == before + 1
