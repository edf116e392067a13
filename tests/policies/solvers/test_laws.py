"""The joint solver under every energy law: against searches that share nothing with it, and by brute force.

The searches know what a device's computing costs at a frequency, from the tables as they are written, and where the
kinks of that are. Between two kinks they go by golden sections: over the first device's share of the band, and for each
share over every device's frequency. A test run has time for a few random problems of each law. As many as
docs/energy-laws.md reports, and how far apart the answers are at most:

    FEELSTREAM_INSTANCES=400 python -m pytest -rP tests/policies/solvers/test_laws.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import root_scalar

from feelstream import preset
from feelstream.model.energy import Core, Cubic, Voltage
from feelstream.model.system import System
from feelstream.policies.solvers import modes
from feelstream.policies.solvers.joint import planned
from feelstream.policies.solvers.modes import Problem
from feelstream.policies.solvers.search import choose
from feelstream.scenario.profiles import our_cores

INSTANCES = int(os.environ.get("FEELSTREAM_INSTANCES", "6"))
LAWS = {
    "cubic": Cubic(),
    "interpolated": Voltage(),
    "leaking": Voltage(leakage_w=0.04),
    "discrete": Voltage(points="discrete"),
    "discrete-leaking": Voltage(points="discrete", leakage_w=0.04),
}
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class LawProblem:
    """Some devices, each with its own core, ceiling, channel and limit of power, under one law."""

    system: System
    f_hz: np.ndarray
    weight: np.ndarray
    kappa_w: np.ndarray
    power_w: np.ndarray

    @property
    def problem(self) -> Problem:
        return planned(self.system, self.f_hz, self.weight, self.kappa_w, self.power_w)

    def of(self, ids: Sequence[Any] | np.ndarray) -> LawProblem:
        """The problem of some of the devices."""
        some, core = np.array(ids), self.system.core
        cycles = self.system.cycles[some]
        system = replace(self.system, devices=len(some), cycles=cycles, core=None if core is None else core[some])
        return LawProblem(system, self.f_hz[some], self.weight[some], self.kappa_w[some], self.power_w[some])

    @property
    def airtime_s(self) -> float:
        return self.system.update_bits * np.log(2) / self.system.bandwidth_hz

    def core(self, k: int) -> Core:
        return self.system.cores[0 if self.system.core is None else int(self.system.core[k])]

    def computing_j(self, k: int, f_hz: np.ndarray) -> np.ndarray:
        """What device k's computing costs at these frequencies, from the tables."""
        law, cycles = self.system.energy, float(self.system.cycles[k])
        if isinstance(law, Cubic):
            return self.system.power_coefficient * cycles * f_hz**2
        assert isinstance(law, Voltage)
        core = self.core(k)
        if law.points == "interpolated":
            volts = np.interp(f_hz, core.frequency_hz, core.voltage_v)
        else:
            above = [
                next((v for p, v in self._points(k) if p >= f * (1 - 1e-9)), core.voltage_v[-1]) for f in f_hz.flat
            ]
            volts = np.array(above).reshape(f_hz.shape)
        return cycles * core.dynamic_power_coefficient * 1e-12 * volts**2 + (law.leakage_w or 0) * cycles / f_hz

    def _points(self, k: int) -> list[tuple[float, float]]:
        return list(zip(self.core(k).frequency_hz, self.core(k).voltage_v, strict=True))

    def ranges(self, k: int) -> list[tuple[float, float]]:
        """The frequencies of device k between two kinks, from the lowest allowed to its own; one each if discrete."""
        law, ceiling, floor = self.system.energy, float(self.f_hz[k]), self.system.frequency_hz[0]
        points = [] if isinstance(law, Cubic) else [p for p, _ in self._points(k) if floor <= p < ceiling]
        if isinstance(law, Voltage) and law.points == "discrete":
            return [(f, f) for f in [*points, ceiling]]
        kinks = [p for p in points if p > floor]
        ends = [floor, *kinks, ceiling]
        return list(pairwise(ends))


def law_problem(law: str, devices: int, rng: np.random.Generator) -> LawProblem:
    """Devices of the paper's table, or of its radio-bound variant, with real or made-up cores."""
    system = preset("paper-iid").known_system(10)
    real = list(our_cores().values())
    cores = [made_up_core(rng) if rng.random() < 0.5 else real[int(rng.integers(len(real)))] for _ in range(devices)]
    cycles = 10 ** rng.uniform(7.6, 8.9, devices)
    band_hz, power_w = ((20e6, 2.0), (1e6, 2e-5), (1e6, 2e-6))[rng.integers(3)]
    system = replace(
        system,
        devices=devices,
        cycles=cycles,
        bandwidth_hz=band_hz,
        frequency_hz=(float(rng.choice([2e7, 4e8])), 3e9),
        energy=LAWS[law],
        cores=tuple(cores),
        core=np.arange(devices),
    )
    highest = np.array([core.frequency_hz[-1] for core in cores])
    f_hz = rng.uniform(np.maximum(0.5 * highest, 1.05 * cycles / system.round_s), 1.0 * np.maximum(highest, 1e9))
    beta = 10 ** (rng.uniform(-5, 3, devices) / 10)
    weight = 10 ** rng.uniform(-2, 0, devices)
    return LawProblem(system, f_hz, weight, band_hz * 1e-13 / beta, power_w * rng.uniform(0.3, 1, devices))


