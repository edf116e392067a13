"""Vectors that devices keep between rounds: a row each for those that have any, 0 for all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Nested

Rows = NDArray[np.float32]


def rows_of(kept: Nested, ids: Ids, length: int) -> Rows:
    """(n, length) what these devices keep.

    >>> rows_of({"ids": np.array([3, 5]), "rows": np.eye(2, dtype=np.float32)}, np.array([5, 4]), 2).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    found = np.zeros((len(ids), length), np.float32)
    if kept:
        there = np.isin(ids, kept["ids"])
        found[there] = kept["rows"][np.searchsorted(kept["ids"], ids[there])]
    return found


def with_rows(kept: Nested, ids: Ids, rows: Rows, where: Flags) -> Nested:
    """The same with the rows of these devices in place, as far as `where`; ids ascend, and none is there twice."""
    ids, rows = ids[where], rows[where]
    if not len(ids):
        return kept
    if not kept:
        order = np.argsort(ids)
        return {"ids": ids[order], "rows": rows[order]}
    others = ~np.isin(kept["ids"], ids)
    every = np.concatenate([kept["ids"][others], ids])
    order = np.argsort(every)
    return {"ids": every[order], "rows": np.concatenate([kept["rows"][others], rows])[order]}
