"""Cost rules that break one promise each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from feelstream.model.system import AsSettings, CostContext, CostRule, RoundCosts


class Free(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(cycles=np.zeros(seen.system.devices))


class Refund(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(download_j=np.full(seen.system.devices, -1.0))


class Endless(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(download_s=np.full(seen.system.devices, np.inf))


class OneForAll(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(update_bits=np.array([1e5] * (seen.system.devices + 1)))


class Plain(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> Any:
        return {"cycles": np.ones(seen.system.devices)}


class Moody(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(cycles=np.random.default_rng().uniform(1, 2, seen.system.devices))


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
    (Free(), "contract"),
    (Refund(), "contract"),
    (Endless(), "contract"),
    (OneForAll(), "contract"),
    (Plain(), "contract"),
    (Moody(), "repeatable"),
    (Boasts(), "contract"),
    (Pretends(), "flags"),
    (Writes(), "runs"),
]
