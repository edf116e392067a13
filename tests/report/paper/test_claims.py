"""Claims on constructed data, whose answers are known beforehand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from feelstream.experiment import paper as reproduce
from feelstream.experiment.statistics import Interval
from feelstream.report.paper.claims import all_claims, judged
from feelstream.report.paper.verdicts import Ahead, NotBehind, Size, Verdict, judge
from feelstream.run.trace import ROUNDS

SEEDS, T = 5, 9


def table(values: dict[tuple[str, str], np.ndarray]) -> pl.DataFrame:
    """(arm, column) → (seeds, rounds) as the rows of all runs; what is not given is not measured."""
    frames = []
    for arm in {arm for arm, _ in values}:
        for seed in range(SEEDS):
            known = {column: pl.Series(column, v[seed]) for (a, column), v in values.items() if a == arm}
            columns = [
                pl.Series("round", range(1, T + 1)) if name == "round" else known.get(name, pl.Series(name, [None] * T))
                for name in ROUNDS
            ]
            frame = pl.DataFrame(columns).select(pl.col(name).cast(kind) for name, kind in ROUNDS.items())
            frames.append(frame.select(pl.lit(arm).alias("arm"), pl.lit(seed, pl.Int64).alias("seed"), pl.all()))
    return pl.concat(frames)


def flat(level: float, slope: float = 0.0) -> np.ndarray:
    """A curve that is the same for every seed."""
    return np.tile(level + slope * np.arange(T), (SEEDS, 1))


def by_key(name: str, values: dict[tuple[str, str], np.ndarray]):
    return {f.claim.key: f for f in judged(reproduce.plan(name, range(SEEDS)), table(values))}


def accuracy(setting: str, n: int, proposed: np.ndarray, random: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    return {
        (reproduce.proposed(setting, n), "accuracy"): proposed,
        (reproduce.random(setting, n), "accuracy"): random,
    }


def test_holding_failing_and_undecidable_claims_are_told_apart():
    noise = np.array([[-2.0], [1.0], [0.0], [-1.0], [2.0]]) / 100  # mean 0 over seeds
    found = by_key(
        "fig1",
        accuracy("iid", 2, flat(0.9), flat(0.8))
        | accuracy("iid", 4, flat(0.7), flat(0.8))
        | accuracy("3digit", 2, flat(0.8) + noise, flat(0.8)),
    )
    assert found["1a-n2-final"].verdict is Verdict.REPRODUCED
    assert found["1a-n2-final"].ours.mean == pytest.approx(10.0)  # percentage points
    assert found["1a-n2-final"].reason == ""
    assert found["1a-n4-final"].verdict is Verdict.FAILED
    assert "inferred: T = 40 rounds, σ = 0.03" in found["1a-n4-final"].reason
    assert found["1b-n2-final"].verdict is Verdict.OPEN
    # 5 seeds: t(4) = 2.776, s = √2.5, so the half width is 2.776 · √2.5 / √5
    assert found["1b-n2-final"].ours.half_width == pytest.approx(stats.t.ppf(0.975, 4) * np.sqrt(0.5))


def test_only_claims_with_runs_behind_them_are_made():
    found = by_key("fig1", accuracy("iid", 2, flat(0.9), flat(0.8)))
    assert set(found) == {"1a-n2-final", "1a-n2-mean"}


def test_the_area_differs_from_the_end_where_curves_cross():
    steep, level = flat(0.1, slope=0.1), flat(0.6)  # 0.1 … 0.9 against 0.6
    found = by_key("fig1", accuracy("iid", 2, steep, level))
    assert found["1a-n2-final"].ours.mean == pytest.approx(30.0)
    assert found["1a-n2-mean"].ours.mean == pytest.approx(-10.0)


@pytest.mark.parametrize(
    ("saved", "verdict"),
    [
        ([0.14, 0.15, 0.16, 0.17, 0.18], Verdict.REPRODUCED),
        ([0.28, 0.29, 0.30, 0.31, 0.32], Verdict.DIRECTION),
        ([-0.2, -0.2, -0.21, -0.19, -0.2], Verdict.FAILED),
        ([-0.9, 0.9, 0.5, -0.5, 0.16], Verdict.OPEN),
    ],
)
def test_savings_are_judged_by_sign_and_by_the_papers_number(saved, verdict):
    random = flat(0.02)
    proposed = random * (1 - np.array(saved))[:, None]
    found = by_key(
        "fig1",
        {
            (reproduce.proposed("iid", 2), "energy_mean_cum_j"): proposed,
            (reproduce.random("iid", 2), "energy_mean_cum_j"): random,
        },
    )["1c-n2-saving"]
    assert found.ours.mean == pytest.approx(100 * np.mean(saved))
    assert found.verdict is verdict


def metrics(setting: str, column: str, **levels: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    return {(reproduce.metric(setting, name), column): values for name, values in levels.items()}


def test_early_and_late_are_thirds_of_the_run():
    """Amount is better by 3, 2, 1, 0, … points in rounds 1, 2, 3, 4, …: early is the mean of the first three."""
    amount = 0.5 + np.tile(np.arange(3, 3 - T, -1) / 100, (SEEDS, 1))
    found = by_key("fig2", metrics("iid", "accuracy", combined=flat(0.5), amount=amount, dissimilarity=flat(0.5)))
    assert found["2a-early"].ours.mean == pytest.approx(2.0)
    assert found["2a-early"].verdict is Verdict.REPRODUCED
    # rounds 7, 8, 9 of 9: behind by 3, 4, 5 points, so dissimilarity is ahead by 4
    assert found["2a-late"].ours.mean == pytest.approx(4.0)
    assert found["2a-late"].verdict is Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("combined", "lead", "verdict"),
    [(0.80, 10.0, Verdict.REPRODUCED), (0.695, -0.5, Verdict.REPRODUCED), (0.60, -10.0, Verdict.FAILED)],
)
def test_combined_is_held_against_the_weaker_of_the_others(combined, lead, verdict):
    levels = {"combined": flat(combined), "amount": flat(0.9), "dissimilarity": flat(0.7)}
    found = by_key("fig2", metrics("2digit", "accuracy", **levels))["2b-combined"]
    assert found.ours.mean == pytest.approx(lead)
    assert found.verdict is verdict


def test_lower_loss_is_ahead_and_the_gap_shrinks_by_the_difference_of_leads():
    found = by_key(
        "fig3",
        metrics("minority", "loss", combined=flat(0.5), amount=flat(0.4), dissimilarity=flat(0.7))
        | metrics("minority-uniform", "loss", combined=flat(0.5), amount=flat(0.5), dissimilarity=flat(0.6)),
    )
    assert found["3a-early"].ours.mean == pytest.approx(0.3)
    assert found["3a-late"].verdict is Verdict.FAILED
    assert found["3b-shrinks"].ours.mean == pytest.approx(0.2)
    assert found["3b-shrinks"].verdict is Verdict.REPRODUCED


def test_pairs_are_matched_by_seed_not_by_position():
    values = accuracy("iid", 2, flat(0.5) + np.arange(SEEDS)[:, None] / 10, flat(0.4) + np.arange(SEEDS)[:, None] / 10)
    rows = table(values).sample(fraction=1.0, shuffle=True, seed=1)
    rows = rows.filter(~((pl.col("arm") == reproduce.random("iid", 2)) & (pl.col("seed") == 0)))
    found = {f.claim.key: f for f in judged(reproduce.plan("fig1", range(SEEDS)), rows)}["1a-n2-final"]
    assert found.ours.n == SEEDS - 1
    assert found.ours.mean == pytest.approx(10.0)
    assert found.ours.half_width == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("test", [Ahead(), NotBehind(1.0, "pp"), Size(16.0)])
def test_without_an_interval_there_is_no_verdict(test):
    assert judge(test, Interval(5.0, None, None, 1)) is Verdict.NO_INTERVAL


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.9, -0.1, Verdict.REPRODUCED),  # behind, by less than the margin: level
        (-1.5, -0.1, Verdict.FAILED),
        (-1.5, 0.1, Verdict.OPEN),
        (0.1, 0.2, Verdict.REPRODUCED),
    ],
)
def test_level_has_a_margin(low, high, verdict):
    assert judge(NotBehind(1.0, "pp"), Interval((low + high) / 2, low, high, 9)) is verdict


def test_every_claim_has_its_own_key_and_names_arms_of_its_panel():
    claims = all_claims()
    assert len({claim.key for claim in claims}) == len(claims)
    arms = {arm.label for arm in reproduce.plan("all", [0]).arms}
    assert {arm for claim in claims for arm in claim.arms} <= arms
