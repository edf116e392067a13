"""The search for one specification under which all claims are reproduced.

Energy is known for every schedule, so only those whose savings are the paper's remain. Among them, a model of each
claim's effect that is additive in the settings, fitted to all that was played so far, says where all claims are most
likely to be reproduced; those specifications are played next, and the model is fitted again. Nothing here is random, so
the same results lead to the same search, and an interrupted one goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import log_ndtr

from feelstream.studies.hu2023.multiverse.outcomes import specification_of
from feelstream.studies.hu2023.multiverse.settings import LEARNING, Factor, Specification

RIDGE = 1.0  # prior weight of "no effect of this setting", in specifications
APART = 2  # settings in which two specifications of one batch differ at least


def one_hot(specifications: Sequence[Specification], settings: Mapping[str, Factor]) -> NDArray[np.float64]:
    """(n, 1 + values): a constant, and 1 for each value that is chosen."""
    columns = [(name, value) for name in LEARNING for value in settings[name].values]
    places = {column: index + 1 for index, column in enumerate(columns)}
    found = np.zeros((len(specifications), 1 + len(columns)))
    found[:, 0] = 1
    for row, specification in enumerate(specifications):
        for choice in specification.choices:
            if choice in places:
                found[row, places[choice]] = 1
    return found


def promise(
    table: pl.DataFrame, claims: Sequence[str], candidates: Sequence[Specification], settings: Mapping[str, Factor]
) -> NDArray[np.float64]:
    """(candidates,) Σ over claims of ln P(effect > 0), under a ridge regression of each effect on the settings.

    P is Φ(predicted effect / s) with s² the variance of the residuals.
    """
    total, theirs = np.zeros(len(candidates)), one_hot(candidates, settings)
    for key in claims:
        rows = table.filter(claim=key)
        if len(rows) < 2:
            continue
        x = one_hot([specification_of(row) for row in rows.iter_rows(named=True)], settings)
        y = rows["effect"].to_numpy()
        penalty = RIDGE * np.eye(x.shape[1])
        penalty[0, 0] = 0.0  # the mean is not drawn to 0
        weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
        spread = float(np.sqrt(np.mean((y - x @ weights) ** 2))) or 1e-9
        total += log_ndtr(theirs @ weights / spread)
    return total


def next_batch(
    table: pl.DataFrame,
    claims: Sequence[str],
    candidates: Sequence[Specification],
    settings: Mapping[str, Factor],
    n: int,
) -> list[Specification]:
    """The n most promising candidates that were not played yet and differ from each other in APART settings or more."""
    played = {specification_of(row) for row in table.iter_rows(named=True)}
    left = [each for each in candidates if each not in played]
    if not left:
        return []
    order = np.argsort(-promise(table, claims, left, settings), kind="stable")
    picked: list[Specification] = []
    for index in order:
        own = dict(left[index].choices)
        if all(sum(own[name] != value for name, value in other.choices) >= APART for other in picked):
            picked.append(left[index])
        if len(picked) == n:
            break
    return picked
