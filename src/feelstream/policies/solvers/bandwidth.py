"""Unequal shares of the band: the split that costs least.

A device with the share b of the band needs the time T(b) = a / (b ln(1 + c/b)) to send, with a = S ln 2 / B and
c = P|g|²/(B N0), its SNR over the whole band. b ln(1 + c/b) is concave in b, so T is convex, and

    minimise Σ w_k T_k(b_k)    subject to Σ b_k = 1, b_k ≥ least_k

is solved by one price λ on band: every device takes b_k = max(least_k, the b with −w_k T_k'(b) = λ). In the SNR on
the own share, s = c/b, that condition reads (w a / c²) φ(s) = λ with one increasing function

    φ(s) = s² (ln(1+s) − s/(1+s)) / ln²(1+s)
"""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Reals


def sending_time_s(share: Reals, snr: Reals, unit_s: float) -> Reals:
    """T(b) = a / (b ln(1 + c/b)); share b > 0, snr c > 0 over the whole band, unit_s: a = S ln 2 / B."""
    return unit_s / (share * np.log1p(snr / share))


def least_share(snr: Reals, limit_s: Reals, unit_s: float, low: float, high: float) -> Reals:
    """The smallest share between low and high at which T(b) ≤ limit; `high` where that takes even more."""
    below, above = np.full(len(snr), low), np.full(len(snr), high)
    at_once = sending_time_s(below, snr, unit_s) <= limit_s
    for _ in range(50):
        middle = (below + above) / 2
        enough = sending_time_s(middle, snr, unit_s) <= limit_s
        below, above = np.where(enough, below, middle), np.where(enough, middle, above)
    return np.where(at_once, low, above)


def split(weight: Reals, snr: Reals, least: Reals, unit_s: float) -> Reals:
    """Shares (n,) with the least Σ w_k T_k(b_k); Σ least ≤ 1.

    Where no weight is positive the shares are equal; a weight of 0 among positive ones gets its least share.
    """
    n = len(weight)
    if n == 0 or not (weight > 0).any():
        return np.full(n, 1.0 / max(n, 1))
    if n == 1:
        return np.ones(1)
    paying = weight > 0
    unit_price = weight[paying] * unit_s / np.square(snr[paying])
    scale = unit_price.max()
    unit_price, c, floor = unit_price / scale, snr[paying], least[paying]
    available = 1.0 - least[~paying].sum()

    def shares(log_price: float) -> Reals:
        return np.maximum(floor, c / _inverse_phi(np.exp(log_price) / unit_price))

    # At the highest marginal cost of an equal split nobody takes more than that; at the lowest nobody takes less.
    marginal = np.log(unit_price * _phi(c * len(c) / available))
    low, high = float(marginal.min()), float(marginal.max())
    result = least.copy()
    if low < high and shares(high).sum() < available:
        from scipy.optimize import root_scalar  # here: 30 MB in every worker, for the one policy that needs it

        price = root_scalar(
            lambda log_price: float(shares(log_price).sum()) - available, bracket=(low - 1e-9, high), xtol=1e-14
        )
        found = shares(price.root)
    else:
        found = shares(high)
    free = found > floor
    found[free] *= (available - found[~free].sum()) / found[free].sum() if free.any() else 1.0
    result[paying] = found
    return result


def _phi(s: Reals) -> Reals:
    log = np.log1p(s)
    return np.where(s < 1e-4, s * s / 2 * (1 - s / 3), np.square(s / log) * (log - s / (1 + s)))


def _inverse_phi(y: Reals) -> Reals:
    """s with φ(s) = y, by Newton's method on ln φ over ln s, which is nearly a straight line of slope 1 to 2."""
    s = np.sqrt(2 * y)
    for _ in range(40):
        log = np.log1p(s)
        rest = np.where(s < 1e-4, s * s / 2, log - s / (1 + s))
        slope = 2 + np.square(s / (1 + s)) / rest - 2 * s / ((1 + s) * log)
        step = (np.log(_phi(s)) - np.log(y)) / slope
        s = s * np.exp(-step)
        if np.abs(step).max() < 1e-13:
            break
    return s
