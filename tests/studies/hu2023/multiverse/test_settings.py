"""Specifications: what was registered, what each arm looks at of them, and the order in which they race."""

from __future__ import annotations

from itertools import product

import pytest

from feelstream.experiment.plan import flat
from feelstream.studies.hu2023 import paper
from feelstream.studies.hu2023.confirmation.candidates import CANDIDATES
from feelstream.studies.hu2023.multiverse.race import far_apart
from feelstream.studies.hu2023.multiverse.settings import (
    SETTINGS,
    Specification,
    already,
    levels,
    registration,
    schedules,
    seeds,
)

ARMS = (  # one of each kind
    *(paper.proposed("iid", 2), paper.random("3digit", 2), paper.metric("2digit", "amount")),
    *(paper.metric("minority", "dissimilarity"), paper.metric("minority-uniform", "combined")),
)


def test_what_the_search_must_try_is_registered():
    assert {"0.03", "0.0625", "0.125", "0.25"} <= set(levels("sigma"))
    rounds = [int(each) for each in levels("T")]
    assert (min(rounds), max(rounds)) == (15, 300)
    assert len(schedules()) == 2 * 2 * len(levels("sigma")) * len(levels("T"))
    assert registration()["race"]["stages"] == [3, 8, 20]
    assert set(seeds()).isdisjoint(seeds("confirmation"))


def test_the_confirmed_specifications_are_known_to_the_search_by_their_scenarios():
    """Every field of every arm but how often the model is tested and how much of a run is kept."""
    own = [next(each for each in sorted(already()) if _agrees(each, candidate)) for candidate in CANDIDATES]
    assert len(set(own)) == len(CANDIDATES) == len(already())


def _agrees(specification: Specification, candidate) -> bool:
    return all(
        _without(specification.scenario(label, learning=True), label) == _without(candidate.scenario(label), label)
        for label in ARMS
    )


def _without(scenario, label: str) -> dict[str, object]:
    aside = {"learning.eval_every", "trace.level", "data.fresh" if " random " in label else ""}
    return {key: value for key, value in flat(scenario.as_dict()).items() if key not in aside}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_choice_that_an_arm_does_not_look_at_changes_nothing_of_its_scenario_that_counts(name):
    """Arms share runs by `read_by`; where it keeps two values apart, their scenarios differ in some arm."""
    base = sorted(already())[0]
    for value in levels(name):
        other = Specification(**(base.choices | {name: value}))
        for label in ARMS:
            same = other.read_by(label) == base.read_by(label)
            one, two = (_without(each.scenario(label, learning=True), label) for each in (other, base))
            assert (one == two) == same, (label, value)


def test_random_is_played_once_for_both_readings_of_fresh_data():
    one, other = (Specification("any", fresh, "0.125", "25") for fresh in levels("fresh"))
    assert one.read_by(paper.random("iid", 2)) == other.read_by(paper.random("iid", 2))
    assert one.read_by(paper.proposed("iid", 2)) != other.read_by(paper.proposed("iid", 2))


def test_a_finite_weight_is_set_where_the_figure_has_an_infinite_one():
    one = Specification("any", "per_round", "0.125", "25", weight="one")
    weights = {
        label: getattr(one.scenario(label, learning=True).policy, "V", None)
        for label in (paper.metric("iid", "amount"), paper.proposed("iid", 2))
    }
    assert list(weights.values()) == [1.0, 0.05]


def test_specifications_are_read_as_they_are_written():
    for each in already():
        assert Specification.parse(str(each)) == each


def test_a_wave_is_further_apart_than_a_random_one_and_the_same_every_time():
    every = tuple(Specification(*each) for each in product(*(levels(name) for name in SETTINGS)))[::11]
    taken = far_apart(every, tuple(already()), 8)
    assert taken == far_apart(every, tuple(already()), 8)
    assert len(set(taken)) == 8

    def least(chosen) -> int:
        return min(
            sum(getattr(one, name) != getattr(other, name) for name in SETTINGS)
            for i, one in enumerate(chosen)
            for other in chosen[:i]
        )

    assert least(taken) > max(least(every[start : start + 8]) for start in range(0, 400, 40))
    assert far_apart((), (), 8) == []
