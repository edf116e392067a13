"""Who was let through to transmit once the channel was known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feelstream.verification.findings import RELATIVE, Array, Stage, close
from feelstream.verification.formulas import computing_time_s, sending_time_s
from feelstream.verification.importance import Case
from feelstream.verification.shares import chosen_hz
from feelstream.verification.stored import StoredSettings

# Both sides compute a sending time by some ten operations, each right to half an ulp: 64 ulps of T_k, the time that a
# device has, are above what rounding can do, and far below any difference that means something.
EDGE = 64 * np.finfo(float).eps

RULES = {
    "paper": "while a device would be late, the late one with the least |g|²/β is dropped",
    "largest": "the largest set that is on time transmits, the greatest |g|²/β first",
}


def check_admission(case: Case) -> None:
    """Repeat the rule in each round in which anyone might be late; otherwise all scheduled ones transmit.

    Where rounding alone decides whether a device is late, or which of two is worse, the stored choice stands.
    """
    s, block = case.s, case.block
    scheduled, sent = block["scheduled"], block.sent
    # Impossible inputs are reported elsewhere; here they count as no gain and no time, so that this can run.
    ratio = np.maximum(np.nan_to_num(block["gain"] / block["beta"]), 0.0)
    computing = np.maximum(np.nan_to_num(computing_time_s(s, chosen_hz(s, block)), nan=np.inf), 0.0)
    n = scheduled.sum(axis=1, keepdims=True)
    late, edge = lateness(s, np.maximum(n, 1), ratio, computing)
    doubtful = scheduled & (late | edge)
    expected = scheduled.copy()
    admit = {"paper": _admit_by_dropping, "largest": _admit_largest}[s.admission]
    for r in np.flatnonzero(doubtful.any(axis=1)).tolist():
        k = np.flatnonzero(scheduled[r])
        expected[r, k] = admit(_of_these(s, r, k), ratio[r, k], computing[r, k], sent[r, k])
    case.at(Stage.ADMISSION).flag("transmitted", sent != expected, expected, RULES[s.admission])


def _of_these(s: StoredSettings, r: int, k: Array) -> StoredSettings:
    """The settings with the bits and times of these devices alone, where devices differ in them."""
    deadline_s, download_s = (_of(each, r, k) for each in (s.costs.deadline_s, s.costs.download_s))
    costs = replace(s.costs, deadline_s=deadline_s, download_s=download_s)
    return replace(s, update_bits=_of(s.update_bits, r, k), costs=costs)


def _of(value: float | Array, r: int, k: Array) -> float | Array:
    """One for all, [K] or [R, K]: that of the devices k in the round r."""
    if not isinstance(value, np.ndarray):
        return value
    return value[k] if value.ndim == 1 else value[r, k]


def is_late(s: StoredSettings, n: Array | int, ratio: Array, computing_s: Array, sent: Array) -> Array:
    """S_bits/R(n, |g|²/margin) > T_k − T_cmp, and always without time left; at the edge by what is stored."""
    late, edge = lateness(s, n, ratio, computing_s)
    return np.where(edge, ~sent, late)


def lateness(s: StoredSettings, n: Array | int, ratio: Array, computing_s: Array) -> tuple[Array, Array]:
    """Whether a device is late among n, and where rounding alone decides that."""
    needed, left = sending_time_s(s, n, ratio / s.link_margin), s.time_s - computing_s
    # The remaining time is a difference, so its rounding error is that of T_k. Not that of the round: next to a round
    # of 10⁷⁵ s, a deadline of half a second is nothing.
    edge = (left > 0) & (np.abs(needed - left) <= EDGE * s.time_s)
    return (left <= 0) | ~(needed <= left), edge


def _admit_by_dropping(s: StoredSettings, ratio: Array, computing_s: Array, sent: Array) -> Array:
    """Drop one at a time; of equally weak late devices the one with the least time left, then any."""
    kept, left_s = np.ones(ratio.size, dtype=bool), s.time_s - computing_s
    while kept.any():
        late = kept & is_late(s, int(kept.sum()), ratio, computing_s, sent)
        if not late.any():
            break
        weakest = late & (ratio <= ratio[late].min() * (1 + RELATIVE))
        slowest = weakest & (left_s <= left_s[weakest].min() + RELATIVE * s.time_s)
        candidates = np.flatnonzero(slowest)
        agreeing = candidates[~sent[candidates]]
        kept[agreeing[0] if agreeing.size else candidates[0]] = False
    return kept


def _admit_largest(s: StoredSettings, ratio: Array, computing_s: Array, sent: Array) -> Array:
    """The largest n at which at least n devices are on time, and of those the n with the greatest |g|²/β.

    Where it takes devices at the edge to reach n, n is the size of the stored set or none at all: a device may be
    late at n by a rounding, and still be in a smaller set.
    """
    kept = np.zeros(ratio.size, dtype=bool)
    for n in range(ratio.size, 0, -1):
        late, edge = lateness(s, n, ratio, computing_s)
        on_time = np.where(edge, sent, ~late)
        certain = ~late & ~edge
        if on_time.sum() >= n and (certain.sum() >= n or sent.sum() == n):
            threshold = np.sort(ratio[on_time])[-n]
            tied = close(ratio, threshold)
            order = np.lexsort((~sent, np.where(tied, -threshold, -ratio), ~on_time))
            kept[order[:n]] = True
            break
    return kept
