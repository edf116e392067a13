"""Who competes with a device for its place, and by how much the one came before the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feelstream.arrays import Ids
from feelstream.policies.ranking import Ranking


@dataclass(frozen=True)
class Contest:
    """A device against the nearest that fared otherwise: the first left out, or the last scheduled.

    rival is None where a place may stay empty and that is the alternative: all of its values are then 0.
    """

    own: float  # what it was ranked by
    rank: int  # from 1
    candidates: int
    rival: int | None
    margin: float  # by how much the decision was right; negative where the rule looks at more than these terms
    terms: dict[str, tuple[float, float]]  # of the device and of the rival, as shown
    decisive: str | None  # the term that speaks most for the decision; None where none does


def rank(ranking: Ranking, device: int) -> tuple[int, int] | None:
    """(place from 1, number of candidates); None for a device that was no candidate."""
    total = ranking.total
    if not np.isfinite(total[device]):
        return None
    known = total[np.isfinite(total)]
    return 1 + int((known < total[device]).sum()), len(known)


def contest(ranking: Ranking, schedule: Ids, device: int) -> Contest | None:
    """None where nobody competed with it: it was no candidate, or all candidates fared alike."""
    placed, total = rank(ranking, device), ranking.total
    if placed is None:
        return None
    member, own = np.isin(np.arange(len(total)), schedule), float(total[device])
    others = np.flatnonzero(np.isfinite(total) & (member != member[device]))
    if member[device]:
        rival = int(others[np.argmin(total[others])]) if len(others) else None
        nobody = ranking.optional and (rival is None or total[rival] >= 0)
    else:
        rival = int(others[np.argmax(total[others])]) if len(others) else None
        nobody = ranking.optional and own >= 0
    if nobody:
        rival = None
    elif rival is None:
        return None
    level = 0.0 if rival is None else float(total[rival])
    sign = 1.0 if member[device] else -1.0
    terms, decisive, most = {}, None, 0.0
    for term in ranking.terms:
        mine, its = float(term.values[device]), 0.0 if rival is None else float(term.values[rival])
        shown = -1.0 if term.subtracted else 1.0
        terms[term.name] = (shown * mine, shown * its)
        if sign * (its - mine) > most:
            decisive, most = term.name, sign * (its - mine)
    return Contest(own, *placed, rival, sign * (level - own), terms, decisive)
