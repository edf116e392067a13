"""Devices whose energy law has several stretches: each computes on one of them, and sends on its share of the band.

On one stretch the problem is convex, and `band` solves it. Which stretches are best is asked of a price on the band,
and the price of the stretches, in turn; what comes out is a total that some choice attains, so that whoever stored a
larger one has been improved on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from feelstream.verification.band import STEPS, Radio, answer, energy_j, least_share, saved_w, settle
from feelstream.verification.findings import Array

MOST_TURNS = 6
CLOSED = 1e-6  # a total this near to a bound below all of them, relatively, is the least


@dataclass(frozen=True)
class Stretched:
    """One `Radio` for each stretch, [R, n] each; where a device cannot use it, its longest_s is 0."""

    each: tuple[Radio, ...]

    def rows(self, which: Array) -> Stretched:
        return Stretched(tuple(radio.rows(which) for radio in self.each))

    def of(self, index: Array) -> Stretched:
        """[R, K] → the devices of each round with the numbers index [R, n]."""
        return Stretched(tuple(radio.of(index) for radio in self.each))

    def at(self, which: Array) -> Radio:
        """Every device on the stretch of this number [R, n]."""
        first = self.each[0]
        if len(self.each) == 1:
            return first
        columns = {}
        for field in fields(Radio):
            values = [getattr(radio, field.name) for radio in self.each]
            if any(isinstance(value, np.ndarray) for value in values):
                stacked = np.stack([np.broadcast_to(value, which.shape) for value in values])
                columns[field.name] = np.take_along_axis(stacked, which[None], axis=0)[0]
        return replace(first, **columns)

    @property
    def least_share(self) -> Array:
        """The least share with which full power and full time suffice, on any stretch. [R, n]"""
        return np.min([least_share(radio) for radio in self.each], axis=0)


def all_costs(radio: Stretched, log_price: Array) -> Array:
    """w e + μ ρ of every device on every stretch, at the price of its round [R, 1]; else infinite. [S, R, n]"""
    found = []
    for each in radio.each:
        tau, share = answer(each, log_price)
        cost = each.weight * energy_j(each, tau, share) + np.exp(log_price) * share
        able = (each.longest_s > 0) & np.isfinite(cost)
        found.append(np.where(able, cost, np.inf) if len(radio.each) > 1 else cost)
    return np.array(found)


def costs_at(radio: Stretched, log_price: Array) -> Array:
    """The least w e + μ ρ of every device at the price of its round [R, 1]. [R, n]"""
    return all_costs(radio, log_price).min(axis=0)


class Found(NamedTuple):
    """The best stretches found for the members of each round."""

    at: Array  # [R, n]
    total: Array  # [R] Σ w e
    log_price: Array  # [R, 1]
    least: Array  # [R] whether a bound says that no other stretches have a smaller total


def totals_of(radio: Stretched, member: Array, at: Array | None = None) -> tuple[Array, Array]:
    """(Σ w e of the members [R, n] of each round, log of their price [R, 1]), on given stretches or the best found."""
    if at is not None:
        return _total(radio, member, at)
    found = best_stretches(radio, member)
    return found.total, found.log_price


def best_stretches(radio: Stretched, member: Array) -> Found:
    """From stretches to their price to the stretches that are cheapest at it; the members [R, n] fit the band.

    For any price μ, Σ least (w e + μ ρ) − μ is a bound below every total.
    """
    # To begin with, where least band is needed: together that fits.
    at: Array = np.argmin([least_share(each) for each in radio.each], axis=0)
    best, log_price = _total(radio, member, at)
    if len(radio.each) == 1:
        return Found(at, best, log_price, np.ones(len(member), bool))
    price, bound, tried, total = log_price, np.full(len(member), -np.inf), at, best
    for _ in range(MOST_TURNS):
        cost = all_costs(radio, price)
        cheapest: Array = np.argmin(cost, axis=0)
        bound = np.fmax(bound, np.where(member, cost.min(axis=0), 0.0).sum(axis=1) - np.exp(price[:, 0]))
        if (member & (cheapest != tried)).sum() == 0 and np.isfinite(total).all():
            break  # these have this price, so nothing more follows from it
        tried = cheapest
        total, price = _total(radio, member, cheapest)
        better = total < best
        best, log_price = np.where(better, total, best), np.where(better[:, None], price, log_price)
        at = np.where(better[:, None], cheapest, at)
        price = np.where(np.isfinite(total)[:, None], price, log_price + 0.1)
    return Found(at, best, log_price, best <= bound + CLOSED * np.abs(best))


def _total(radio: Stretched, member: Array, at: Array) -> tuple[Array, Array]:
    """The same on these stretches [R, n]; infinite where they do not fit the band."""
    part = radio.at(at)
    fits = np.where(member, least_share(part), 0.0).sum(axis=1) <= 1 + 1e-9
    if len(radio.each) > 1:  # where they do not fit there is no price; any stretch will do instead
        part = replace(part, longest_s=np.where(part.longest_s > 0, part.longest_s, 0.5 * part.round_s))
    log_price, tau, share = settle(part, member)
    total = np.where(member, part.weight * energy_j(part, tau, share), 0.0).sum(axis=1)
    return (total if len(radio.each) == 1 else np.where(fits, total, np.inf)), log_price


def alone_j(radio: Stretched) -> Array:
    """w e of every device with the whole band to itself. [R, n]"""
    found = [_alone_j(each) for each in radio.each]
    if len(found) == 1:
        return found[0]
    usable = [(each.longest_s > 0) & (least_share(each) <= 1) for each in radio.each]
    return np.min([np.where(able, one, np.inf) for able, one in zip(usable, found, strict=True)], axis=0)


def _alone_j(radio: Radio) -> Array:
    """On one stretch, by bisection on τ."""
    a = radio.airtime_s
    shortest = a / np.log1p(radio.limit_w / radio.kappa_w)
    shortest = np.maximum(shortest, radio.shortest_s)
    low, high = np.log(np.minimum(shortest, radio.longest_s)), np.log(radio.longest_s)
    longest = high
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        tau = np.exp(middle)
        x = a / tau
        rising = saved_w(radio, tau) > radio.kappa_w * (np.exp(x) * (x - 1) + 1)
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    tau = np.where(high < longest, np.exp(0.5 * (low + high)), radio.longest_s)
    return radio.weight * energy_j(radio, tau, np.ones(()))
