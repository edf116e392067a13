"""What the server was told of everybody's data by reports of feature vectors, and goes by until the next report.

Where nothing is deleted and vectors do not depend on the model, a device reports what came since its last report, with
noise that is drawn once for it. The server keeps the running sum R_k, which never falls, and

    L(S_k) ← R_k,   L(B_k) ← R_k less what is used (or, with data.fresh = per_round, less what was told before).

Otherwise a device reports L(S_k) and L(B_k), with new noise in every report.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Ints, Nested, Reals
from feelstream.data.features import UNITS, LogProbabilities, Vectors
from feelstream.data.streaming.stream import Stream

MOST = 2**31 - 1  # that one number can be told as, and stored: noise of a tiny ε is larger


class Told:
    """Vectors of K devices, in whole numbers, by the server's knowledge.

    What is handed out is read-only and stays what it was: who changes an array that was handed out changes a copy.

    Attributes:
        used_total: int64 (m,) L(X) = Σ_k `used`.
    """

    def __init__(self, vectors: Vectors, devices: int, *, since_use: bool, empties: bool, keeps: bool) -> None:
        self.vectors, self._since_use, self._empties = vectors, since_use, empties
        kind, shape = vectors.kind, (devices, vectors.size)
        self._every, self._adds_up = kind.every, keeps and not kind.of_model
        # One sample moves the numbers of one vector by UNITS at most in all, and those of two by twice that.
        self._scale = UNITS / kind.noise * (1 if self._adds_up else 2) if kind.noise else 0.0
        names = ("stored", "fresh", "used", "covered", "total")  # the last two: true sums that noise covers, and noisy
        self._now = {name: np.zeros(shape, float if name == "total" else np.int64) for name in names}
        self.used_total = np.zeros(vectors.size, np.int64)

    @property
    def stored(self) -> Ints:
        """(K, m) L(S_k), int64, like the other two."""
        return self._handed_out("stored")

    @property
    def fresh(self) -> Ints:
        """(K, m) L(B_k)."""
        return self._handed_out("fresh")

    @property
    def used(self) -> Ints:
        """(K, m) the device's part of L(X): what it had told when it was last used."""
        return self._handed_out("used")

    def _handed_out(self, name: str) -> Ints:
        self._now[name].flags.writeable = False
        return self._now[name]

    def _put(self, name: str, where: Ids | Flags, values: NDArray | int) -> None:
        if not self._now[name].flags.writeable:
            self._now[name] = self._now[name].copy()
        self._now[name][where] = values

    def due(self, round: int) -> bool:
        return (round - 1) % self._every == 0

    def tell(self, ids: Ids, stream: Stream, predict: LogProbabilities | None, rng: np.random.Generator) -> None:
        """These devices report what they hold. rng: of the noise, for all K devices whoever reports."""
        if stream.stored_features is None or stream.fresh_features is None:
            stored, fresh = self._by_model(ids, stream, predict)
        else:
            stored, fresh = stream.stored_features[ids], stream.fresh_features[ids]
        now, noise = self._now, self._noise(ids, rng)
        if self._adds_up:
            now["total"][ids] += (stored - now["covered"][ids]) + noise[0]
            now["covered"][ids] = stored
            before = now["stored"][ids]
            stored = np.maximum(before, _whole(now["total"][ids]))
            known = before if not self._since_use else 0 if self._empties else now["used"][ids]
            fresh = stored - known
        else:
            stored, fresh = (_whole(true + lot) for true, lot in zip((stored, fresh), noise, strict=True))
        self._put("stored", ids, stored)
        self._put("fresh", ids, fresh)

    def forget(self, empty: Flags) -> None:
        """Of devices that hold nothing, which the server knows, it goes by no vector."""
        for name in ("stored", "fresh"):
            if self._now[name][empty].any():
                self._put(name, empty, 0)

    def _noise(self, ids: Ids, rng: np.random.Generator) -> Reals:
        """Of two vectors of these devices, drawn for all devices whoever reports."""
        shape = 2, *self._now["stored"].shape
        return rng.laplace(0.0, self._scale, shape)[:, ids] if self._scale else np.zeros((2, len(ids), shape[2]))

    def use(self, ids: Ids) -> None:
        """These devices' data was used: X has what they had told of it."""
        told = self._now["stored"][ids]
        self.used_total = self.used_total + (told - self._now["used"][ids]).sum(axis=0)
        self._put("used", ids, told)
        for name in ("stored", "covered", "total") if self._empties else ():
            self._put(name, ids, 0)
        if self._empties or self._since_use:
            self._put("fresh", ids, 0)

    def _by_model(self, ids: Ids, stream: Stream, predict: LogProbabilities | None) -> tuple[Ints, Ints]:
        """L(S_k) and L(B_k) by the model of this round, which computes each sample once."""
        held = [stream.samples(int(k)) for k in ids]
        numbers, place = np.unique(np.concatenate([np.empty(0, np.int64), *held]), return_inverse=True)
        rows = np.split(self.vectors.of(numbers, predict, stream.round)[place], np.cumsum([len(h) for h in held])[:-1])
        stored, fresh = np.zeros((2, len(ids), self.vectors.size), np.int64)
        for i, (device, mine) in enumerate(zip(ids, rows, strict=False)):
            stored[i], fresh[i] = mine.sum(axis=0), mine[stream.fresh_among(int(device))].sum(axis=0)
        return stored, fresh

    def snapshot(self) -> Nested:
        return {name: array.copy() for name, array in self._now.items()}

    def restore(self, saved: Nested) -> None:
        self._now = {name: saved[name].copy() for name in self._now}
        self.used_total = self._now["used"].sum(axis=0)


def _whole(values: Reals) -> Ints:
    """Numbers as they are told: whole, from 0 to MOST."""
    return np.clip(np.rint(values), 0, MOST).astype(np.int64)
