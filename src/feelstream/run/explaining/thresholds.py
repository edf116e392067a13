"""What would have changed a decision: the nearest value of a setting, or of the device's own CPU frequency.

Found by deciding again, with all else as it was in the round: outwards in equal ratios until the device fares
otherwise, then by bisection between the last two values. A window narrower than one ratio may be passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from feelstream.policies.base import Observation, Policy
from feelstream.run.explaining.scenes import Scene

FAR = 1e6  # by which factor a setting is varied at most
WEIGHTS = ("V", "price")  # settings of a policy that weigh its terms against each other


@dataclass(frozen=True)
class Threshold:
    """Beyond `value` the device fares otherwise; at `same`, close by, it does not."""

    setting: str  # V, price or f_hz
    value: float
    same: float
    too_slow: bool = False  # beyond it the device misses the deadline

    @property
    def above(self) -> bool:
        return self.value > self.same


def with_setting(policy: Policy, setting: str, value: float) -> Policy:
    return policy.model_copy(update={setting: value})


def with_frequency(observation: Observation, device: int, f_hz: float) -> Observation:
    """The observation, with another frequency of one device."""
    changed = observation.f_hz.copy()
    changed[device] = f_hz
    return replace(observation, f_hz=changed)


def thresholds(scene: Scene, device: int) -> tuple[Threshold, ...]:
    """Those of V or price, and of the frequency within the scenario's range: below and above, where there are any."""
    policy, known = scene.policy, scene.observation
    now = bool(np.isin(device, scene.decision.schedule))
    # Solving for frequencies and band takes a thousand times as long: fewer, wider steps.
    ratio, close = (4.0, 1e-3) if policy.fills_round else (2**0.25, 1e-9)

    def fares_otherwise(policy: Policy | None = None, observation: Observation | None = None) -> bool:
        return bool(np.isin(device, scene.decide(policy, observation).schedule)) != now

    found: list[Threshold] = []
    for setting in WEIGHTS:
        present = getattr(policy, setting, None)
        if not isinstance(present, int | float) or not 0 < present < np.inf:
            continue

        def by_setting(value: float, setting: str = setting) -> bool:
            return fares_otherwise(with_setting(policy, setting, value))

        for limit in (present / FAR, present * FAR):
            if pair := nearest(by_setting, float(present), limit, ratio, close):
                found.append(Threshold(setting, *pair))

    def by_frequency(f_hz: float) -> bool:
        return fares_otherwise(observation=with_frequency(known, device, f_hz))

    for limit in known.system.frequency_hz:
        if pair := nearest(by_frequency, float(known.f_hz[device]), limit, ratio, close):
            plan = with_frequency(known, device, pair[0]).plan(scene.decision.plan.n)
            found.append(Threshold("f_hz", *pair, too_slow=now and not plan.feasible[device]))
    return tuple(found)


def nearest(
    differs: Callable[[float], bool], start: float, limit: float, ratio: float, close: float
) -> tuple[float, float] | None:
    """(first value found at which it differs, last at which it does not), on the way from start to limit."""
    same, step = start, ratio if limit > start else 1 / ratio
    if start <= 0 or limit <= 0 or start == limit:
        return None
    while True:
        value = same * step
        value = min(value, limit) if limit > start else max(value, limit)
        if differs(value):
            break
        if value == limit:
            return None
        same = value
    while abs(value / same - 1) > close:
        middle = float(np.sqrt(value * same))
        if differs(middle):
            value = middle
        else:
            same = middle
    return value, same
