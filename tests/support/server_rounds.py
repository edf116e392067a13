"""Rounds of made-up updates for server updates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.learning.server import ServerUpdate, UpdateContext

Updates = NDArray[np.float32]


def context(held: Any, round: int = 1, **more: Any) -> UpdateContext:
    n = len(held)
    usual: dict[str, Any] = {
        "round": round, "rounds": 9, "devices": 9, "ids": np.arange(n), "held": np.asarray(held), "gain": np.ones(n),
        "probability": None, "reachable": float(np.sum(held)), "staleness": np.zeros(n, np.int64),
    }  # fmt: skip
    return UpdateContext(**usual | more)


def rounds(count: int = 6, n: int = 7, d: int = 11) -> list[tuple[Updates, Any]]:
    """Updates and how many samples each is of."""
    rng = np.random.default_rng(0)
    return [(rng.normal(0, 0.1, (n, d)).astype(np.float32), rng.integers(1, 50, n)) for _ in range(count)]


def played(server: ServerUpdate, of: list[tuple[Updates, Any]]) -> list[NDArray[np.float32]]:
    theta, found = np.linspace(-1, 1, of[0][0].shape[1]).astype(np.float32), []
    state = server.init(len(theta))
    for t, (updates, held) in enumerate(of, 1):
        theta, state = server.step(theta, updates, context(held, t), state, np.random.default_rng(t))
        found.append(theta)
    return found
