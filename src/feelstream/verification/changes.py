"""Runs whose V, size or budget change on the way: each phase between two changes has settings of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from feelstream.verification.findings import Array
from feelstream.verification.stored import PLACES, StoredSettings, place_j, with_weight


class Phase(NamedTuple):
    """The rounds first, …, end − 1 and what was set in them."""

    first: int
    end: int
    settings: StoredSettings


def phases(s: StoredSettings) -> list[Phase]:
    """All phases in order; a run without changes is one."""
    firsts = sorted({1, *(change.round for change in s.changes)})
    return [Phase(first, end, _in_force(s, first)) for first, end in zip(firsts, [*firsts[1:], s.T + 1], strict=True)]


def _in_force(s: StoredSettings, round: int) -> StoredSettings:
    changed: dict[str, Any] = {change.setting: change.value for change in s.changes if change.round <= round}
    if "V" in changed:
        changed["auto"] = math.isnan(changed["V"])
    return with_weight(replace(s, **changed))


def with_backlog(s: StoredSettings, energy_mean_j: Array) -> StoredSettings:
    """The same with the fleet's queue of every round [T], from what all devices spent together.

    Z(1) = V·q0, the energy of PLACES places, in the first round with V = auto; then max(Z + ΣE − ΣE^avg, 0).
    """
    backlog, z = np.zeros(s.T), None
    for first, end, part in phases(s):
        for t in range(first, end) if part.auto else ():
            z = PLACES * place_j(part) if z is None else z
            backlog[t - 1] = z
            z = max(z + float(energy_mean_j[t - 1]) * s.K - float(part.budget_j.sum()), 0.0)
    return replace(s, backlog_j=backlog)
