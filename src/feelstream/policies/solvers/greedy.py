"""Sets built one by one from the label counts that each device adds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from feelstream.arrays import Ids, Reals

Cost = Callable[[Reals, list[int]], Reals]


def greedy_set(labels: Reals, most: int, cost: Cost, *, only_better: bool = False) -> Ids:
    """Rows of labels (devices, m), at most so many: again and again the one that makes the set cheapest.

    cost(pooled, chosen): of each set of the rows chosen so far and one row more, by its pooled counts (devices, m).
    The first of equals is taken, so callers shuffle. only_better: stop where one more makes the set no cheaper.
    """
    chosen: list[int] = []
    pooled, now = np.zeros(labels.shape[1]), np.inf
    for _ in range(min(most, len(labels))):
        costs = cost(pooled + labels, chosen)
        costs[chosen] = np.inf
        best = int(np.argmin(costs))
        if only_better and costs[best] >= now:
            break
        chosen.append(best)
        pooled, now = pooled + labels[best], costs[best]
    return np.array(chosen, np.int64)


def rest_of(schedule: Ids, device: int, total: Callable[[Ids], Reals], *, room: bool = False) -> Ids:
    """The rest of a set, with which a device competes for a place.

    Of a member: the others. Of another: all but the member whose place it would take at the least total, or the whole
    set where there is `room`. total(rest): (K,) what the rest and each device come to.
    """
    if device in schedule:
        return schedule[schedule != device]
    rests = [*([schedule] if room else []), *(np.delete(schedule, at) for at in range(len(schedule)))]
    return min(rests, key=lambda rest: total(rest)[device], default=schedule)
