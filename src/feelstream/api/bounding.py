"""How far a run is from the best schedule in hindsight."""

from __future__ import annotations

from pathlib import Path

from feelstream.experiment.hindsight import Bound, bound_of
from feelstream.run import Run, read


def bound(run: Run | str | Path) -> Bound:
    """A proven upper bound on the fresh data that any schedule could have used in this run, and its gap to that.

    Args:
        run: A run with `data.fresh = per_round` and `data.eligible = any` that kept its table of devices, or its
            directory.

    >>> from feelstream import simulate
    >>> found = bound(simulate("tiny", fresh="per_round", eligible="any", engine="none"))
    >>> 0 <= found.gap <= 1
    True
    """
    return bound_of(run if isinstance(run, Run) else read(run))
