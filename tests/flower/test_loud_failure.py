"""A federation that cannot train says so and stops; it does not end as if all were well."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deployed_clients import CLASSES, FAST, START, client, grid_of, growing, model, round_of, rows, silent_in_training
from flwr.app import Array, ArrayRecord, Context, Error, Message

import feelstream as fs
from feelstream.errors import FeelstreamError, RunError
from feelstream.flower import ScheduledFedAvg
from feelstream.flower.fleet import FEW, DeploymentError
from feelstream.flower.local_grid import Answer, LocalGrid


def strategy(**options: Any) -> ScheduledFedAvg:
    settings: dict[str, Any] = {"classes": CLASSES, "wait_s": 0.0, "give_up_after": 3} | options
    return ScheduledFedAvg(fs.preset("tiny", [*FAST, "radio.fading=none"]), **settings)


def no_handler(context: Context, message: Message) -> Message:
    return Message(Error(code=0, reason="No query function registered with name feelstream"), reply_to=message)


def slow(context: Context, message: Message) -> Message | None:
    return client(growing, after={"t_cmp_s": 4.5})(context, message)


def broken(context: Context, message: Message) -> Message | None:
    """Its model has become NaN."""
    reply = client(growing)(context, message)
    if reply is not None and "arrays" in reply.content:
        reply.content["arrays"] = ArrayRecord({"w": Array(np.full((2, 2), np.nan)), "steps": Array(START["steps"])})
    return reply


def named(context: Context, message: Message) -> Message | None:
    context.node_config["device-name"] = f"cellar-{context.node_id}"
    return client(growing)(context, message)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([], "no node has connected within 0 s"),
        ([no_handler] * 2, 'no device has reported .*No query function.*@app.query\\("feelstream"\\)'),
        ([lambda context, message: None] * 2, r"no device has reported \(no answer\)"),
        ([named] * 2, "none of the 2 connected nodes has a name of this run; the names are 0, 1, 2, 3"),
        ([silent_in_training(client(growing))] * 2, r"no reply within the deadline of 4 s \(devices 0, 1\)"),
        ([slow] * 2, r"it took longer than system.round_s \(devices 0, 1\)"),
        ([client(lambda t: [0, 0, 0])] * 2, "no connected device holds any data"),
    ],
    ids=["nobody", "no handler", "silence", "wrong names", "late", "slow", "no data"],
)
def test_it_stops_with_a_sentence(answers: list[Answer], reason: str, tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match=reason):
        strategy(out=tmp_path / "run").start(grid_of(*answers), model(), num_rounds=10)
    with pytest.raises(RunError, match="unfinished"):
        fs.read(tmp_path / "run")


def test_devices_that_hold_nothing_at_first_are_asked_again_in_the_next_round(tmp_path: Path) -> None:
    late = client(lambda t: [0, 0, 0] if t < 3 else growing(t))
    strategy(out=tmp_path / "run", max_report_age=5).start(grid_of(late, late), model(), num_rounds=5)
    rounds = fs.read(tmp_path / "run").rounds.select("round", "transmitted")
    assert [t for t, sent in rounds.iter_rows() if sent] == [3, 4, 5]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (silent_in_training(client(growing)), "no reply within the deadline"),
        (broken, "is not finite"),
        (client(lambda t: [0, 0, 0]), "no connected device holds any data"),
    ],
    ids=["late", "not a number", "no data"],
)
def test_a_short_run_that_trained_nobody_is_an_error_and_its_first_round_says_so(
    answer: Answer, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="flwr.feelstream"), pytest.raises(DeploymentError, match=reason):
        strategy(give_up_after=5).start(grid_of(answer, answer), model(), num_rounds=2)
    assert "round 1: nobody could be trained: " in caplog.text


def test_reports_that_are_all_of_no_use_end_the_run_in_its_first_round() -> None:
    grid = grid_of(client(growing), client(growing))  # three counts each
    with pytest.raises(DeploymentError, match="stored-labels must be a list of 10 counts, not a list of 3"):
        strategy(classes=10).start(grid, model(), num_rounds=100)
    assert all(round_of(message) == 1 for message in grid.sent)


def test_an_error_lists_who_failed_and_why() -> None:
    quiet = silent_in_training(client(growing))
    with pytest.raises(DeploymentError, match=r"no reply within .* \(devices 0, 2\); .*not finite.* \(device 1\)"):
        strategy().start(grid_of(quiet, broken, quiet), model(), num_rounds=100)


def test_a_run_does_not_end_while_a_device_is_left_that_has_not_failed() -> None:
    """One place, and the devices that fail are asked first: the last one is still given its turn."""
    quiet = silent_in_training(client(growing))
    scenario = fs.preset(
        "tiny", [*FAST[:2], *FAST[3:], "radio.fading=none", "policy.name=round_robin", "policy.size=1"]
    )
    scheduled = ScheduledFedAvg(scenario, classes=CLASSES, wait_s=0.0, give_up_after=1)
    result = scheduled.start(grid_of(quiet, quiet, quiet, client(growing)), model(), num_rounds=4)
    np.testing.assert_allclose(result.arrays["w"].numpy(), 1.0)


def test_a_flood_of_strangers_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than one round asks, and none of the run's own devices until the server has waited for a while."""
    grid = LocalGrid()
    for node in range(3 * FEW):
        grid.add(1000 + node, {"device-name": f"stranger-{node}"}, client(growing, 100.0))
    monkeypatch.setattr("feelstream.flower.fleet.sleep", lambda s: grid.add(7, {"partition-id": 0}, client(growing)))
    result = strategy(wait_s=60.0).start(grid, model(), num_rounds=2)
    np.testing.assert_allclose(result.arrays["w"].numpy(), 2.0)


