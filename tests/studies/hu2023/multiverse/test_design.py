"""Specifications: complete where they are to be, balanced where they are a part, the same every time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from feelstream.errors import ScenarioError
from feelstream.studies.hu2023 import paper as reproduce
from feelstream.studies.hu2023.claims import all_claims
from feelstream.studies.hu2023.multiverse import design
from feelstream.studies.hu2023.multiverse.settings import (
    LEARNING,
    MOST_STEPS,
    SCHEDULE,
    Specification,
    chosen,
    read_by,
)
from feelstream.studies.hu2023.multiverse.study import presets

SETTINGS = chosen()


def test_every_schedule_is_there_once():
    every = design.factorial(SETTINGS)
    sizes = [len(SETTINGS[name].values) for name in SCHEDULE]
    product = 1
    for size in sizes:
        product *= size
    assert len(set(every)) == len(every) == product > 1000
    assert {name for name, _ in every[0].choices} == set(SCHEDULE)


def test_a_part_has_every_value_about_equally_often():
    part = design.spread(SETTINGS, 36)
    assert len(part) == 36
    for name in LEARNING:
        if name == "steps":  # lowered where runs are long
            continue
        counts = Counter(each[name] for each in part)
        assert max(counts.values()) - min(counts.values()) <= 1, name
        assert set(counts) == set(SETTINGS[name].values)
    assert all(int(each["T"]) * int(each["steps"]) <= MOST_STEPS for each in part)


def test_a_part_is_more_spread_out_than_a_random_one():
    ours = design.closest(design.coordinates(design.spread(SETTINGS, 24), SETTINGS))
    rows, rng = design.everything(SETTINGS, design.factorial(SETTINGS)[::7]), np.random.default_rng(0)
    randoms = [
        design.closest(design.coordinates([rows[i] for i in rng.choice(len(rows), 24, replace=False)], SETTINGS))
        for _ in range(20)
    ]
    assert ours > max(randoms)


def test_the_same_seed_gives_the_same_part():
    assert design.spread(SETTINGS, 8) == design.spread(SETTINGS, 8)
    assert design.spread(SETTINGS, 8, seed=1) != design.spread(SETTINGS, 8)


def test_runs_are_shared_where_a_policy_does_not_look():
    one = presets(SETTINGS)
    other = Specification.of(dict(one.choices) | {"fresh": "per_round", "empty_used": "vector"})
    random, proposed = reproduce.random("iid", 2), reproduce.proposed("iid", 2)
    assert one.read_by(random, SETTINGS) == other.read_by(random, SETTINGS)
    assert one.read_by(proposed, SETTINGS) != other.read_by(proposed, SETTINGS)
    uniform = reproduce.metric("minority-uniform", "dissimilarity")
    assert {"sigma", "bounds"}.isdisjoint(dict(one.read_by(uniform, SETTINGS).choices))
    amount = reproduce.metric("iid", "amount")
    assert {name for name, _ in one.choices} - dict(one.read_by(amount, SETTINGS).choices).keys() == {
        "empty_used",
        "empty_fresh",
    }


def test_the_presets_are_one_of_the_specifications():
    own = presets(SETTINGS)
    assert own.schedule in design.factorial(SETTINGS)
    scenario = reproduce.scenario(reproduce.proposed("iid", 2))
    assert reproduce.scenario(reproduce.proposed("iid", 2), own.overrides(SETTINGS)) == scenario


def test_values_may_be_replaced():
    settings = chosen(["T=10, 20", "sigma=0.5"])
    assert settings["T"].values == ("10", "20")
    assert len(design.factorial(settings)) == 2**5 * 2


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ("rounds=20", "there is no such setting"),
        ("T", "must read name=value"),
        ("T=20,20", "must read name=value"),
        ("T=none", "system.rounds"),
        ("fresh=old", "data.fresh"),
    ],
)
def test_wrong_values_are_one_sentence(levels, words):
    with pytest.raises(ScenarioError, match=words):
        chosen([levels])


def test_a_claim_about_uniform_arrivals_depends_on_no_width():
    claims = {claim.key: set(read_by(claim, SETTINGS)) for claim in all_claims()}
    gap = next(claim for claim in all_claims() if claim.key == "3b-gap")
    alone = replace(gap, arms=tuple(label for label in gap.arms if "uniform" in label))
    assert alone.arms
    assert set(read_by(alone, SETTINGS)) == set(LEARNING) - {"bounds", "sigma"}
    assert claims["3b-gap"] == set(LEARNING)  # it compares them with truncated-normal ones
    assert claims["1c-n2-saving"] == set(LEARNING)
