"""What the leaderboard is made of: its scenarios, and the policies that are entered."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from pathlib import Path

import numpy as np

from feelstream.studies.plans import Scenario, load, schedule_only, simulate, weight_of, with_weight

# What docs/leaderboard.md shows, and what its runs change. A test of the accuracy takes as long as several rounds of
# training, so the longer a run is, the less often it is tested.
BOARD: dict[str, tuple[str, ...]] = {
    "paper-3digit": ("learning.eval_every=2",),
    "stress": ("learning.eval_every=4",),
    "long-iid": ("learning.eval_every=20",),
}

ELIGIBLE = ("any", "with_data")
# Entered beside every policy as it comes; K stands for the number of devices, M for the most that fit a round.
# lyapunov_joint with size = M is select_all slowed down: it trains as many, each no faster than the deadline asks for.
VARIANTS = (
    "balanced_joint(size=K)",
    "lyapunov_joint(size=4)",
    "lyapunov_joint(size=M)",
    "lyapunov(V=auto,cardinality=cap)",
    "oort(alpha=0.0)",
    "best_channel(gain=oracle)",
    "proportional_fair(gain=oracle)",
    "fedcs(size=K)",
    "ocean(power=fixed)",
)
# Those with a weight between energy and learning are entered again at the energy of the first. What lyapunov_joint
# spends hardly depends on its V, so it has no such entry.
WEIGHED = ("lyapunov", "balanced", "ocean")
TUNING_SEEDS = (1000, 1001)  # none of those that a leaderboard is played with
STEPS = 8  # halvings of the logarithm of the weight
RANGE = (1e-7, 1e3)  # weights between which one is searched


def most_in_a_round(scenario: Scenario) -> int:
    """K where the band has room for all; else the most that fit if frequencies were spread evenly over their range."""
    system, K = scenario.known_system(1), scenario.system.devices
    low_hz = float(np.min(scenario.population.frequency_low_hz))
    high_hz = float(np.max(scenario.population.frequency_high_hz))
    least_cycles = float(np.min(system.cycles))

    def fit(n: int, slowest_hz: float) -> bool:
        return least_cycles / slowest_hz + system.surrogate_time_s(n) <= system.round_s

    if fit(K, high_hz):
        return K
    return max((n for n in range(1, K) if fit(n, high_hz - (high_hz - low_hz) * n / K)), default=1)


def entries(source: str | Path, overrides: Sequence[str]) -> list[str]:
    """What a leaderboard enters: every policy, its variants, and those with a weight at the energy of the first.

    That is `lyapunov` with the weight of the scenario. The rule is the same for all: `match_energy`.
    """
    scenario = load(source, overrides)
    numbers = {"=K)": scenario.system.devices, "=M)": most_in_a_round(scenario)}
    variants = list(VARIANTS)
    for letter, number in numbers.items():
        variants = [text.replace(letter, f"={number})") for text in variants]
    own = f"(size={scenario.policy.size})"  # as the policy is entered anyway
    variants = [text for text in dict.fromkeys(variants) if not (text.startswith("lyapunov_joint") and own in text)]
    first = WEIGHED[0]
    reference = load(source, [*overrides, f"policy.name={first}"])
    target_j = energy_j(reference, TUNING_SEEDS)
    tuned = []
    for name in WEIGHED[1:]:
        own = load(source, [*overrides, f"policy.name={name}"])
        tuned.append(f"{name}({weight_of(own)}={match_energy(own, target_j)!r})")
    return ["all", *variants, *tuned]


def energy_j(scenario: Scenario, seeds: Sequence[int]) -> float:
    """Mean energy per device and round over the run, without learning."""
    quick = schedule_only(scenario)
    return float(np.mean([simulate(quick, seed).rounds["energy_mean_cum_j"][-1] for seed in seeds]))


def match_energy(scenario: Scenario, target_j: float, seeds: Sequence[int] = TUNING_SEEDS) -> float:
    """The weight with which the policy spends nearest to target_j, without learning; two significant digits.

    Energy is taken to rise with V, and to fall with price, so the weight is found by halving; of the weights met on
    the way, the one whose energy is nearest in ratio. No run is spent on the ends of the range, and a target beyond
    them is no error, as both would be with scipy.optimize.bisect.
    """
    cheaper_with_more = weight_of(scenario) == "price"
    met: dict[float, float] = {}

    def distance(weight: float) -> float:
        return abs(log(max(met[weight], 1e-300) / target_j))

    low, high = (log(end) for end in RANGE)
    for _ in range(STEPS):
        middle = (low + high) / 2
        weight = float(f"{exp(middle):.1e}")
        if weight not in met:
            met[weight] = energy_j(with_weight(scenario, weight), seeds)
        if (met[weight] > target_j) == cheaper_with_more:
            low = middle
        else:
            high = middle
    return min(met, key=distance)
