"""The protocols of the leaderboard: each table from numbers that are known, and the gap to the bound from real runs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from compared import spread, summary_of
from small_plans import in_process

from feelstream.experiment import Plan, comparison
from feelstream.experiment.hindsight import bound_of
from feelstream.scenario.files import preset
from feelstream_studies.leaderboard import protocols
from feelstream_studies.leaderboard.entries import most_in_a_round

SMALL = ("data.dataset=synthetic", "system.rounds=6", "system.devices=6")


def board() -> protocols.Summaries:
    """Three policies: one cheap that keeps every budget, one that keeps the mean only, one dear."""
    values = {
        "thrifty": {"late_accuracy": spread(0.88, 0.01), "energy_over_budget": spread(0.8, 0.01)},
        "uneven": {"late_accuracy": spread(0.9, 0.01), "energy_over_budget": spread(0.9, 0.01)},
        "dear": {"late_accuracy": spread(0.92, 0.01), "energy_over_budget": spread(9.0, 0.01)},
    }
    for name, over, worst, joules in (
        ("thrifty", 0.0, 0.95, 0.02),
        ("uneven", 0.1, 1.4, 0.03),
        ("dear", 1.0, 10.0, 0.2),
    ):
        values[name]["energy_j"] = spread(joules / 20, 1e-5)
        values[name] |= {"accuracy_area": spread(0.7, 0.01), "devices_over_budget": [over] * 5}
        values[name] |= {"worst_device": [worst] * 5, "joules_to_80": spread(joules, 1e-4), "rounds_to_80": [20.0] * 5}
        values[name]["reached_80"] = [1.0] * 5 if name != "uneven" else [1.0, 1.0, 1.0, 1.0, 0.0]
    plan, _, summary = summary_of(values)
    return {("paper", "any"): (len(plan.seeds), summary)}


def test_only_policies_that_keep_every_budget_are_within_it() -> None:
    ((seeds, summary),) = board().values()
    kept, dear = protocols.under_budget(seeds, summary)
    assert ([row[0] for row in kept], [row[0] for row in dear]) == (["`thrifty`"], ["`dear`"])


def test_the_page_opens_with_the_winners() -> None:
    ((_, summary),) = board().values()
    found = protocols.leaders(summary)
    assert (found["kept"], found["first"], found["best"]) == (["thrifty"], ["thrifty"], ["dear"])
    assert (found["behind"], found["times"]) == (pytest.approx(4.0), pytest.approx(10.0))


def test_the_cost_is_that_of_policies_that_got_there_with_every_seed() -> None:
    ((seeds, summary),) = board().values()
    assert [row[:2] for row in protocols.cost_to_target(seeds, summary)] == [["`thrifty`", "80"], ["`dear`", "80"]]


def test_robustness_is_the_worst_board() -> None:
    (first,) = board().values()
    rows = protocols.robustness({("a", "any"): first, ("b", "any"): first})
    assert [row[0] for row in rows] == ["`dear`", "`uneven`", "`thrifty`"]
    assert rows[-1] == ["`thrifty`", "4.0", "0"]


def test_a_tuned_weight_is_one_entry_whatever_its_value() -> None:
    named = [protocols._generic(arm) for arm in ("balanced(price=0.042)", "ocean(V=1e-05)", "lyapunov(V=auto)", "age")]
    assert named == ["balanced(price=…)", "ocean(V=…)", "lyapunov(V=auto)", "age"]


def test_the_gap_to_the_bound_is_that_of_every_run(tmp_path: Path) -> None:
    first = Plan("board", comparison.arms("paper-iid", ["random"], SMALL), (0, 1))
    found = protocols.hindsight_plan(first, "paper-iid", SMALL, ["random", "balanced_joint"])
    results = in_process(found, tmp_path)
    gaps = protocols.gaps_in_hindsight(results)
    assert set(gaps) == {"random", "balanced_joint"}
    assert gaps["random"][1] == pytest.approx(bound_of(results.run("random", 1)).gap)
    rows = [{"scenario": "a", "policy": arm, "gap_to_bound": sum(own) / 2} for arm, own in gaps.items()]
    scenarios, shown = protocols.hindsight(pl.DataFrame(rows))
    assert scenarios == ["a"]
    assert shown[0][0] == f"`{min(gaps, key=lambda arm: sum(gaps[arm]))}`"


def test_how_many_fit_a_round() -> None:
    """40 on a band of 1 MHz take 4.2 s of 4 to send alone; at the paper's 15 MHz all have room."""
    assert most_in_a_round(preset("paper-iid")) == 40
    assert 20 < most_in_a_round(preset("stress")) < 34


def test_who_is_as_accurate_to_the_last_digit_shares_the_place() -> None:
    ((_, summary),) = board().values()
    twin = summary.filter(arm="dear").with_columns(arm=pl.lit("twin", dtype=summary.schema["arm"]))
    both = pl.concat([twin, summary])
    assert protocols.alike(both, protocols.most_accurate(both)) == ["twin", "dear"]
