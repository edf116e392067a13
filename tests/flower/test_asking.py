"""Whom the server asks for reports: in turns, with back-off, and without waiting for the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from deployed_clients import CLASSES, FAST, Clock, SlowGrid, client, grid_of, growing, model, played, round_of
from flwr.app import Context, Error, Message, RecordDict

import feelstream as fs
from feelstream.flower import ScheduledFedAvg, exchange
from feelstream.flower.fleet import FEW, LONGEST_PAUSE, Asking
from feelstream.flower.local_grid import LocalGrid
from feelstream.flower.wire import QUERY


def asked_in(grid: LocalGrid) -> dict[int, list[int]]:
    """The rounds in which each node was asked."""
    found: dict[int, list[int]] = {}
    for message in grid.sent:
        if message.metadata.message_type == QUERY:
            found.setdefault(message.metadata.dst_node_id, []).append(round_of(message))
    return found


@pytest.mark.parametrize("kind", ["silent", "error", "stranger"])
def test_who_does_not_answer_is_asked_again_after_longer_and_longer(kind: str) -> None:
    def answer(context: Context, message: Message) -> Message | None:
        if kind == "stranger":
            return client(growing)(context, message)
        return None if kind == "silent" else Message(Error(code=0, reason="no such handler"), reply_to=message)

    grid = grid_of(client(growing))
    grid.add(99, {"partition-id": 77}, answer)
    ScheduledFedAvg(fs.preset("tiny", FAST), classes=CLASSES, wait_s=0.0).start(grid, model(), num_rounds=20)
    assert asked_in(grid)[99] == [1, 2, 4, 8, 16]  # pauses of 1, 2, 4 and 8 rounds


def test_no_round_asks_everyone_and_everyone_is_asked_in_time() -> None:
    devices, age = 6 * FEW, 5
    asking, reported, asked = Asking(devices, age), np.zeros(devices, int), Counter[int]()
    for round in range(1, 31):
        due = np.flatnonzero((reported == 0) | (round - reported > age))
        chosen = asking.choose(due.tolist(), round)
        reported[chosen] = round
        asked[round] = len(chosen)
        for node in chosen:
            asking.succeeded(node)
    assert max(asked.values()) == devices // (age + 1)
    assert (30 - reported <= age).all()


def test_a_pause_has_an_end_and_a_node_that_is_gone_is_forgotten() -> None:
    asking = Asking(1, 0)
    rounds = []
    for round in range(1, 200):
        if asking.choose([7], round):
            rounds.append(round)
            asking.failed(7, round, "no answer")
    assert max(np.diff(rounds)) == LONGEST_PAUSE
    assert asking.reason == {7: "no answer"}
    asking.forget([])
    assert asking.choose([7], 200) == [7]


def test_pauses_survive_a_restart() -> None:
    before, after = Asking(3, 0), Asking(3, 0)
    before.choose([1, 2], 1)
    before.failed(1, 1, "no answer")
    before.failed(1, 2, "no answer")
    after.restore(before.snapshot())
    assert after.choose([1, 2], 3) == before.choose([1, 2], 3) == [2]


class OneByOneGrid(LocalGrid):
    """Replies arrive one with each look; the last never does."""

    looks = 0

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        super().push_messages(messages)
        return [message.metadata.message_id for message in self.sent]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        self.looks += 1
        return super().pull_messages(sorted(message_ids)[:1]) if self.looks < 10 else []


def test_waiting_ends_when_enough_have_answered(clock: Clock) -> None:
    grid = OneByOneGrid()
    for node in range(1, 11):
        grid.add(node, {}, lambda context, message: Message(message.content, reply_to=message))
    messages = [Message(RecordDict(), node, QUERY) for node in range(1, 11)]
    replies = exchange.exchange(grid, messages, timeout_s=1000.0, enough=0.9).replies
    assert len(replies) == 9
    assert clock.now < 3.0  # nine looks at 0.1 s or so, and as long again


class HungGrid(LocalGrid):
    """Node 10 answers nothing from some round on until a later one; then what it was asked meanwhile as well."""

    def __init__(self, clock: Clock, hangs: range) -> None:
        super().__init__()
        self.clock, self.hangs, self.round, self.late = clock, hangs, 0, set[str]()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        numbers = []
        for message in list(messages):
            self.round = round_of(message)
            (number,) = super().push_messages([message])
            if message.metadata.dst_node_id == 10 and self.round in self.hangs:
                self.late.add(number)
            numbers.append(number)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        hidden = self.late if self.round in self.hangs else ()
        return super().pull_messages([number for number in message_ids if number not in hidden])


@pytest.mark.parametrize("max_report_age", [0, 1])
def test_a_node_that_hangs_is_waited_for_once(max_report_age: int, clock: Clock, tmp_path: Path) -> None:
    grid = HungGrid(clock, range(3, 9))
    for device in range(4):
        grid.add(10 + device, {"partition-id": device}, client(growing, after={"t_cmp_s": 0.5}))
    scenario = fs.preset("tiny", [*FAST, "policy.size=4", "radio.fading=none", "system.reliability=ignored"])
    options = {"query_timeout_s": 30.0, "max_report_age": max_report_age}
    devices = played(scenario, grid, 14, tmp_path / "run", **options)
    assert clock.now < 30.0 + 2 * 4.0 + 2.0  # one time-out of a question, and at most two of a call
    assert devices.filter(pl.col("device") > 0)["transmitted"].all()  # nobody else missed a round
    hung = devices.filter(pl.col("device") == 0)["transmitted"].to_list()
    assert hung[:2] == [True, True]
    assert not any(hung[2:8])
    assert all(hung[-2:])  # it is back


def test_a_node_that_starts_late_and_answers_slowly_joins(clock: Clock, tmp_path: Path) -> None:
    """Training takes 3 s. Node 10 starts for 100 s, and then takes 5 s for an answer."""

    def takes(message: Message) -> float:
        first = message.metadata.dst_node_id == 10
        takes_s = 3.0 if message.metadata.message_type == "train" else 5.0 * first
        return takes_s + max(100.0 - clock.now, 0.0) * first

    grid = SlowGrid(clock, takes, [client(growing, after={"t_cmp_s": 0.5})] * 4, first=10)
    scenario = fs.preset("tiny", [*FAST, "policy.size=4", "radio.fading=none", "system.reliability=ignored"])
    devices = played(scenario, grid, 40, tmp_path / "run", query_timeout_s=30.0, max_report_age=2)
    late = devices.filter(pl.col("device") == 0)["transmitted"].to_list()
    assert not any(late[:10])
    assert sum(late[-5:]) >= 3
