"""Outcomes and the search on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import polars as pl

from feelstream.studies.hu2023.multiverse import design, search
from feelstream.studies.hu2023.multiverse.outcomes import OUTCOMES, shares, together
from feelstream.studies.hu2023.multiverse.settings import LEARNING, Specification, chosen

SETTINGS = chosen(["T=20,40", "sigma=0.03,0.125", "bounds=truncate", "empty_fresh=zero", "steps=5,20", "batch=32"])
EVERY = design.everything(SETTINGS, design.factorial(SETTINGS))


def table(effects: dict[str, dict[Specification, float]]) -> pl.DataFrame:
    rows = [
        [claim, *(dict(each.choices).get(name) for name in LEARNING), effect, None, None, 3, effect > 0, effect > 1]
        for claim, values in effects.items()
        for each, effect in values.items()
    ]
    return pl.DataFrame(rows, schema=OUTCOMES, orient="row")


def test_shares_by_value_are_counts():
    found = shares(table({"a": {each: 1.0 if each["fresh"] == "per_round" else -1.0 for each in EVERY}}), SETTINGS)
    by_value = {(row["setting"], row["value"]): row["comes_out"] for row in found.iter_rows(named=True)}
    assert by_value["fresh", "per_round"] == 1.0
    assert by_value["fresh", "since_use"] == 0.0
    assert by_value["T", "20"] == 0.5
    assert ("bounds", "truncate") not in by_value  # one value tells nothing


def test_together_counts_what_comes_out_and_names_what_does_not():
    effects = {
        "a": {each: 1.0 if each["T"] == "20" else -1.0 for each in EVERY},
        "b": {each: 1.0 if each["sigma"] == "0.03" else -1.0 for each in EVERY},
        "c": dict.fromkeys(EVERY[1:], 1.0),
    }
    found = together(table(effects), ["a", "b", "c"])
    assert len(found) == len(EVERY) - 1  # of the first, c is not known
    best = found.row(0, named=True)
    assert (best["come_out"], best["T"], best["sigma"], best["missing"]) == (3, "20", "0.03", [])
    assert found.filter(pl.col("come_out") == 2)["missing"].list.len().unique().to_list() == [1]


def test_the_search_finds_the_one_corner_where_all_claims_come_out():
    """Two additive claims that agree at T = 40, per_round alone; a quarter of the specifications was played."""

    def first(each: Specification) -> float:
        return (1.0 if each["T"] == "40" else -1.0) - 0.5

    def second(each: Specification) -> float:
        return (1.0 if each["fresh"] == "per_round" else -1.0) - 0.5

    played = EVERY[::4] + EVERY[1::16]
    known = table({"a": {each: first(each) for each in played}, "b": {each: second(each) for each in played}})
    batch = search.next_batch(known, ["a", "b"], EVERY, SETTINGS, 4)
    assert len(batch) == 4
    assert {(each["T"], each["fresh"]) for each in batch} == {("40", "per_round")}
    assert not set(batch) & set(played)
    for one in batch:
        for other in batch:
            differing = sum(one[name] != other[name] for name, _ in one.choices)
            assert one == other or differing >= search.APART


def test_the_search_ends_where_nothing_is_left():
    known = table({"a": dict.fromkeys(EVERY, 1.0)})
    assert search.next_batch(known, ["a"], EVERY, SETTINGS, 4) == []


def test_the_model_learns_which_value_helps():
    effects = {each: 2.0 * (each["T"] == "40") - 1.0 + 0.5 * (-1) ** i for i, each in enumerate(EVERY)}
    x = search.one_hot(EVERY, SETTINGS)
    assert x.shape == (len(EVERY), 1 + sum(len(SETTINGS[name].values) for name in LEARNING))
    assert (x.sum(axis=1) == 1 + len(LEARNING)).all()
    high = search.promise(table({"a": effects}), ["a"], [each for each in EVERY if each["T"] == "40"], SETTINGS)
    low = search.promise(table({"a": effects}), ["a"], [each for each in EVERY if each["T"] == "20"], SETTINGS)
    assert high.min() > low.max()
    assert np.all(high <= 0)