def test_what_was_put_right_lets_the_same_run_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(DeploymentError):
        strategy(out=out).start(grid_of(slow), model(), num_rounds=5)
    result = strategy(out=out).start(grid_of(client(growing)), model(), num_rounds=5)
    assert result.arrays["w"].numpy().any()
    assert fs.verify(out).ok


def test_a_round_of_training_starts_the_count_again() -> None:
    def every_third(context: Context, message: Message) -> Message | None:
        round = round_of(message)
        quiet = message.metadata.message_type == "train" and round % 3
        return None if quiet else client(growing)(context, message)

    result = strategy().start(grid_of(every_third), model(), num_rounds=9)
    np.testing.assert_allclose(result.arrays["w"].numpy(), 3.0)


def test_a_policy_that_rests_is_no_failure() -> None:
    grid = grid_of(client(growing))
    resting = ScheduledFedAvg(fs.preset("tiny", [*FAST, "policy.cardinality=free", "policy.V=1e-9"]), classes=CLASSES)
    resting.start(grid, model(), num_rounds=8)


def test_two_deadlines_that_disagree_are_refused() -> None:
    with pytest.raises(FeelstreamError, match=r"deadline_s = 60 and system\.round_s = 4 must agree"):
        strategy(deadline_s=60.0)
    assert strategy().deployment.deadline_s == 4.0
    assert strategy(deadline_s=60.0, clock="model").deployment.deadline_s == 60.0
    with pytest.raises(FeelstreamError, match="clock: must be 'measured' or 'model', not 'atomic'"):
        strategy(clock="atomic")
    with pytest.raises(FeelstreamError, match="deadline_s: must be greater than 0"):
        strategy(clock="model", deadline_s=0.0)


def test_where_the_scenarios_clock_counts_measured_times_do_not(tmp_path: Path) -> None:
    measured = {"t_cmp_s": 4.5, "e_cmp_j": 0.25}
    grid = grid_of(client(growing, after=measured))
    strategy(out=tmp_path / "run", clock="model").start(grid, model(), num_rounds=1)
    row = rows(tmp_path / "run").row(0, named=True)
    assert row["transmitted"]
    assert (row["t_cmp_s_measured"], row["e_cmp_j_measured"], row["e_cmp_j"]) == (False, True, 0.25)
    assert row["t_cmp_s"] == pytest.approx(419328000 / 1.2e9)
    strategy(out=tmp_path / "modelled", energy="model").start(
        grid_of(client(growing, after={"t_cmp_s": 1.0, "e_cmp_j": 0.25})), model(), num_rounds=1
    )
    assert rows(tmp_path / "modelled")["e_cmp_j"][0] == pytest.approx(1e-27 * 419328000 * 1.2e9**2)
    for name in ("run", "modelled"):
        assert fs.verify(tmp_path / name).ok


def test_a_complete_directory_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    strategy(out=tmp_path / "run").start(grid_of(client(growing)), model(), num_rounds=1)
    with caplog.at_level(logging.INFO, logger="flwr"):
        strategy(out=tmp_path / "run").start(LocalGrid(), model(), num_rounds=1)
    assert "complete after 1 rounds; more are run if num_rounds is raised" in caplog.text
