"""Slow devices: rounds that do not wait for all, time limits by what devices take, and replies that are late."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deployed_clients import CLASSES, FAST, Clock, SlowGrid, client, grid_of, growing, model, played
from flwr.app import Context, Error, Message
from flwr.common.constant import ErrorCode
from flwr.serverapp.strategy import FedAdam, FedMedian

import feelstream as fs
from feelstream.flower import Scheduled, ScheduledFedAvg
from feelstream.flower.exchange import Calls, Waited


def federation(clock: Clock, seconds: dict[int, float]) -> SlowGrid:
    """Four nodes; seconds: how long the training of each takes."""

    def takes(message: Message) -> float:
        return seconds.get(message.metadata.dst_node_id, 0.0) if message.metadata.message_type == "train" else 0.0

    return SlowGrid(clock, takes, [client(growing, after={"t_cmp_s": 0.5})] * 4, first=0)


def scenario(size: int) -> fs.Scenario:
    plain = [each for each in FAST if "policy.V" not in each]
    return fs.preset("tiny", [*plain, "policy.name=age", f"policy.size={size}", "radio.fading=none"])


def test_a_round_ends_with_the_first_replies_and_the_others_are_charged(clock: Clock, tmp_path: Path) -> None:
    grid = federation(clock, {3: 3.0})
    devices = played(scenario(4), grid, 6, tmp_path / "run", first=3)
    assert clock.now < 6 * 1.0  # nobody waited three seconds
    slow = devices.filter(pl.col("device") == 3)
    assert slow["cut"][0]
    assert (slow.filter(pl.col("cut"))["e_cmp_j"] > 0).all()  # it has computed
    assert not slow["transmitted"].any()
    assert (slow["reliability"] == 1.0).all()  # and has not failed
    assert (devices.filter(pl.col("device") < 3)["transmitted"]).all()


def test_who_still_works_for_an_earlier_round_is_not_called_again(clock: Clock, tmp_path: Path) -> None:
    grid = federation(clock, {3: 1e9})
    slow = played(scenario(4), grid, 4, tmp_path / "run", first=3).filter(pl.col("device") == 3)
    assert slow["scheduled"].to_list() == [True, False, False, False]


def test_the_time_limit_follows_what_devices_take(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    grid = federation(clock, {0: 0.4, 1: 0.2, 2: 0.3, 3: 0.25})
    with caplog.at_level(logging.INFO, logger="flwr.feelstream.rounds"):
        ScheduledFedAvg(scenario(4), classes=CLASSES, adaptive_timeout=True).start(grid, model(), num_rounds=8)
    limits = [json.loads(line.message)["timeout_s"] for line in caplog.records if line.name.endswith("rounds")]
    assert limits[0] == 4.0  # the deadline, until more is known
    assert 0.4 < limits[-1] < 2.0


def test_a_limit_that_was_too_short_grows_again() -> None:
    known = Calls(1, 60.0, adaptive=True)

    def learn(t: int, waited: Waited) -> None:
        known.limit_s = known.timeout_s([0])
        known.learn(t, waited, {7: 0})

    for t in range(1, 10):
        learn(t, Waited(seconds={7: 2.0}))
    short = known.timeout_s([0])
    assert 2.0 < short < 10.0
    for t in range(10, 20):
        learn(t, Waited(unanswered={f"m{t}": 7}))
    assert known.timeout_s([0]) > 4 * short
    learn(20, Waited(unanswered={"m20": 7}, enough=True))  # it was not waited for
    assert known.busy == [0]


@pytest.mark.parametrize("late", ["waste", "use"])
def test_late_updates_are_averaged_only_if_they_may_be(late: Any, clock: Clock, tmp_path: Path) -> None:
    """Device 3 moves the model by 100 and takes two rounds; the others by 1."""
    grid = federation(clock, {3: 1.0, **dict.fromkeys(range(3), 0.5)})
    grid.add(3, {"partition-id": 3}, client(growing, step=100.0, after={"t_cmp_s": 0.5}))
    strategy = ScheduledFedAvg(scenario(4), classes=CLASSES, out=tmp_path / "run", first=3, late=late)
    found = strategy.start(grid, model(), num_rounds=4).arrays["w"].numpy()
    moved = bool(np.abs(found).max() > 10)
    assert moved == (late == "use")
    assert fs.verify(tmp_path / "run").ok


def test_what_cannot_be_is_refused() -> None:
    for options, reason in (
        ({"first": 0}, "first: must be at least 1, not 0"),
        ({"first": 3}, "first: must lie between 1 and policy.size = 2"),
        ({"late": "maybe"}, "late: must be 'waste' or 'use', not 'maybe'"),
    ):
        with pytest.raises(fs.FeelstreamError, match=reason):
            ScheduledFedAvg(scenario(2), classes=CLASSES, **options)  # pyright: ignore[reportArgumentType]

    class Strict(FedAdam):
        accepts_late = False

    with pytest.raises(fs.FeelstreamError, match="Strict does not say that it takes late updates"):
        Scheduled(Strict(), scenario(2), classes=CLASSES, late="use")
    with pytest.raises(fs.FeelstreamError, match="FedMedian does not say"):  # its median knows no weights
        Scheduled(FedMedian(), scenario(2), classes=CLASSES, late="use")
    Scheduled(FedAdam(), scenario(2), classes=CLASSES, late="use")


def test_a_call_that_expired_is_told_as_a_late_reply(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Flower answers such a call itself, with an error about its database."""

    def expired(context: Context, message: Message) -> Message | None:
        if message.metadata.message_type != "train":
            return client(growing)(context, message)
        return Message(Error(code=ErrorCode.MESSAGE_UNAVAILABLE, reason="not in the database"), reply_to=message)

    with caplog.at_level(logging.WARNING):
        ScheduledFedAvg(fs.preset("tiny", FAST), classes=CLASSES, out=tmp_path / "run", wait_s=0.0).start(
            grid_of(expired, client(growing)), model(), num_rounds=1
        )
    assert "round 1: no update: no reply within the deadline of 4 s (device 0)" in caplog.messages
    assert "database" not in caplog.text
    line = json.loads((tmp_path / "run/logs/rounds.jsonl").read_text(encoding="utf-8"))
    assert line["failed"] == {"0": "no reply within the deadline of 4 s"}
