"""The model's formulas, written a second time. The last axis is devices; n devices share the band."""

from __future__ import annotations

import numpy as np

from feelstream.verification.computing import energy_j
from feelstream.verification.findings import Array, close
from feelstream.verification.reading import Block
from feelstream.verification.stored import StoredSettings


def computing_time_s(s: StoredSettings, f_hz: Array) -> Array:
    """T_cmp = c / f."""
    return s.cycles / f_hz


def computing_energy_j(s: StoredSettings, f_hz: Array) -> Array:
    """E_cmp by the law of the run, λ c f² in the cubic one; NaN where it is not known."""
    return energy_j(s.law, s.cycles, f_hz)


def sending_time_s(s: StoredSettings, n: Array | float, gain_ratio: Array | float) -> Array:
    """S_bits / R with R = (B/n) log2(1 + n P0 (|g|²/β) / (B N0)), as P_k = P0/β_k; infinite at zero gain."""
    share_hz = s.bandwidth_hz / np.asarray(n, dtype=np.float64)
    snr = s.received_power_w * np.asarray(gain_ratio, dtype=np.float64) / (share_hz * s.noise_w_per_hz)
    return s.update_bits * np.log(2.0) / (share_hz * np.log1p(snr))


def surrogate_time_s(s: StoredSettings, n: Array | float) -> Array:
    """T~(n) = S_bits / (γ R at |g|² = β)."""
    return sending_time_s(s, n, 1.0) / s.rate_discount


def surrogate_energy_j(s: StoredSettings, block: Block, n: Array | float) -> Array:
    """E~ = E_cmp + p (P0/β) T~(n) + E_down."""
    sending = block["reliability"] * s.received_power_w / block["beta"] * surrogate_time_s(s, n)
    return computing_energy_j(s, block["f_hz"]) + sending + s.costs.download_j


def allowed(s: StoredSettings, block: Block) -> Array:
    """Who may be scheduled by what it holds, by T_k > 0 and by P0/β ≤ P_max, but for rounding. [R, K]"""
    holds = block["stored"] >= 1 if s.eligible == "with_data" else np.ones_like(block["available"])
    needed_w, limit_w = s.received_power_w / block["beta"], np.broadcast_to(s.costs.power_max_w, block["beta"].shape)
    return (
        holds & (np.asarray(s.time_s) > 0) & np.where(close(needed_w, limit_w), block["available"], needed_w <= limit_w)
    )


def amounts(fresh: Array, feasible: Array) -> Array:
    """|Π_f| |B_k| / Σ_{j∈Π_f} |B_j|, 0 where that sum is 0. [..., K] → [..., K]."""
    total = np.where(feasible, fresh, 0).sum(axis=-1, keepdims=True)
    members = feasible.sum(axis=-1, keepdims=True)
    return np.where(total > 0, members * fresh / np.maximum(total, 1), 0.0)


def dissimilarities(s: StoredSettings, rounds: Array, used_labels: Array, fresh_labels: Array) -> tuple[Array, Array]:
    """‖x − y‖² / (‖x‖² + ‖y‖²), and where an edge rule fixes it. [R], [R, K, m] twice → [R, K] twice.

    x and y are m·p − 1 for label proportions p, so the factor m² cancels and p − 1/m serves as well.
    Edge rules: 0 in round 1, and where both are zero vectors (evenly spread, or empty and read as the vector). Nothing
    used yet, or nothing fresh: 0 where the setting says zero; where it says vector, 1 unless the other is zero too.
    """
    used = used_labels.sum(axis=1, keepdims=True)  # [R, 1, m]
    x, x_empty, x_even = _centred(used)
    y, y_empty, y_even = _centred(fresh_labels)
    x, y = np.where(x_empty[..., None], 0.0, x), np.where(y_empty[..., None], 0.0, y)
    zero = (rounds[:, None] == 1) | ((x_even | x_empty) & (y_even | y_empty))
    if s.empty_used == "zero":
        zero = zero | x_empty
    if s.empty_fresh == "zero":
        zero = zero | y_empty
    norms = np.square(x).sum(axis=-1) + np.square(y).sum(axis=-1)
    fixed = zero | x_empty | y_empty
    return np.where(zero, 0.0, np.square(x - y).sum(axis=-1) / np.where(zero, 1.0, norms)), fixed


def _centred(labels: Array) -> tuple[Array, Array, Array]:
    labels = labels.astype(np.int64, copy=False)
    m, total = labels.shape[-1], labels.sum(axis=-1)
    even = (labels * m == total[..., None]).all(axis=-1)
    # The numerator is a whole number: proportions that are nearly even must not cancel.
    return (labels * m - total[..., None]) / (np.maximum(total, 1) * m)[..., None], total == 0, even
