"""Who was let through to transmit once the channel was known, where all share the band equally."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from feelstream.verification.findings import RELATIVE, Array, Stage, close
from feelstream.verification.rounds import Rounds
from feelstream.verification.rules import exact, only

# Both sides compute a sending time by some ten operations, each right to half an ulp: 64 ulps of T_k, the time that a
# device has, are above what rounding can do, and far below any difference that means something.
EDGE = 64 * np.finfo(float).eps


class Scheduled(NamedTuple):
    """The n devices that one round scheduled, [n] each, and the constants of the radio."""

    r: Rounds
    ratio: Array  # |g|²/β
    computing_s: Array
    time_s: Array
    bits: Array
    sent: Array  # by what is stored: it decides where rounding would

    def lateness(self, n: int) -> tuple[Array, Array]:
        """S/R(n, |g|²/margin) > T_k − T_cmp, and always without time left; and where rounding alone decides that."""
        needed = self.r.sending_s(n, self.ratio / self.r.run.radio.link_margin, self.bits)
        left = self.time_s - self.computing_s
        # The remaining time is a difference, so its rounding error is that of T_k. Not that of the round: next to a
        # round of 10⁷⁵ s, a deadline of half a second is nothing.
        edge = (left > 0) & (np.abs(needed - left) <= EDGE * self.time_s)
        return (left <= 0) | ~(needed <= left), edge


def admit_by_dropping(of: Scheduled) -> Array:
    """While a device would be late, the late one with the least |g|²/β is dropped.

    Of equally weak late devices the one with the least time left, then any.
    """
    kept, left_s = np.ones(of.ratio.size, dtype=bool), of.time_s - of.computing_s
    while kept.any():
        late, edge = of.lateness(int(kept.sum()))
        late = kept & np.where(edge, ~of.sent, late)
        if not late.any():
            break
        weakest = late & (of.ratio <= of.ratio[late].min() * (1 + RELATIVE))
        slowest = weakest & (left_s <= left_s[weakest].min() + RELATIVE * of.time_s)
        candidates = np.flatnonzero(slowest)
        agreeing = candidates[~of.sent[candidates]]
        kept[agreeing[0] if agreeing.size else candidates[0]] = False
    return kept


def admit_largest(of: Scheduled) -> Array:
    """The largest n at which at least n devices are on time, and of those the n with the greatest |g|²/β.

    Where it takes devices at the edge to reach n, n is the size of the stored set or none at all: a device may be
    late at n by a rounding, and still be in a smaller set.
    """
    kept = np.zeros(of.ratio.size, dtype=bool)
    for n in range(of.ratio.size, 0, -1):
        late, edge = of.lateness(n)
        on_time = np.where(edge, of.sent, ~late)
        certain = ~late & ~edge
        if on_time.sum() >= n and (certain.sum() >= n or of.sent.sum() == n):
            threshold = np.sort(of.ratio[on_time])[-n]
            tied = close(of.ratio, threshold)
            order = np.lexsort((~of.sent, np.where(tied, -threshold, -of.ratio), ~on_time))
            kept[order[:n]] = True
            break
    return kept


def _admitted(r: Rounds) -> Array:
    """The rule is repeated in each round in which anyone might be late; otherwise all scheduled ones transmit."""
    shape, expected = r.scheduled.shape, r.scheduled.copy()
    # Impossible inputs are reported elsewhere; here they count as no gain and no time, so that this can run.
    ratio = np.maximum(np.nan_to_num(r.gain / r.beta), 0.0)
    computing = np.maximum(np.nan_to_num(r.cycles / r.used_hz, nan=np.inf), 0.0)
    time_s, bits = np.broadcast_to(r.time_s, shape), np.broadcast_to(np.asarray(r.update_bits), shape)
    everyone = Scheduled(r, ratio, computing, time_s, bits, r.sent)
    late, edge = everyone.lateness(np.maximum(r.scheduled.sum(axis=1, keepdims=True), 1))
    admit = {"paper": admit_by_dropping, "largest": admit_largest}[r.run.radio.admission]
    for i in np.flatnonzero((r.scheduled & (late | edge)).any(axis=1)).tolist():
        k = np.flatnonzero(r.scheduled[i])
        expected[i, k] = admit(Scheduled(r, *(column[i, k] for column in everyone[1:])))
    return expected


RULES = (
    exact(Stage.ADMISSION, "transmitted",
          "whoever would be late is dropped, as radio.admission says: paper, the late one with the least |g|²/β, until "
          "nobody is late; largest, all but the largest set that is on time",
          _admitted, "equal", stored=lambda r: r.sent),
    only(Stage.ADMISSION, "lost", "an update that was lost did not arrive", lambda r: ~r.transmitted),
)  # fmt: skip
