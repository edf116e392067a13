"""Runs that are consistent throughout but obey one wrong rule: the re-check must see the rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import slow_simulator
from slow_simulator import scenario, simulate

from feelstream.verification import verify

Patch = Callable[[pytest.MonkeyPatch], None]


def second_best(patch: pytest.MonkeyPatch) -> None:
    """Leaves the lowest score out whenever there is a choice."""
    right = slow_simulator.best_subset

    def wrong(tree: Any, view: Any, n: int, feasible: list[int], importance: Any, least: int, most: int, rng: Any):
        if len(feasible) > most > 0:
            feasible = sorted(feasible, key=lambda k: slow_simulator.score(tree, view, k, n, importance[k]))[1:]
        return right(tree, view, n, feasible, importance, least, most, rng)

    patch.setattr(slow_simulator, "best_subset", wrong)


def positive_scores_too(patch: pytest.MonkeyPatch) -> None:
    """Treats cap as exact."""
    right = slow_simulator.best_subset

    def wrong(tree: Any, view: Any, n: int, feasible: Any, importance: Any, least: int, most: int, rng: Any):
        return right(tree, view, n, feasible, importance, most, most, rng)

    patch.setattr(slow_simulator, "best_subset", wrong)


def free_at_full_size(patch: pytest.MonkeyPatch) -> None:
    """free that takes the greatest size it can instead of the best."""
    right = slow_simulator.decide

    def wrong(tree: Any, view: Any, rng: Any):
        n = len(slow_simulator.importances(tree, view, tree["policy"]["size"])[0])
        if n < tree["policy"]["size"]:
            return right(tree, view, rng)
        exact = {**tree, "policy": {**tree["policy"], "cardinality": "exact"}}
        return right(exact, view, rng)

    patch.setattr(slow_simulator, "decide", wrong)


def no_margin(patch: pytest.MonkeyPatch) -> None:
    right = slow_simulator.admit

    def wrong(tree: Any, f: Any, ratio: Any, chosen: Any):
        return right({**tree, "radio": {**tree["radio"], "link_margin": 1.0}}, f, ratio, chosen)

    patch.setattr(slow_simulator, "admit", wrong)


def other_admission(patch: pytest.MonkeyPatch) -> None:
    right = slow_simulator.admit

    def wrong(tree: Any, f: Any, ratio: Any, chosen: Any):
        rule = {"paper": "largest", "largest": "paper"}[tree["radio"]["admission"]]
        return right({**tree, "radio": {**tree["radio"], "admission": rule}}, f, ratio, chosen)

    patch.setattr(slow_simulator, "admit", wrong)


def drop_all_late_at_once(patch: pytest.MonkeyPatch) -> None:
    def wrong(tree: Any, f: Any, ratio: Any, chosen: Any):
        P0 = 10 ** (tree["radio"]["received_power_dbm"] / 10 - 3) / tree["radio"]["link_margin"]
        left = [tree["system"]["round_s"] - tree["cpu"]["cycles"] / hz for hz in f]
        return [k for k in chosen if slow_simulator.transmission_s(tree, len(chosen), P0 * ratio[k]) <= left[k]]

    patch.setattr(slow_simulator, "admit", wrong)


def no_discount(patch: pytest.MonkeyPatch) -> None:
    def wrong(tree: Any, n: int) -> float:
        return slow_simulator.transmission_s(tree, n, 10 ** (tree["radio"]["received_power_dbm"] / 10 - 3))

    patch.setattr(slow_simulator, "surrogate_s", wrong)


def natural_logarithm(patch: pytest.MonkeyPatch) -> None:
    def wrong(tree: Any, n: int, received_w: float) -> float:
        radio = tree["radio"]
        rate = (
            radio["bandwidth_hz"] / n * math.log(1 + n * received_w / radio["bandwidth_hz"] / radio["noise_w_per_hz"])
        )
        return radio["update_bits"] / rate if rate > 0 else math.inf

    patch.setattr(slow_simulator, "transmission_s", wrong)


def not_divided_by_the_mean(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slow_simulator, "centred", lambda counts: [c - sum(counts) / len(counts) for c in counts])


def energy_without_radio(patch: pytest.MonkeyPatch) -> None:
    cpu = "cpu"
    patch.setattr(
        slow_simulator,
        "surrogate_j",
        lambda tree, view, k, n: tree[cpu]["power_coefficient"] * tree[cpu]["cycles"] * view["f"][k] ** 2,
    )


def misreads(**readings: str) -> Patch:
    """Takes another reading of the paper than run.json says."""

    def patch(patch: pytest.MonkeyPatch) -> None:
        allowed, distance = slow_simulator.may_be_scheduled, slow_simulator.distance

        def as_read(tree: Any) -> Any:
            return {**tree, "data": {**tree["data"], **readings}}

        patch.setattr(slow_simulator, "may_be_scheduled", lambda tree, view, k: allowed(as_read(tree), view, k))
        patch.setattr(slow_simulator, "distance", lambda tree, *rest: distance(as_read(tree), *rest))

    return patch


def dissimilar_at_once(patch: pytest.MonkeyPatch) -> None:
    """Forgets that round 1 has no dissimilarity."""
    right = slow_simulator.distance
    patch.setattr(slow_simulator, "distance", lambda tree, t, used, fresh: right(tree, t + 1, used, fresh))


# Nobody meets the deadline with such a margin, so that nothing is ever used.
NOTHING_USED = {"policy__size": 1, "radio__link_margin": 1e6}

CASES: list[tuple[Patch, dict[str, Any], set[str]]] = [
    (second_best, {}, {"scheduled"}),
    (second_best, {"policy__cardinality": "cap"}, {"scheduled"}),
    (second_best, {"policy__cardinality": "free", "system__energy_budget_j": 0.1}, {"scheduled", "planned"}),
    (second_best, {"policy__V": math.inf}, {"scheduled"}),
    (positive_scores_too, {"policy__cardinality": "cap", "policy__V": 0.005}, {"scheduled"}),
    (free_at_full_size, {"policy__cardinality": "free", "policy__V": 0.005}, {"planned"}),
    (no_margin, {"policy__size": 5}, {"transmitted"}),
    (no_margin, {"policy__size": 5, "radio__admission": "largest"}, {"transmitted"}),
    (other_admission, {"policy__size": 5, "radio__rate_discount": 3.0}, {"transmitted"}),
    (
        other_admission,
        {"policy__size": 5, "radio__rate_discount": 3.0, "radio__admission": "largest"},
        {"transmitted"},
    ),
    (drop_all_late_at_once, {"policy__size": 5, "radio__rate_discount": 3.0}, {"transmitted"}),
    (no_discount, {}, {"feasible", "score"}),
    (natural_logarithm, {}, {"feasible", "score", "t_tr_s", "transmitted"}),
    (not_divided_by_the_mean, {}, {"dissimilarity"}),
    (energy_without_radio, {}, {"score"}),
    (misreads(eligible="with_data"), {}, {"available"}),
    (misreads(eligible="any"), {"data__eligible": "with_data"}, {"available"}),
    (misreads(empty_fresh="vector"), {}, {"dissimilarity"}),
    (misreads(empty_fresh="zero"), {"data__empty_fresh": "vector"}, {"dissimilarity"}),
    (misreads(empty_used="vector"), NOTHING_USED, {"dissimilarity"}),
    (misreads(empty_used="zero"), {"data__empty_used": "vector", **NOTHING_USED}, {"dissimilarity"}),
    (dissimilar_at_once, {"data__empty_used": "vector"}, {"dissimilarity"}),
]


@pytest.mark.parametrize(("patch", "changes", "fields"), CASES)
def test_a_wrong_rule_is_seen(
    patch: Patch, changes: dict[str, Any], fields: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = scenario(system__rounds=40, **changes)
    assert verify(simulate(tree, seed=5).save(tmp_path / "right")).ok
    patch(monkeypatch)
    found = verify(simulate(tree, seed=5).save(tmp_path / "wrong")).disagreement
    assert found is not None
    assert found.field in fields
