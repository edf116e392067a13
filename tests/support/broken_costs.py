"""Cost rules that break one promise each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from feelstream.model.system import AsSettings, CostContext, CostRule, RoundCosts


def costing(costs: Callable[[int], Any]) -> CostRule:
    """A rule whose every round costs this, of so many devices."""

    class Costs(CostRule):
        def costs(self, seen: CostContext, rng: np.random.Generator) -> Any:
            return costs(seen.system.devices)

    return Costs()


class Boasts(CostRule):
    keeps_bits: ClassVar[bool] = True

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(update_bits=np.full(seen.system.devices, 1e5))


class Pretends(AsSettings):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(download_s=np.full(seen.system.devices, 0.1))


class Writes(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        seen.f_hz[:] = 1.0
        return RoundCosts()


BROKEN_COSTS = [
    (costing(lambda devices: RoundCosts(cycles=np.zeros(devices))), "contract"),
    (costing(lambda devices: RoundCosts(download_j=np.full(devices, -1.0))), "contract"),
    (costing(lambda devices: RoundCosts(download_s=np.full(devices, np.inf))), "contract"),
    (costing(lambda devices: RoundCosts(update_bits=np.array([1e5] * (devices + 1)))), "contract"),
    (costing(lambda devices: {"cycles": np.ones(devices)}), "contract"),
    (costing(lambda devices: RoundCosts(cycles=np.random.default_rng().uniform(1, 2, devices))), "repeatable"),
    (Boasts(), "contract"),
    (Pretends(), "flags"),
    (Writes(), "runs"),
]
