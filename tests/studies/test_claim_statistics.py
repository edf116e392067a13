"""The tests behind verdicts, on simulated seeds whose truth is known: how often each errs, and how often it finds."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from feelstream.experiment.statistics import one_sided_p
from feelstream.studies.claims import Paired, p_values
from feelstream_studies.hu2023.claims.metrics import MARGIN, shrinkage
from feelstream_studies.hu2023.claims.resampling import Resampled, resampled
from feelstream_studies.hu2023.claims.statements import slope_by_width

SEEDS, WORLDS, ROUNDS = 20, 400, 9
CHANCE = 4 * np.sqrt(0.05 * 0.95 / WORLDS)  # four deviations of a share of 5 %


def rejected(effects: np.ndarray, margin: float = 0.0) -> float:
    """Share of simulated studies (WORLDS, rivals, SEEDS) in which all effects are shown to be above −margin."""
    said = [p_values([Paired(row + margin) for row in world]) for world in effects]
    return float(np.mean([p_for <= 0.05 for (p_for, _), _ in said]))


def test_as_good_as_errs_in_5_percent_on_the_margin_and_finds_equality():
    rng = np.random.default_rng(1)
    on_the_margin = rng.normal(-MARGIN, 2.0, (WORLDS, 1, SEEDS))
    assert rejected(on_the_margin, MARGIN) == pytest.approx(0.05, abs=CHANCE)
    # a difference of 0 with a deviation of 2 pp is 4.5 standard errors from the margin: found in 99 %
    assert rejected(rng.normal(0.0, 2.0, (WORLDS, 1, SEEDS)), MARGIN) > 0.96


def test_two_rivals_make_the_test_stricter_never_looser():
    rng = np.random.default_rng(2)
    effects = rng.normal(-MARGIN, 2.0, (WORLDS, 2, SEEDS))
    assert rejected(effects, MARGIN) < 0.05


def curves(rng: np.random.Generator, gaps: tuple[float, float], noise: float = 0.3) -> np.ndarray:
    """(SEEDS, 4, ROUNDS): amount and dissimilarity, twice; noise of a seed that all rounds share, and of each round."""
    common = rng.normal(0, noise, (SEEDS, 4, 1)) + rng.normal(0, noise / 2, (SEEDS, 4, ROUNDS))
    levels = np.array([1.0, 1.0 + gaps[0], 1.0, 1.0 + gaps[1]])
    return common + levels[None, :, None]


def gap_is_smaller(rng: np.random.Generator, gaps: tuple[float, float], worlds: int) -> list[Resampled]:
    return [resampled(shrinkage, curves(rng, gaps), draws=200) for _ in range(worlds)]


def shown(found: list[Resampled]) -> float:
    return float(np.mean([each.p_values(1)[0] <= 0.05 for each in found]))


@pytest.mark.parametrize("gaps", [(0.5, 0.5), (0.0, 0.0)])
def test_equal_gaps_are_called_smaller_in_about_5_percent(gaps):
    worlds = 300
    share = shown(gap_is_smaller(np.random.default_rng(3), gaps, worlds))
    assert share < 0.05 + 4 * np.sqrt(0.05 * 0.95 / worlds)


def test_a_gap_that_shrinks_is_found_and_its_interval_holds_the_truth():
    found = gap_is_smaller(np.random.default_rng(4), (0.7, 0.3), 200)
    assert shown(found) > 0.8  # 0.4 is about 3 standard errors of 0.13
    held = np.mean([each.interval.low <= 0.4 <= each.interval.high for each in found])  # type: ignore[operator]
    assert held == pytest.approx(0.95, abs=0.065)
    assert np.mean([each.mean for each in found]) == pytest.approx(0.4, abs=0.03)


def test_one_seed_has_no_interval():
    found = resampled(shrinkage, curves(np.random.default_rng(6), (0.5, 0.1))[:1])
    assert found.interval.low is None


def test_the_resamples_are_the_same_every_time():
    values = curves(np.random.default_rng(7), (0.5, 0.1))
    assert np.array_equal(resampled(shrinkage, values).draws, resampled(shrinkage, values).draws)


def _slopes(rng: np.random.Generator, per_halving: float, seeds: int = 10) -> dict[int, float]:
    """Of leads at three widths that grow by so much with each halving, with noise of each run and of each seed."""
    widths = (1 / 32, 1 / 8, 1 / 2)
    own = rng.normal(0, 5, seeds)
    leads = [
        {seed: per_halving * -log2(width) + own[seed] + rng.normal(0, 2) for seed in range(seeds)} for width in widths
    ]
    return slope_by_width(leads, widths)


def test_a_slope_of_zero_is_called_positive_in_2_5_percent_and_a_true_one_is_found():
    """One-sided t-tests at 2.5 %, 2,000 times each; 0.5 points a halving, where seeds differ by ten times that."""
    rng = np.random.default_rng(4)
    level = 0.025

    def share(per_halving: float) -> float:
        found = [one_sided_p(list(_slopes(rng, per_halving).values())) for _ in range(2000)]
        return float(np.mean([p < level for p in found]))

    assert abs(share(0.0) - level) < 0.012
    # The slope has variance 2² · 2/4² = 0.5 a seed: 0.5/(0.71/√10) = 2.2 standard errors, so a power of about a half.
    assert 0.4 < share(0.5) < 0.65
    assert share(1.0) > 0.95


def test_the_slope_is_that_of_least_squares():
    rng = np.random.default_rng(5)
    widths = (0.03, 0.1, 0.2, 0.9)
    leads = [{7: rng.normal()} for _ in widths]
    slope = np.polyfit([-log2(width) for width in widths], [lead[7] for lead in leads], 1)[0]
    assert slope_by_width(leads, widths)[7] == pytest.approx(slope)
