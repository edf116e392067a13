"""Clients of a small federation: a model of two arrays, and devices that hold, train, report or fall silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict

import feelstream as fs
from feelstream.flower import Device, ScheduledFedAvg
from feelstream.flower.local_grid import Answer, LocalGrid
from feelstream.flower.wire import QUERY, SERVER

K, CLASSES = 4, 3
BUDGET_J = 5e-4  # so little that the queue of a device that trained stays above 0 for many rounds
FAST = [
    "cpu.frequency_hz=[1e9, 1.5e9]",
    f"system.devices={K}",
    "policy.V=inf",
    "learning.engine=none",
    "data.eligible=with_data",
    f"system.energy_budget_j={BUDGET_J}",
]
START = {"w": np.zeros((2, 2), np.float32), "steps": np.array([0], np.int64)}


def model() -> ArrayRecord:
    return ArrayRecord({name: Array(values) for name, values in START.items()})


def told(deletes: bool = False, **more: float) -> Message:
    """A question to a device of three classes in round 1, unless more is said."""
    LocalGrid()  # fills in who we are
    values = {"round": 1, "used-round": 0, "classes": CLASSES, "deletes": int(deletes), **more}
    limits = {"frequency-hz": [1e8, 1e9], "gain-range": [0.25, 4.0]}
    return Message(RecordDict({SERVER: MetricRecord({**values, **limits})}), 7, QUERY)


def at_node(**config: Any) -> Context:
    """What the client of device 2 is given beside a message."""
    return Context(1, 7, {"partition-id": 2, **config}, RecordDict(), {})


def round_of(message: Message) -> int:
    """In which round a device is asked or called."""
    round = message.content.metric_records[SERVER]["round"]
    assert isinstance(round, int)
    return round


def client(held: Callable[[int], list[int]], step: float = 1.0, **options: Any) -> Answer:
    """A device that holds what `held` says of each round and moves the model by `step`."""

    def answer(context: Context, message: Message) -> Message | None:
        settings = {"f_hz": 1.2e9, "beta": 1.0, "meter": None} | options.get("device", {})
        device = Device(context, message, held(round_of(message)), **settings)
        arrays = message.content.array_records.get("arrays")
        if arrays is None:
            return device.answer()
        trained = {name: Array((array.numpy() + step).astype(array.numpy().dtype)) for name, array in arrays.items()}
        metrics = MetricRecord({"loss": step})
        return device.answer(ArrayRecord(trained), metrics, **options.get("after", {}))

    return answer


def growing(round: int) -> list[int]:
    return [2 * round, round, 0]


def silent_in_training(answer: Answer) -> Answer:
    def quiet(context: Context, message: Message) -> Message | None:
        return None if message.metadata.message_type == "train" else answer(context, message)

    return quiet


def grid_of(*answers: Answer, first: int = 10) -> LocalGrid:
    grid = LocalGrid()
    for device, answer in enumerate(answers):
        grid.add(first + device, {"partition-id": device}, answer)
    return grid


class LoopGrid(LocalGrid):
    """Flower's own loop needs send_and_receive."""

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages([number for number in self.push_messages(messages) if number])


def rows(out: Path, device: int | None = None) -> pl.DataFrame:
    """devices.parquet of a run, or what it says of one device."""
    devices = fs.read(out).devices
    assert devices is not None
    return devices if device is None else devices.filter(pl.col("device") == device)


def played(scenario: fs.Scenario, grid: LocalGrid, rounds: int, out: Path, **options: Any) -> pl.DataFrame:
    """Play a federation whose run verifies: its devices.parquet."""
    settings = {"classes": CLASSES, "wait_s": 0.0} | options
    ScheduledFedAvg(scenario, out=out, **settings).start(grid, model(), num_rounds=rounds)
    report = fs.verify(out)
    assert report.ok, report
    return rows(out)


class Clock:
    """Seconds that pass only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class SlowGrid(LocalGrid):
    """Nodes whose replies take a while: `seconds` of each message."""

    def __init__(
        self, clock: Clock, seconds: Callable[[Message], float], answers: Iterable[Answer], first: int
    ) -> None:
        super().__init__()
        self.clock, self.seconds, self.ready = clock, seconds, dict[str, float]()
        for device, answer in enumerate(answers):
            self.add(first + device, {"partition-id": device}, answer)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        numbers = []
        for message in list(messages):
            (number,) = super().push_messages([message])
            self.ready[number] = self.clock.now + self.seconds(message)
            numbers.append(number)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return super().pull_messages([number for number in message_ids if self.ready[number] <= self.clock.now])
