"""A mixed model of one claim's effect over specifications and seeds, and how likely the effect is above a bound.

    effect of specification s with seed i = μ + Σ over settings (a_value) + b_cell + u_s + v_i + e_si

All but μ are drawn from normal distributions around 0, whose variances are estimated by restricted maximum likelihood:
one for the values of settings (a), one for cells of eligible × fresh × σ (b), one for what is special to a
specification (u), one for seeds (v, since all specifications of a seed share its world) and one for the rest (e). Given
these, what is expected of a specification is known with a normal error (the best linear unbiased prediction), which
draws specifications with few seeds towards what others with their settings have.

Reference: D. Bates, M. Mächler, B. Bolker, S. Walker, "Fitting Linear Mixed-Effects Models Using lme4", Journal of
Statistical Software 67, 2015; G. K. Robinson, "That BLUP Is a Good Thing", Statistical Science 6, 1991.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import ndtr

from feelstream.arrays import Reals
from feelstream.studies.hu2023.multiverse.settings import SETTINGS, Specification

LEAST = 1e-6  # of a variance, as a share of that of all effects
STARTS = ((0.05, 0.05, 0.2, 0.2, 0.5), (0.3, 0.1, 0.1, 0.1, 0.4))  # of the five variances, in the same unit


def design(specifications: Sequence[Specification], like: Sequence[Specification]) -> tuple[Reals, Reals]:
    """(n, values) and (n, cells) of zeros and ones; columns are those that come up in `like`."""
    values = sorted({(name, getattr(each, name)) for each in like for name in SETTINGS})
    cells = sorted({_cell(each) for each in like})
    one = np.array([[float(getattr(each, name) == value) for name, value in values] for each in specifications])
    two = np.array([[float(_cell(each) == cell) for cell in cells] for each in specifications])
    return one, two


def _cell(each: Specification) -> tuple[str, str, str]:
    return each.eligible, each.fresh, each.sigma


@dataclass(frozen=True)
class Mixed:
    """A fitted model."""

    variances: Reals  # of settings, cells, specifications, seeds, rest
    mu: float
    own: tuple[Specification, ...]  # of each effect that it was fitted to
    factor: Reals  # of the effects' covariance V, Cholesky's, lower
    residual: Reals  # V⁻¹ (y − μ)
    ones: Reals  # V⁻¹ 1
    spread: float  # variance of μ̂

    def expected(self, wanted: Sequence[Specification]) -> tuple[Reals, Reals]:
        """What is expected of specifications, played or not, and its standard error: (n,) each."""
        a, b, u = self.variances[:3]
        like = (*self.own, *wanted)
        (one, two), (there, cells) = design(wanted, like), design(self.own, like)
        same = np.array([[float(each == other) for other in self.own] for each in wanted])
        cross = a * one @ there.T + b * two @ cells.T + u * same  # (n, N)
        mean = self.mu + cross @ self.residual
        explained = np.einsum("ij,ji->i", cross, cho_solve((self.factor, True), cross.T))
        variance = a * len(SETTINGS) + b + u - explained + (1 - cross @ self.ones) ** 2 * self.spread
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def chance(self, wanted: Sequence[Specification], bound: float) -> Reals:
        """P(expected effect > bound) of each."""
        mean, error = self.expected(wanted)
        return ndtr((mean - bound) / np.maximum(error, 1e-12))


def fit(specifications: Sequence[Specification], seeds: Sequence[int], effects: Sequence[float]) -> Mixed:
    """The model of effects (N,), each of a specification and a seed."""
    return _fit(tuple(specifications), tuple(seeds), tuple(effects))


@lru_cache(maxsize=512)
def _fit(specifications: tuple[Specification, ...], seeds: tuple[int, ...], effects: tuple[float, ...]) -> Mixed:
    y = np.array(effects)
    one, two = design(specifications, specifications)
    which, drawn = (
        np.array([[float(each == other) for other in each_of] for each in each_of])
        for each_of in (specifications, seeds)
    )
    parts = np.stack([one @ one.T, two @ two.T, which, drawn, np.eye(len(y))])  # (5, N, N): which effects share what
    scale, ones = float(y.var()) or 1.0, np.ones(len(y))

    def solved(variances: Reals) -> tuple[Reals, Reals, float, float, Reals]:
        factor = np.tril(cho_factor(np.tensordot(variances, parts, axes=1), lower=True)[0])
        own = cho_solve((factor, True), ones)
        spread = float(1 / own.sum())
        mu = spread * float(own @ y)
        return factor, own, spread, mu, cho_solve((factor, True), y - mu)

    def minus_likelihood(logs: Reals) -> tuple[float, Reals]:
        """−ln of the restricted likelihood but for a constant, and its gradient ½ v_k (tr(P A_k) − (Py)'A_k Py)."""
        variances = scale * np.exp(logs)
        factor, own, spread, mu, residual = solved(variances)
        value = np.log(np.diag(factor)).sum() - 0.5 * np.log(spread) + 0.5 * (y - mu) @ residual
        projection = cho_solve((factor, True), np.eye(len(y))) - spread * np.outer(own, own)
        traces = (parts * projection).sum(axis=(1, 2))
        gradient = 0.5 * variances * (traces - np.einsum("i,kij,j->k", residual, parts, residual))
        return float(value), gradient

    bounds = [(np.log(LEAST), np.log(10.0))] * len(parts)
    found = [minimize(minus_likelihood, np.log(start), jac=True, method="L-BFGS-B", bounds=bounds) for start in STARTS]
    variances = scale * np.exp(min(found, key=lambda each: each.fun).x)
    factor, own, spread, mu, residual = solved(variances)
    return Mixed(variances, mu, specifications, factor, residual, own, spread)
