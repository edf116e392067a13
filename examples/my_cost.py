"""A cost rule of one's own: an epoch over the fresh data, updates that are sent sparse, and a shared downlink.

feelstream check examples/my_cost.py:Sparse
feelstream run tiny --set costs.rule.kind=examples/my_cost.py:Sparse --set costs.rule.per_sample=1e7
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from feelstream.model.system import CostContext, CostRule, RoundCosts


class Sparse(CostRule):
    """Cycles by the fresh samples, bits by what they can have changed, a download whose rate varies over rounds."""

    per_sample: float = Field(2e7, gt=0, description="CPU cycles of a fresh sample; > 0")
    least: float = Field(0.1, gt=0, le=1, description="share of the update sent after one sample; above 0, at most 1")
    rate_bit_per_s: float = Field(5e6, gt=0, description="mean rate at which a device receives the model, bit/s; > 0")
    receive_w: float = Field(0.01, ge=0, description="power of a device while it receives, W; ≥ 0")

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        samples = np.maximum(seen.fresh, 1)
        share = np.minimum(self.least * np.sqrt(samples), 1.0)
        download_s = seen.system.update_bits / (self.rate_bit_per_s * rng.uniform(0.5, 1.5, seen.system.devices))
        return RoundCosts(
            cycles=self.per_sample * samples,
            update_bits=seen.system.update_bits * share,
            download_s=download_s,
            download_j=self.receive_w * download_s,
        )
