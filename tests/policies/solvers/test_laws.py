"""The joint solver under every energy law: against searches that share nothing with it, and by brute force.

A test run has time for a few random problems of each law. As many as docs/energy-laws.md reports, and how far apart the
answers are at most:

    FEELSTREAM_INSTANCES=400 python -m pytest -rP tests/policies/solvers/test_laws.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import combinations, product

import numpy as np
import pytest
from law_problems import LAWS, LawProblem, by_golden_sections, law_problem, least_share, power_w
from scipy.optimize import root_scalar

from feelstream.policies.solvers import modes
from feelstream.policies.solvers.search import choose

INSTANCES = int(os.environ.get("FEELSTREAM_INSTANCES", "6"))


def compare(problems: Iterable[LawProblem], search: Callable[[LawProblem], float]) -> None:
    """The solver finds what the search finds, to 1e-6 of it."""
    apart = []
    for number, problem in enumerate(problems):
        found, least = modes.allocate(problem.problem), search(problem)
        assert bool(found.feasible) == np.isfinite(least), number
        if found.feasible:
            apart.append((problem.weight * found.energy_j).sum() / least - 1)
            assert abs(apart[-1]) <= 1e-6, number
    print(f"{len(apart)} problems that can be solved: apart by {min(apart):.1e} to {max(apart):.1e} of the least")


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_no_search_finds_less_energy_and_none_is_claimed_that_is_not_there(law: str) -> None:
    draws = (np.random.default_rng([7, number]) for number in range(INSTANCES))
    compare((law_problem(law, 1 + number % 2, rng) for number, rng in enumerate(draws)), by_golden_sections)


def root_of(falling: Callable[[float], float], low: float, high: float) -> float:
    return float(root_scalar(falling, bracket=(low, high), method="brentq", xtol=1e-15, rtol=1e-14).root)


def cheapest_shares(of: LawProblem, f_hz: tuple[float, ...]) -> float:
    """Σ w e at these frequencies with the band shared out best: one marginal worth for all, found by root finding."""
    ids = range(len(f_hz))
    sending = [of.system.round_s - float(of.system.cycles[k]) / f_hz[k] for k in ids]
    least = [least_share(of, k, f_hz[k]) for k in ids]
    if sum(least) > 1:
        return np.inf

    def worth(k: int, share: float) -> float:
        """−d(w E_tr)/dρ."""
        x = of.airtime_s / (share * sending[k])
        return of.weight[k] * of.kappa_w[k] * sending[k] * (x * np.exp(x) - np.expm1(x))

    def asked(k: int, log_price: float) -> float:
        """The share at which the last of it is worth the price."""
        if np.log(worth(k, least[k])) <= log_price:
            return least[k]
        return root_of(lambda share: np.log(worth(k, share)) - log_price, least[k], 1e6)

    ends = [np.log(worth(k, share)) for k in ids for share in (max(least[k], 1e-3), 1.0)]
    low, high = min(ends) - 5, max(ends) + 60
    price = root_of(lambda p: sum(asked(k, p) for k in ids) - 1, low, high)
    share = [asked(k, price) for k in ids]
    energy = [
        of.computing_j(k, np.array([f_hz[k]])).item()
        + sending[k] * float(power_w(of, k, np.array(sending[k]), np.array(share[k])))
        for k in ids
    ]
    return float(np.dot(of.weight, energy))


def by_brute_force(of: LawProblem) -> float:
    """The least Σ w e over all combinations of operating points; those whose computing alone costs more are passed."""
    points = [[high for _, high in of.ranges(k)] for k in range(len(of.weight))]

    def at_least(combination: tuple[float, ...]) -> float:
        """No device sends for less than κ a."""
        computing = [of.computing_j(k, np.array([f_hz])).item() for k, f_hz in enumerate(combination)]
        return float(np.dot(of.weight, np.array(computing) + of.kappa_w * of.airtime_s))

    best = np.inf
    for combination in sorted(product(*points), key=at_least):
        if at_least(combination) > best:
            break
        best = min(best, cheapest_shares(of, combination))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("law", ["discrete", "discrete-leaking"])
def test_discrete_points_are_the_best_of_all_combinations(law: str) -> None:
    draws = (np.random.default_rng([11, number]) for number in range(INSTANCES))
    compare((law_problem(law, 3, rng) for rng in draws), by_brute_force)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["cubic", "interpolated", "discrete-leaking"])
def test_no_pair_is_better_than_the_one_chosen(law: str) -> None:
    """The search for the set, against all pairs, each by the slow search."""
    for number in range(max(INSTANCES // 8, 1)):
        rng = np.random.default_rng([13, number])
        problem = law_problem(law, 4, rng)
        devices = problem.problem
        able = np.flatnonzero(devices.share_min <= 0.5)
        worth = rng.uniform(0, 2, 4) * problem.weight * np.nan_to_num(modes.alone_j(devices))
        if len(able) < 2:
            continue
        found = choose(devices, worth, 2, True, able)
        totals = {
            pair: by_golden_sections(problem.of(pair)) - worth[list(pair)].sum() for pair in combinations(able, 2)
        }
        assert found.total == pytest.approx(min(totals.values()), rel=1e-6, abs=1e-6 * worth.max())
        assert tuple(found.members) == min(totals, key=lambda pair: totals[pair])