def made_up_core(rng: np.random.Generator) -> Core:
    """Three to six points with voltages that rise by any steps, so that V(f) bends both ways."""
    count = int(rng.integers(3, 7))
    points = np.sort(rng.uniform(2e8, 2.2e9, count))
    volts = np.sort(rng.uniform(0.5, 1.3, count))
    return Core(
        dynamic_power_coefficient=float(rng.uniform(50, 700)), frequency_hz=tuple(points), voltage_v=tuple(volts)
    )


def power_w(of: LawProblem, k: int, sending_s: np.ndarray, share: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return of.kappa_w[k] * share * np.expm1(np.minimum(of.airtime_s / (share * sending_s), 700.0))


def least_at_share(of: LawProblem, k: int, share: np.ndarray, ends_hz: tuple[float, float]) -> np.ndarray:
    """The least w e of device k at these shares with a frequency between two kinks; infinite beyond its power."""
    cycles = float(of.system.cycles[k])

    def cost(f_hz: np.ndarray) -> np.ndarray:
        sending_s = of.system.round_s - cycles / f_hz
        able = sending_s > 0
        watts = power_w(of, k, np.where(able, sending_s, 1.0), share)
        fits = able & (watts <= of.power_w[k] * (1 + 1e-12))
        return np.where(fits, of.weight[k] * (of.computing_j(k, f_hz) + watts * sending_s), np.inf)

    low, high = (np.full(np.shape(share), end) for end in ends_hz)
    best = np.minimum(cost(low), cost(high))
    if ends_hz[0] == ends_hz[1]:
        return best
    for _ in range(60):  # too slow is what does not fit, so that the search must go up from there
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = cost(left), cost(right)
        best = np.minimum(best, np.minimum(at_left, at_right))
        up = (at_left > at_right) | np.isinf(at_right)
        low, high = np.where(up, left, low), np.where(up, high, right)
    return best


def least_share(of: LawProblem, k: int, f_hz: float) -> float:
    """The least share with which device k can send at full power in what f_hz leaves of the round; above 1: none."""
    sending_s = of.system.round_s - float(of.system.cycles[k]) / f_hz
    if sending_s <= 0 or power_w(of, k, np.array(sending_s), np.array(1.0)) > of.power_w[k]:
        return np.inf
    low, high = 1e-12, 1.0
    for _ in range(100):
        middle = (low * high) ** 0.5
        fits = power_w(of, k, np.array(sending_s), np.array(middle)) <= of.power_w[k]
        low, high = (low, middle) if fits else (middle, high)
    return high


def no_less(of: LawProblem, k: int, ends_hz: tuple[float, float]) -> float:
    """A bound below w e between two kinks: the voltage of the lower end, the leakage of the higher, κ a for sending."""
    leakage_w = getattr(of.system.energy, "leakage_w", None) or 0.0
    cycles = float(of.system.cycles[k])
    longer_j = leakage_w * cycles * (1 / ends_hz[0] - 1 / ends_hz[1])
    slowest_j = of.computing_j(k, np.array([ends_hz[0]])).item()
    return float(of.weight[k] * (slowest_j - longer_j + of.kappa_w[k] * of.airtime_s))


def by_golden_sections(of: LawProblem) -> float:
    """The least Σ w e of one or two devices over all their frequencies and shares of the band."""
    if len(of.weight) == 1:
        return min(float(least_at_share(of, 0, np.ones(1), ends)[0]) for ends in of.ranges(0))
    best = np.inf
    pairs = sorted(
        product(of.ranges(0), of.ranges(1)), key=lambda pair: no_less(of, 0, pair[0]) + no_less(of, 1, pair[1])
    )
    for first, second in pairs:
        if no_less(of, 0, first) + no_less(of, 1, second) > best * (1 + 1e-9):
            break
        lowest, highest = least_share(of, 0, first[1]), 1 - least_share(of, 1, second[1])
        if lowest > highest:
            continue

        def total(share: np.ndarray, first=first, second=second) -> np.ndarray:
            return least_at_share(of, 0, share, first) + least_at_share(of, 1, 1 - share, second)

        # A fan of shares first, so that golden sections start from a bracket of the best of them.
        fan = lowest + (highest - lowest) * (1 - np.cos(np.linspace(0, np.pi, 65))) / 2
        values = total(fan)
        at = int(np.argmin(values))
        if values[at] > 1.05 * best:
            continue  # between two shares of the fan the total does not fall by that much
        best = min(best, float(values[at]))
        low, high = fan[max(at - 1, 0)], fan[min(at + 1, 64)]
        for _ in range(9):  # each narrows the bracket by sixteen
            some = np.linspace(low, high, 33)
            values = total(some)
            at = int(np.argmin(values))
            best = min(best, float(values[at]))
            low, high = some[max(at - 1, 0)], some[min(at + 1, 32)]
    return best


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
