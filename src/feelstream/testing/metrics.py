"""The contract of an importance metric: `feelstream check my_metric.py:product`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Reals
from feelstream.model.importance import METRICS, Metric, evaluate, of_observation
from feelstream.testing.contract import Kind, Promise, frozen
from feelstream.testing.trials import CASES, Case


@dataclass(frozen=True)
class Weighed:
    """What a metric makes of some devices, and what it makes of them the second time."""

    devices: int
    given: NDArray
    again: NDArray


def _play(metric: Metric, case: Case | tuple[Reals, Reals]) -> Iterator[tuple[str, Weighed]]:
    """Rounds of a random world; two arrays, where it is a function of these."""
    if isinstance(case, Case):
        for observation, *_ in case.rounds():
            plan = observation.plan(case.size)
            given, again = (evaluate(metric, observation, plan) for _ in range(2))
            yield f"round {observation.round}", Weighed(case.devices, given, again)
        return
    if of_observation(metric):
        return
    amount, dissimilarity = (frozen(values.copy()) for values in case)
    given, again = (np.asarray(metric(amount, dissimilarity), float) for _ in range(2))
    yield f"{len(amount)} devices", Weighed(len(amount), given, again)


def _figures(step: Weighed) -> str | None:
    right = step.given.shape == (step.devices,) and bool(np.isfinite(step.given).all())
    return None if right else f"it gave {step.given!r:.200}"


def _repeatable(step: Weighed) -> str | None:
    return None if np.array_equal(step.given, step.again) else f"it gave {step.given!r:.100}, then {step.again!r:.100}"


def _drawn(devices: int) -> tuple[Reals, Reals]:
    """Amounts with mean 1, dissimilarities between 0 and 2."""
    rng = np.random.default_rng(devices)
    amount = rng.exponential(size=devices)
    return amount / amount.mean(), rng.uniform(0, 2, devices)


METRIC: Kind[Weighed] = Kind(
    "metric",
    METRICS,
    {
        "ordinary": _drawn(12),
        "one device": (np.ones(1), np.zeros(1)),
        "the first round": (_drawn(12)[0], np.zeros(12)),
        "nothing fresh": (np.zeros(12), np.zeros(12)),
        "one device has it all": (np.eye(12)[0] * 12, np.full(12, 2.0)),
        "no devices": (np.zeros(0), np.zeros(0)),
        **{f"a world: {name}": case for name, case in CASES.items()},
    },
    _play,
    (
        Promise("figures", "it gives one finite number per device", _figures),
        Promise("repeatable", "the same round gives the same importance", _repeatable),
    ),
)
