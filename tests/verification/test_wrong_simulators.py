"""Runs that are consistent throughout but obey one wrong rule of the simulator: it must be seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import slow_simulator
from slow_simulator import scenario, simulate

from feelstream.verification import verify

Right = Callable[..., Any]
# Whose function becomes what, made of the right one.
Patch = tuple[str, Callable[[Right], Right]]


def as_told(tree: Any, **sections: dict[str, Any]) -> Any:
    """A scenario with other settings than run.json has."""
    return tree | {name: tree[name] | fields for name, fields in sections.items()}


def without_the_best(right: Right) -> Right:
    """Leaves the lowest score out whenever there is a choice."""

    def wrong(tree: Any, view: Any, n: int, feasible: Any, importance: Any, least: int, most: int, rng: Any) -> Any:
        if len(feasible) > most > 0:
            feasible = sorted(feasible, key=lambda k: slow_simulator.score(tree, view, k, n, importance[k]))[1:]
        return right(tree, view, n, feasible, importance, least, most, rng)

    return wrong


def full_size(right: Right) -> Right:
    """free that takes the greatest size it can instead of the best."""

    def wrong(tree: Any, view: Any, rng: Any) -> Any:
        n = len(slow_simulator.importances(tree, view, tree["policy"]["size"])[0])
        return right(tree if n < tree["policy"]["size"] else as_told(tree, policy={"cardinality": "exact"}), view, rng)

    return wrong


def all_late_at_once(right: Right) -> Right:
    def wrong(tree: Any, f: Any, ratio: Any, chosen: Any) -> Any:
        power_w = slow_simulator.received_w(tree) / tree["radio"]["link_margin"]
        left_s = [tree["system"]["round_s"] - tree["cpu"]["cycles"] / hz for hz in f]
        needed_s = [slow_simulator.transmission_s(tree, len(chosen), power_w * each) for each in ratio]
        return [k for k in chosen if needed_s[k] <= left_s[k]]

    return wrong


def natural(right: Right) -> Right:
    """ln in the place of log2."""
    return lambda *known: right(*known) / math.log(2)


second_best = ("best_subset", without_the_best)
# cap that is exact: of least … most devices always the most
positive_too = ("best_subset", lambda right: lambda *known: right(*known[:5], known[6], *known[6:]))
free_at_full_size = ("decide", full_size)
no_margin = ("admit", lambda right: lambda tree, *known: right(as_told(tree, radio={"link_margin": 1.0}), *known))
paper = ("admit", lambda right: lambda tree, *known: right(as_told(tree, radio={"admission": "paper"}), *known))
largest = ("admit", lambda right: lambda tree, *known: right(as_told(tree, radio={"admission": "largest"}), *known))
drop_at_once = ("admit", all_late_at_once)
no_discount = ("surrogate_s", lambda right: lambda tree, n: right(as_told(tree, radio={"rate_discount": 1.0}), n))
logarithm = ("transmission_s", natural)
not_divided = ("centred", lambda right: lambda counts: [count - sum(counts) / len(counts) for count in counts])
no_radio = ("surrogate_j", lambda right: lambda tree, *at: right(as_told(tree, radio={"rate_discount": math.inf}), *at))
at_once = ("distance", lambda right: lambda tree, t, *counts: right(tree, t + 1, *counts))  # dissimilar in round 1


def misreads(function: str, **readings: str) -> Patch:
    """Takes another reading of the paper than run.json says."""
    return function, lambda right: lambda tree, *known: right(as_told(tree, data=readings), *known)


# Nobody meets the deadline with such a margin, so that nothing is ever used.
NOTHING_USED = {"policy__size": 1, "radio__link_margin": 1e6}

FREE, VECTOR = {"policy__cardinality": "free"}, {"data__empty_used": "vector"}
MANY = {"policy__size": 5, "radio__rate_discount": 3.0}
LARGEST = {"radio__admission": "largest"}
CASES: list[tuple[Patch, dict[str, Any], set[str]]] = [
    (second_best, {}, {"scheduled"}),
    (second_best, {"policy__cardinality": "cap"}, {"scheduled"}),
    (second_best, FREE | {"system__energy_budget_j": 0.1}, {"scheduled", "planned"}),
    (second_best, {"policy__V": math.inf}, {"scheduled"}),
    (positive_too, {"policy__cardinality": "cap", "policy__V": 0.005}, {"scheduled"}),
    (free_at_full_size, FREE | {"policy__V": 0.005}, {"planned"}),
    (no_margin, {"policy__size": 5}, {"transmitted"}),
    (no_margin, {"policy__size": 5} | LARGEST, {"transmitted"}),
    (largest, MANY, {"transmitted"}),
    (paper, MANY | LARGEST, {"transmitted"}),
    (drop_at_once, MANY, {"transmitted"}),
    (no_discount, {}, {"feasible", "score"}),
    (logarithm, {}, {"feasible", "score", "t_tr_s", "transmitted"}),
    (not_divided, {}, {"dissimilarity"}),
    (no_radio, {}, {"score"}),
    (misreads("may_be_scheduled", eligible="with_data"), {}, {"available"}),
    (misreads("may_be_scheduled", eligible="any"), {"data__eligible": "with_data"}, {"available"}),
    (misreads("distance", empty_fresh="vector"), {}, {"dissimilarity"}),
    (misreads("distance", empty_fresh="zero"), {"data__empty_fresh": "vector"}, {"dissimilarity"}),
    (misreads("distance", empty_used="vector"), NOTHING_USED, {"dissimilarity"}),
    (misreads("distance", empty_used="zero"), VECTOR | NOTHING_USED, {"dissimilarity"}),
    (at_once, VECTOR, {"dissimilarity"}),
]


@pytest.mark.parametrize(("patch", "changes", "fields"), CASES)
def test_a_wrong_rule_is_seen(
    patch: Patch, changes: dict[str, Any], fields: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = scenario(system__rounds=40, **changes)
    assert verify(simulate(tree, seed=5).save(tmp_path / "right")).ok
    name, wrong = patch
    monkeypatch.setattr(slow_simulator, name, wrong(getattr(slow_simulator, name)))
    found = verify(simulate(tree, seed=5).save(tmp_path / "wrong")).disagreement
    assert found is not None
    assert found.field in fields
