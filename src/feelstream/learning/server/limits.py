"""A limit on the length of an update, as a multiple of what has been usual lately.

Local training sometimes takes a step too far: one device comes back with an update ten or thirty times as long as
others, and in a round of few devices nothing averages it out. So each is cut to

    ‖Δθ_k‖ ≤ times · median of the norms of the last `window` updates, those of this round included
                                                            (of all of this round, where they are more)

by the norms as they arrived, before the inner update combines them. Few are cut where updates are about equally long.

References: a fixed limit on norms: Z. Sun, P. Kairouz, A. T. Suresh, H. B. McMahan, "Can You Really Backdoor Federated
Learning?", arXiv:1911.07963; one by a running quantile: G. Andrew, O. Thakkar, H. B. McMahan, S. Ramaswamy,
"Differentially Private Learning with Adaptive Clipping", NeurIPS 2021, arXiv:1905.03871. That it is a multiple of the
median over a window is our choice: updates become shorter as a model is trained, and no length has to be known.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Nested
from feelstream.learning.server.base import UpdateContext, Updates
from feelstream.learning.server.wrappers import Wrapper
from feelstream.plugins import Count, Positive


class Limited(Wrapper):
    """Each update is cut to `times` the median norm of the last `window` updates; then `inner`."""

    tag: ClassVar[str] = "limited"

    times: Positive = Field(default=6.0, description="longest update, in multiples of the median norm; > 0")
    window: Count = Field(default=20, description="updates over which the median is taken; ≥ 1")

    def changed(
        self, updates: Updates, context: UpdateContext, own: Nested, rng: np.random.Generator
    ) -> tuple[Updates, Nested]:
        found = updates.astype(np.float64)
        norms = np.linalg.norm(found, axis=1)
        known = np.concatenate([own["norms"], norms]) if own else norms
        lately = known[-max(self.window, len(norms)) :]
        longest = self.times * float(np.median(lately))
        found *= np.minimum(1.0, longest / np.maximum(norms, 1e-300))[:, None]
        return found.astype(np.float32), {"norms": lately}
