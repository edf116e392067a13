"""The stream and its buffers against a simulation that moves one sample at a time between Python lists."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from streams import stream_of

from feelstream.arrays import flatten
from feelstream.data.streaming.arrivals import Arrivals, EndlessArrivals, FiniteArrivals, OrderedArrivals
from feelstream.data.streaming.buffers import Buffer, Fifo, Keep, Reservoir, UseOnce, Window
from feelstream.data.streaming.order import arrange
from feelstream.data.streaming.partition import IID, Digits, Partition
from feelstream.data.streaming.processes import Bursts, Poisson, Trace, TruncatedNormal, Uniform
from feelstream.data.streaming.stream import Stream
from feelstream.randomness import Purpose, generator
from feelstream.resolved import Fresh

CLASSES, ROUNDS, ROUND_S = 3, 7, 0.3
KINDS = [TruncatedNormal, Uniform, Poisson, Bursts]
ORDERS = ["label", "label_from_any", "label_ascending", "label_random", "shuffled", "markov"]
FRESH: list[Fresh] = ["since_use", "per_round"]


def buffers(size: int) -> list[Buffer]:
    return [Keep(), Window(rounds=size), Fifo(capacity=size), Reservoir(capacity=size), UseOnce()]


@dataclass(frozen=True)
class Case:
    partition: Partition
    arrivals: Arrivals
    buffer: Buffer
    fresh: Fresh
    labels: np.ndarray
    devices: int
    seed: int

    def stream(self, rounds: int = ROUNDS) -> Stream:
        return stream_of(
            self.arrivals, self.buffer, self.fresh, partition=self.partition, labels=self.labels, classes=CLASSES,
            devices=self.devices, rounds=rounds, round_s=ROUND_S, seed=self.seed,
        )  # fmt: skip


@dataclass
class Sample:
    number: int
    round: int  # of arrival
    fresh: bool = True


@dataclass
class Device:
    shard: list[int]
    times: list[float] = field(default_factory=list)
    arrived: int = 0
    held: list[Sample] = field(default_factory=list)
    used: list[int] = field(default_factory=list)


Row = tuple[float, int, int]  # time, device, sample


class Naive:
    """The same world, from the same draws or the rows of a trace, one sample after another."""

    def __init__(self, case: Case, rows: list[Row] | None = None) -> None:
        self.case = case
        arrivals = case.arrivals
        if rows is not None:
            self.devices = [Device([]) for _ in range(case.devices)]
            for time, device, sample in sorted(rows, key=lambda row: row[0]):
                self.devices[device].shard.append(sample)
                self.devices[device].times.append(time)
            return
        assert isinstance(arrivals, OrderedArrivals)
        rng = generator(case.seed, Purpose.PARTITION)
        owner = case.partition.split(case.labels, case.devices, CLASSES, rng)
        shards = arrange(owner, case.labels, case.devices, CLASSES, arrivals.order, arrivals.stay, rng)
        self.devices = [
            Device(shards.samples[shards.offsets[k] : shards.offsets[k + 1]].tolist()) for k in range(case.devices)
        ]
        rng = generator(case.seed, Purpose.ARRIVALS)
        if isinstance(arrivals, FiniteArrivals):
            times = arrivals.times(shards.sizes, ROUNDS * ROUND_S, rng).tolist()
            for device in self.devices:
                device.times = sorted(times[: len(device.shard)])
                times = times[len(device.shard) :]
        elif isinstance(arrivals, EndlessArrivals):
            self.state = arrivals.init(case.devices, rng)

    def incoming(self, round: int) -> list[list[int]]:
        """Sample numbers that reach each device in this round, in order."""
        arrivals = self.case.arrivals
        if isinstance(arrivals, EndlessArrivals):
            rng = generator(self.case.seed, Purpose.ARRIVALS, round)
            counts, self.state = arrivals.counts(round, self.state, self.case.devices, rng)
            return [
                [device.shard[(device.arrived + j) % len(device.shard)] for j in range(count)] if device.shard else []
                for device, count in zip(self.devices, counts, strict=True)
            ]
        return [
            [
                number
                for number, time in zip(device.shard, device.times, strict=True)
                if (round - 1) * ROUND_S < time <= round * ROUND_S or (time == 0 and round == 1)
            ]
            for device in self.devices
        ]

    def advance(self, round: int) -> None:
        buffer = self.case.buffer
        incoming = self.incoming(round)
        draws = iter(self.slots(incoming, round))
        for device, numbers in zip(self.devices, incoming, strict=True):
            if self.case.fresh == "per_round":
                for sample in device.held:
                    sample.fresh = False
            for number in numbers:
                device.arrived += 1
                new = Sample(number, round)
                if isinstance(buffer, Reservoir) and device.arrived > buffer.capacity:
                    slot = next(draws)
                    if slot < buffer.capacity:
                        device.held[slot] = new
                else:
                    device.held.append(new)
                if isinstance(buffer, Fifo) and len(device.held) > buffer.capacity:
                    device.held.pop(0)
            if isinstance(buffer, Window):
                device.held = [sample for sample in device.held if sample.round > round - buffer.rounds]

    def slots(self, incoming: list[list[int]], round: int) -> list[int]:
        """The reservoir's draws: for arrival number i beyond the capacity, uniform from 0..i − 1."""
        buffer = self.case.buffer
        if not isinstance(buffer, Reservoir):
            return []
        bounds = [
            i
            for device, numbers in zip(self.devices, incoming, strict=True)
            for i in range(device.arrived + 1, device.arrived + len(numbers) + 1)
            if i > buffer.capacity
        ]
        return generator(self.case.seed, Purpose.BUFFER, round).integers(np.array(bounds, np.int64)).tolist()

    def use(self, devices: list[int]) -> None:
        for device in (self.devices[k] for k in devices):
            device.used = [sample.number for sample in device.held]
            if self.case.fresh == "since_use":
                for sample in device.held:
                    sample.fresh = False
            if isinstance(self.case.buffer, UseOnce):
                device.held = []

    def tally(self, numbers: list[int]) -> list[int]:
        return [sum(int(self.case.labels[number]) == label for number in numbers) for label in range(CLASSES)]

    def check(self, stream: Stream) -> None:
        held = [[sample.number for sample in device.held] for device in self.devices]
        fresh = [[sample.number for sample in device.held if sample.fresh] for device in self.devices]
        used = [device.used for device in self.devices]
        assert [stream.samples(k).tolist() for k in range(len(held))] == held
        assert stream.stored.tolist() == [len(numbers) for numbers in held]
        assert stream.stored_labels.tolist() == [self.tally(numbers) for numbers in held]
        assert stream.fresh.tolist() == [len(numbers) for numbers in fresh]
        assert stream.fresh_labels.tolist() == [self.tally(numbers) for numbers in fresh]
        assert stream.used_labels.tolist() == [self.tally(numbers) for numbers in used]
        assert stream.used_total.tolist() == self.tally([n for numbers in used for n in numbers])


