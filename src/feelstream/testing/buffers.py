"""The contract of a buffer: `feelstream check my_buffer.py:Mine`. The flags of its class are tested like all else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming import BUFFERS
from feelstream.data.streaming.buffers import Buffer, Items, Store
from feelstream.testing.contract import Kind, Promise, copied, frozen, read_only, same, state_problem, stored_and_read

Held = list[list[int]]  # arrival positions, by device


@dataclass(frozen=True)
class Case:
    """Rounds of arrivals and transmissions, the same every time."""

    devices: int = 5
    rounds: int = 24
    rate: float = 2.0
    used: float = 0.2  # probability that a device transmits in a round
    endless: bool = True
    burst: int = 0  # arrivals of everyone in round 4

    def counts(self, round: int) -> Ints:
        """Arrivals of each device, (K,)."""
        rng = np.random.default_rng([3, round])
        counts = rng.poisson(self.rate, self.devices)
        counts[rng.random(self.devices) < 0.3] = 0
        return counts + (self.burst if round == 4 else 0)

    def users(self, round: int) -> Ints:
        return np.flatnonzero(np.random.default_rng([4, round]).random(self.devices) < self.used)

    @property
    def longest(self) -> int | None:
        """Most arrivals of any device; None where no end is known."""
        return None if self.endless else int(np.sum([self.counts(t) for t in range(1, self.rounds + 1)], axis=0).max())


@dataclass(frozen=True)
class Round:
    """What a buffer did in a round; the same of a second store, and of one that goes on from a stored snapshot."""

    buffer: Buffer
    arrived: list[list[range]]  # positions by device and round so far, 0 first
    before: Held
    came: Items
    left: Items
    held: Held
    drawn: list[NDArray]  # of each device that holds something
    seen: Ints  # `hi`
    users: Ints
    emptied: bool
    held_after: Held  # their use
    again: Held
    from_store: Held
    snapshot: Nested
    kept: Nested  # a copy of the snapshot of the round before
    kept_now: Nested  # that snapshot itself


def _play(buffer: Buffer, case: Case) -> Iterator[tuple[str, Round]]:
    first, second = (buffer.store(case.devices, case.longest) for _ in range(2))
    arrived: list[list[range]] = [[range(0)] for _ in range(case.devices)]
    snapshot = first.snapshot()
    for t in range(1, case.rounds + 1):
        stored, kept, kept_now, before = stored_and_read(snapshot), copied(snapshot), snapshot, _held(first)
        third = buffer.store(case.devices, case.longest)
        third.restore(read_only(stored))
        (came, left), *_ = [_join(store, case.counts(t), t) for store in (first, second, third)]
        for mine, count in zip(arrived, case.counts(t).tolist(), strict=True):
            mine.append(range(mine[-1].stop, mine[-1].stop + count))
        held, seen, users = _held(first), first.hi.copy(), case.users(t)
        drawn = [first.draw(k, (4, 3), np.random.default_rng([5, t])) for k, mine in enumerate(held) if mine]
        emptied, *_ = [bool(store.use(frozen(users.copy()))) for store in (first, second, third)]
        snapshot = first.snapshot()
        what = (buffer, arrived, before, came, left, held, drawn, seen, users, emptied)
        yield f"round {t}", Round(*what, _held(first), _held(second), _held(third), snapshot, kept, kept_now)


def _join(store: Store, counts: Ints, round: int) -> tuple[Items, Items]:
    devices = np.flatnonzero(counts)
    return store.join(frozen(devices), frozen(counts[devices]), np.random.default_rng([2, round]))


def _held(store: Store) -> Held:
    return [store.held(k).tolist() for k in range(len(store.hi))]


def _counted(step: Round) -> str | None:
    wanted = [sum(map(len, mine)) for mine in step.arrived]
    return None if step.seen.tolist() == wanted else f"`hi` is {step.seen.tolist()} after {wanted} arrivals"


def _contents(step: Round) -> str | None:
    """What came and what left, one by one: an item may come and leave in the same round."""
    for k, before in enumerate(step.before):
        came, left = (items.positions[items.devices == k].tolist() for items in (step.came, step.left))
        found = sorted([*before, *came])
        for position in left:
            if position not in found:
                return f"device {k}: position {position} left, and was not there"
            found.remove(position)
        if sorted(step.held[k]) != found:
            return f"device {k}: holds {step.held[k]}, but held {before}, {came} came and {left} left"
        if len(set(found)) < len(found) or (found and not 0 <= found[0] <= found[-1] < step.seen[k]):
            return f"device {k}: holds {found}, of arrivals 0 to {step.seen[k] - 1}"
    return None


def _draws(step: Round) -> str | None:
    holders = [(k, set(mine)) for k, mine in enumerate(step.held) if mine]
    for (device, mine), drawn in zip(holders, step.drawn, strict=True):
        if drawn.shape != (4, 3) or drawn.dtype.kind not in "iu" or not set(drawn.ravel().tolist()) <= mine:
            return f"device {device}: drew {drawn.tolist()} of {sorted(mine)}"
    return None


def _use(step: Round) -> str | None:
    if step.users.size and step.emptied != step.buffer.empties_on_use:
        return f"`use` returned {step.emptied}, and `empties_on_use` is {step.buffer.empties_on_use}"
    wanted = [[] if step.emptied and k in step.users else mine for k, mine in enumerate(step.held)]
    return None if step.held_after == wanted else f"after use it holds {step.held_after}, not {wanted}"


def _flags(step: Round) -> str | None:
    buffer, w = step.buffer, step.buffer.holds_rounds
    for k, mine in enumerate(step.held):
        if buffer.admits_all and not set(step.arrived[k][-1]) <= set(mine):
            return f"`admits_all`, and device {k} holds {mine} when {list(step.arrived[k][-1])} arrived"
        if buffer.keeps and (step.left.devices == k).any():
            return f"`keeps`, and something left device {k}"
        if w is not None and (wanted := [p for each in step.arrived[k][-w:] for p in each]) != sorted(mine):
            return f"`holds_rounds` is {w}, and device {k} holds {sorted(mine)}, not {wanted}"
        if buffer.most_held is not None and len(mine) > buffer.most_held:
            return f"`most_held` is {buffer.most_held}, and device {k} holds {len(mine)}"
    return None


def _repeatable(step: Round) -> str | None:
    return None if step.again == step.held_after else f"a second store holds {step.again}, not {step.held_after}"


def _checkpoint(step: Round) -> str | None:
    if step.from_store == step.held_after:
        return None
    return f"from a stored snapshot it goes on to hold {step.from_store}, not {step.held_after}"


def _state(step: Round) -> str | None:
    if problem := state_problem(step.snapshot):
        return problem
    return None if same(step.kept, step.kept_now) else "a snapshot changed with the round after it; return copies"


BUFFER: Kind[Round] = Kind(
    "buffer",
    BUFFERS,
    {
        "ordinary": Case(),
        "one device": Case(devices=1),
        "nothing arrives": Case(rate=0.0, rounds=4),
        "a burst": Case(burst=700),
        "used every round": Case(used=1.0),
        "never used": Case(used=0.0, rounds=60),
        "an end that is known": Case(endless=False),
    },
    _play,
    (
        Promise("state", "its snapshots are plain, finite arrays by name that later rounds do not change", _state),
        Promise("arrivals", "it counts every arrival, whether it keeps it or not", _counted),
        Promise("contents", "it holds what came and has not left, each sample once", _contents),
        Promise("draws", "it draws from what a device holds", _draws),
        Promise("use", "a transmission deletes all that a device holds, or nothing, as `empties_on_use` says", _use),
        Promise("flags", "it does what its flags promise to other code", _flags),
        Promise("repeatable", "the same arrivals and random numbers leave the same samples", _repeatable),
        Promise("checkpoint", "it goes on the same from a stored snapshot", _checkpoint),
    ),
)
