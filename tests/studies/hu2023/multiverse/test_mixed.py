"""The mixed model on simulated effects whose truth is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from feelstream.studies.hu2023.multiverse.mixed import fit
from feelstream.studies.hu2023.multiverse.settings import SETTINGS, Specification, levels

EVERY = [Specification(*each) for each in product(*(levels(name) for name in SETTINGS))]
SPREADS = {"settings": 2.0, "cells": 1.0, "own": 1.5, "seeds": 1.0, "rest": 4.0}


class World:
    """Effects drawn from the model itself: truth[s] is what specification s comes to without seed and rest."""

    def __init__(self, rng: np.random.Generator, specifications: int, seeds: int) -> None:
        chosen = [EVERY[index] for index in rng.choice(len(EVERY), specifications + 8, replace=False)]
        values = {(name, value): rng.normal(0, SPREADS["settings"]) for name in SETTINGS for value in levels(name)}
        cells: dict[tuple[str, str, str], float] = {}
        self.truth: dict[Specification, float] = {}
        for each in chosen:
            cell = cells.setdefault((each.eligible, each.fresh, each.sigma), rng.normal(0, SPREADS["cells"]))
            own = rng.normal(0, SPREADS["own"])
            self.truth[each] = 1 + sum(values[name, getattr(each, name)] for name in SETTINGS) + cell + own
        self.played, self.unplayed = chosen[:specifications], chosen[specifications:]
        drawn = [rng.normal(0, SPREADS["seeds"]) for _ in range(seeds)]
        rows = [(each, seed) for each in self.played for seed in range(seeds)]
        self.effects = [self.truth[each] + drawn[seed] + rng.normal(0, SPREADS["rest"]) for each, seed in rows]
        self.model = fit([row[0] for row in rows], [row[1] for row in rows], self.effects)

    def means(self) -> dict[Specification, float]:
        per = len(self.effects) // len(self.played)
        return {each: float(np.mean(self.effects[i * per : (i + 1) * per])) for i, each in enumerate(self.played)}


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    rng = np.random.default_rng(29)
    return [World(rng, 12, 3) for _ in range(30)]


def _misses(world: World, wanted: list[Specification]) -> np.ndarray:
    mean, error = world.model.expected(wanted)
    return np.abs(np.array([world.truth[each] for each in wanted]) - mean) > 1.96 * error


def test_intervals_hold_the_truth_about_as_often_as_they_say(worlds):
    """360 played and 240 unplayed specifications. Variances are estimated, so a little less than 95 %."""
    played = np.concatenate([_misses(world, world.played) for world in worlds]).mean()
    unplayed = np.concatenate([_misses(world, world.unplayed) for world in worlds]).mean()
    assert 0.03 < played < 0.14
    assert 0.03 < unplayed < 0.20


def test_shrunken_means_are_nearer_to_the_truth_than_means_are(worlds):
    shrunken, plain = [], []
    for world in worlds:
        mean, _ = world.model.expected(world.played)
        truth = np.array([world.truth[each] for each in world.played])
        shrunken.append(((mean - truth) ** 2).mean())
        plain.append(((np.array([world.means()[each] for each in world.played]) - truth) ** 2).mean())
    assert np.mean(shrunken) < 0.97 * np.mean(plain)


def test_chances_are_calibrated(worlds):
    """Of effects called likely (P > 0.8) at least seven in ten are above the bound; of unlikely ones, at most three."""
    chance = np.concatenate([world.model.chance(world.played, -2.0) for world in worlds])
    above = np.concatenate([[world.truth[each] > -2 for each in world.played] for world in worlds])
    assert above[chance > 0.8].mean() > 0.8
    assert above[chance < 0.2].mean() < 0.3
    assert abs(chance.mean() - above.mean()) < 0.05


def test_variances_come_back_on_average(worlds):
    found = np.mean([world.model.variances for world in worlds], axis=0)
    truth = np.array([spread**2 for spread in SPREADS.values()])
    assert found[4] == pytest.approx(truth[4], rel=0.1)
    # The three that belong to specifications are hard to tell apart with twelve of them; their sum is not.
    assert len(SETTINGS) * found[0] + found[1] + found[2] == pytest.approx(
        len(SETTINGS) * truth[0] + truth[1] + truth[2], rel=0.3
    )


def test_with_balanced_seeds_and_nothing_shared_it_is_the_random_intercept_model():
    """Specifications that differ in everything: REML of one-way analysis of variance has a closed form."""
    rng = np.random.default_rng(1)
    chosen = [Specification("any", "per_round", "0.03", str(i), str(i), str(i), str(i)) for i in range(40)]
    truth = rng.normal(0, 3, 40)
    values = truth[:, None] + rng.normal(0, 2, (40, 6))
    rows = [(each, 100 * i + j) for i, each in enumerate(chosen) for j in range(6)]  # no seed is shared
    model = fit([row[0] for row in rows], [row[1] for row in rows], values.ravel().tolist())
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1) - within / 6
    assert model.variances[3] + model.variances[4] == pytest.approx(within, rel=1e-2)
    own = 4 * model.variances[0] + model.variances[2]  # four settings differ, three and the cell are shared by all
    assert own == pytest.approx(between, rel=1e-2)
    mean, _ = model.expected(chosen)
    shrink = between / (between + within / 6)
    grand = values.mean()
    assert mean == pytest.approx(grand + shrink * (values.mean(axis=1) - grand), abs=0.05)
