"""A policy that asks devices for a function of one's own, from docs/reports.md.

feelstream run tiny --set policy.name=examples/my_probe.py:Uneven
"""

import numpy as np

from feelstream import Decision, Policy


def margin(predict, samples):
    """How far the losses of a device's samples lie apart: 0 where the model treats all alike."""
    losses = predict("train", samples).losses
    return losses.max() - losses.min()


MARGIN = f"{__file__}:margin"  # as a scenario would name it


class Uneven(Policy):
    """The `size` devices whose samples the model treats least alike."""

    needs = frozenset({MARGIN})

    def select(self, state, observation, rng):
        plan, margin = observation.plan(self.size), observation.reports[MARGIN]
        reported = np.flatnonzero(plan.feasible & ~np.isnan(margin))  # NaN: too slow for the slot, or no data
        shuffled = rng.permutation(reported)
        return Decision(np.sort(shuffled[np.argsort(-margin[shuffled], kind="stable")][: self.size]), plan)