@st.composite
def cases(draw: st.DrawFn, kind: type[Arrivals], order: str, buffer: int, fresh: Fresh) -> Case:
    devices = draw(st.integers(1, 5))
    samples = draw(st.integers(2 * devices, 40) | st.integers(1, devices))  # the latter leaves devices empty
    labels = np.array(draw(st.lists(st.integers(0, CLASSES - 1), min_size=samples, max_size=samples)), np.uint8)
    fields: dict = {"order": order, "stay": 0.6}
    if kind in (Poisson, Bursts):
        fields["rate"] = draw(st.sampled_from([0.3, 2.0, 9.0]))
    if kind is TruncatedNormal:
        fields["sigma"] = draw(st.sampled_from([0.01, 0.3]))
    partition = Digits(per_device=2) if samples >= 2 * devices and draw(st.booleans()) else IID()
    return Case(
        partition,
        kind(**fields),
        buffers(draw(st.integers(1, 6)))[buffer],
        fresh,
        labels,
        devices,
        draw(st.integers(0, 2**32)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("fresh", FRESH)
@pytest.mark.parametrize("buffer", range(5), ids=[b.tag for b in buffers(1)])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS, ids=[k.tag for k in KINDS])
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_stream_equals_the_naive_simulation(
    kind: type[Arrivals], order: str, buffer: int, fresh: Fresh, data: st.DataObject
) -> None:
    case = data.draw(cases(kind, order, buffer, fresh))
    compare(case, Naive(case), data)


@pytest.mark.parametrize("fresh", FRESH)
@pytest.mark.parametrize("buffer", range(5), ids=[b.tag for b in buffers(1)])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_replay_equals_the_naive_simulation(
    tmp_path_factory: pytest.TempPathFactory, buffer: int, fresh: Fresh, data: st.DataObject
) -> None:
    labels = (np.arange(10) % CLASSES).astype(np.uint8)
    time = st.integers(0, 2 * ROUNDS + 3).map(lambda half: half * ROUND_S / 2)
    rows = data.draw(st.lists(st.tuples(time, st.integers(0, 3), st.integers(0, 9)), max_size=40))
    path = tmp_path_factory.mktemp("trace") / "trace.csv"
    path.write_text("time,device,sample\n" + "".join(f"{t!r},{k},{n}\n" for t, k, n in rows))
    settings_of_buffer = buffers(data.draw(st.integers(1, 6)))[buffer]
    case = Case(IID(), Trace(path=str(path)), settings_of_buffer, fresh, labels, 4, 5)
    compare(case, Naive(case, rows), data)


def compare(case: Case, naive: Naive, data: st.DataObject) -> None:
    """Run both side by side, with drawn devices used in each round and a restart from a snapshot half-way.

    Neither the stream that it was taken of nor the one that goes on from it may write into the snapshot.
    """
    stream = case.stream()
    cut = data.draw(st.integers(0, ROUNDS))
    saved, copy = stream.snapshot(), {}
    for round in range(1, ROUNDS + 1):
        stream.advance(round)
        naive.advance(round)
        naive.check(stream)
        who = data.draw(st.lists(st.integers(0, case.devices - 1), unique=True))
        stream.use(np.array(who, np.int64))
        naive.use(who)
        naive.check(stream)
        if round == cut:  # the rest of the run goes on from a snapshot in a stream built afresh
            saved, left = stream.snapshot(), stream
            copy = {name: array.copy() for name, array in flatten(saved).items()}
            stream = case.stream()
            stream.restore(saved)
            naive.check(stream)
            left.use(np.arange(case.devices))
            if round < ROUNDS:
                left.advance(round + 1)
    assert all(np.array_equal(flatten(saved)[name], array) for name, array in copy.items())


def world(arrivals: Arrivals, buffer: Buffer, fresh: Fresh = "since_use", devices: int = 4) -> Case:
    labels = (np.arange(24) % CLASSES).astype(np.uint8)
    return Case(IID(), arrivals, buffer, fresh, labels, devices, 11)


@pytest.mark.parametrize("buffer", buffers(4), ids=lambda b: b.tag)
def test_draws_are_uniform_over_what_is_held(buffer: Buffer) -> None:
    stream = world(Poisson(rate=3.0), buffer).stream()
    for round in range(1, 4):
        stream.advance(round)
    device = int(stream.stored.argmax())
    held, times = np.unique(stream.samples(device), return_counts=True)
    drawn = stream.draw(device, (200, 100), np.random.default_rng(1))
    assert drawn.shape == (200, 100)
    assert drawn.dtype == np.int64
    numbers, counts = np.unique(drawn, return_counts=True)
    assert numbers.tolist() == held.tolist()
    share = times / times.sum()
    assert np.abs(counts / drawn.size - share).max() < 5 * 0.5 / math.sqrt(drawn.size)


def test_rounds_are_taken_in_turn_and_the_empty_have_nothing_to_draw() -> None:
    stream = world(Uniform(), Keep()).stream()
    with pytest.raises(ValueError, match="device 1 holds no samples"):
        stream.draw(1, 5, np.random.default_rng(0))
    assert stream.samples(1).tolist() == []
    for array in (stream.stored, stream.fresh, stream.stored_labels, stream.fresh_labels, stream.used_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for round in range(1, ROUNDS + 1):
        for wrong in {0, 1, 3} - {round}:
            with pytest.raises(ValueError, match=f"cannot follow round {round - 1} of 7"):
                stream.advance(wrong)
        stream.advance(round)
    with pytest.raises(ValueError, match="round 8 cannot follow round 7 of 7"):
        stream.advance(ROUNDS + 1)


def test_a_reservoir_holds_every_arrival_with_equal_probability() -> None:
    devices, capacity, per_round = 20_000, 4, [3, 5, 1, 4]
    buffer, rng, everyone = Reservoir(capacity=capacity), np.random.default_rng(9), np.arange(devices)
    state = buffer.init(devices)
    for count in per_round:
        buffer.join(state, everyone, np.full(devices, count), rng)
    total = sum(per_round)
    held = state["slots"]
    assert all(len(set(row)) == capacity for row in held.tolist())
    # Without replacement within a device the counts vary less than multinomial ones, so chance passes more
    # easily than the level says, while a biased slot or a wrong bound moves the counts by hundreds.
    assert chisquare(np.bincount(held.ravel(), minlength=total)).pvalue > 1e-3


def test_a_huge_reservoir_takes_only_what_arrives() -> None:
    """2³¹ − 1 slots for each of three devices would be 48 GiB; and whoever never fills it keeps everything."""
    buffer, rng = Reservoir(capacity=2**31 - 1), np.random.default_rng(9)
    state = buffer.init(3)
    for _ in range(20):
        joined, left = buffer.join(state, np.array([0, 2]), np.array([3, 1]), rng)
        assert (len(joined.devices), len(left.devices)) == (4, 0)
    assert state["slots"].nbytes < 10_000
    assert [buffer.held(state, device).tolist() for device in range(3)] == [list(range(60)), [], list(range(20))]
