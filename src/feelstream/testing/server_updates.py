"""The contract of a server update: `feelstream check my_server.py:Mine`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Nested
from feelstream.learning.server import SERVER_UPDATES, ServerUpdate, UpdateContext
from feelstream.testing.contract import Kind, Promise, frozen, read_only, same, state_problem, stored_and_read

Theta = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """Rounds of updates, the same every time."""

    devices: int = 7
    parameters: int = 5
    rounds: int = 8
    size: int = 4
    scale: float = 0.1

    def context(self, round: int) -> UpdateContext:
        rng = np.random.default_rng([1, round])
        n = int(rng.integers(1, self.size + 1))
        held = rng.integers(1, 40, self.devices)
        ids = np.sort(rng.permutation(self.devices)[:n])
        return UpdateContext(
            round=round,
            rounds=self.rounds,
            devices=self.devices,
            ids=frozen(ids),
            held=frozen(held[ids]),
            gain=frozen(rng.exponential(size=n)),
            probability=frozen(np.full(n, self.size / self.devices)),
            reachable=float(held.sum()),
            staleness=frozen(np.zeros(n, np.int64)),
        )

    def updates(self, round: int, n: int) -> NDArray[np.float32]:
        drawn = np.random.default_rng([2, round]).normal(0, self.scale, (n, self.parameters))
        return frozen(drawn.astype(np.float32))


@dataclass(frozen=True)
class Round:
    """θ and state after a round; the same a second time, and from a stored state."""

    before: Theta
    theta: Theta
    state: Nested
    again: Theta
    theta_from_store: Theta
    state_from_store: Nested
    handed_out: Theta
    handed_out_before: Theta
    bits: float


def _play(server: ServerUpdate, case: Case) -> Iterator[tuple[str, Round]]:
    theta, state = np.linspace(-1, 1, case.parameters).astype(np.float32), server.init(case.parameters)
    for t in range(1, case.rounds + 1):
        context, stored = case.context(t), stored_and_read(state)
        updates = case.updates(t, len(context.ids))
        (after, new), (again, _), (from_store, new_from_store) = (
            server.step(frozen(theta), updates, context, read_only(each), np.random.default_rng([3, t]))
            for each in (state, state, stored)
        )
        before = server.handed_out(frozen(theta), read_only(state))
        model = server.handed_out(frozen(np.array(after)), read_only(new))
        bits = server.bits(case.parameters)
        yield f"round {t}", Round(theta, after, new, again, from_store, new_from_store, model, before, bits)
        theta, state = np.array(after), new


def _theta(step: Round) -> str | None:
    return _model("θ", step.theta, step.before)


def _handed_out(step: Round) -> str | None:
    name = "the model that it hands out"
    return _model(name, step.handed_out_before, step.before) or _model(name, step.handed_out, step.before)


def _model(name: str, theta: Theta, before: Theta) -> str | None:
    if theta.dtype != np.float32 or theta.shape != before.shape:
        return f"{name} is {theta.dtype} of shape {theta.shape}, not float32 of {before.shape}"
    return None if np.isfinite(theta).all() else f"{name} is not a finite number any more"


def _state(step: Round) -> str | None:
    return state_problem(step.state)


def _bits(step: Round) -> str | None:
    return None if np.isfinite(step.bits) and step.bits > 0 else f"`bits` is {step.bits!r}"


def _repeatable(step: Round) -> str | None:
    return None if np.array_equal(step.theta, step.again) else "the second time θ was another"


def _checkpoint(step: Round) -> str | None:
    if np.array_equal(step.theta, step.theta_from_store) and same(step.state, step.state_from_store):
        return None
    return "from a stored state θ or the next state is another"


SERVER_UPDATE: Kind[Round] = Kind(
    "server_update",
    SERVER_UPDATES,
    {
        "ordinary": Case(),
        "one device": Case(devices=1, size=1),
        "all devices": Case(size=7, rounds=30),
        "updates of 0": Case(scale=0.0),
        "long updates": Case(scale=1e3),
        "one parameter": Case(parameters=1),
    },
    _play,
    (
        Promise("theta", "it gives a finite float32 θ of the same length", _theta),
        Promise("handed out", "the model that it hands out is like θ", _handed_out),
        Promise("state", "its state is nested dictionaries of plain, finite arrays, or empty", _state),
        Promise("bits", "it says how many bits an update takes", _bits),
        Promise("repeatable", "the same updates, state and random numbers give the same θ", _repeatable),
        Promise("checkpoint", "it goes on the same from a stored state", _checkpoint),
    ),
)
