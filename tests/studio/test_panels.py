"""Beside the curves: scores with the cut-off, a device's history, marks of changes, pictures, comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from builders import small, to_run
from small_plans import in_process, two_arms

from feelstream.policies import POLICIES
from feelstream.run import Change, simulate
from feelstream.studio import bars, charts, details, maps
from feelstream.studio.lanes import LiveLane, StoredLane, by_seed, stored_runs
from feelstream.studio.session import Session
from feelstream.studio.views import ranking_of


def played(*overrides: str, rounds: int = 6, changes=()) -> LiveLane:
    lane = LiveLane("lane", small(*overrides), 3, changes)
    for _ in range(rounds):
        lane.step()
    return lane


def test_the_scheduled_stand_on_their_side_of_the_cut_off_and_bars_add_up_to_the_score() -> None:
    lane = played("system.energy_budget_j=0.02", "policy.V=0.01")
    for round in range(1, 7):
        view = lane.view(round)
        ranking = ranking_of(view)
        assert ranking is not None
        assert view.devices is not None
        assert view.scene is not None
        options = bars.scores(ranking, view.scene.decision.schedule, False)
        json.dumps(options, allow_nan=False)
        *terms, sums = options["series"]
        cut = sums["markLine"]["data"][0]["xAxis"]
        for at, (total, name) in enumerate(sums["data"]):
            device = int(name.split()[1])
            assert total == pytest.approx(view.devices["score"][device], rel=1e-3, abs=1e-12)
            assert sum(term["data"][at] for term in terms) == pytest.approx(total, rel=1e-2, abs=1e-6)
            assert total <= cut if view.devices["scheduled"][device] else total >= cut - 1e-3 * abs(cut)
        assert [total for total, _ in sums["data"]] == sorted(total for total, _ in sums["data"])


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_has_a_panel_of_scores_or_none(name: str) -> None:
    view = played(*to_run(name), f"policy.name={name}", rounds=3).view(3)
    ranking = ranking_of(view)
    if ranking is not None:
        assert view.scene is not None
        json.dumps(bars.scores(ranking, view.scene.decision.schedule, True), allow_nan=False)


def test_the_history_of_a_device_is_that_of_the_trace_live_and_stored() -> None:
    changes = [Change(4, "system.energy_budget_j", "0.02")]
    run, live = simulate(small(), 3, changes=changes), played(rounds=8, changes=changes)
    assert run.devices is not None
    for device in (0, 5):
        rows = run.devices.filter(run.devices["device"] == device)
        past = live.history(device)
        assert past == StoredLane("stored", run).history(device)
        assert past.rounds == list(range(1, 9))
        assert past.queue_j == rows["queue_next_j"].to_list()
        assert past.spent_j == pytest.approx(np.cumsum((rows["e_cmp_j"] + rows["e_tr_j"]).to_numpy()))
        assert past.granted_j == pytest.approx(np.cumsum([5e-4] * 3 + [0.02] * 5))
        assert past.turns == rows["scheduled"].to_list()
        for what in ("queue_j", "spent_j", "stored"):
            options = bars.history([(0, "lane", past)], what, 8, 5, False)
            json.dumps(options, allow_nan=False)
            assert [round for round, _ in options["series"][0]["data"]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "overrides",
    [("policy.name=update_norm", *to_run("update_norm")), ("costs.download_bits=1e6", "costs.receive_power_w=0.3")],
    ids=["reports", "downloads"],
)
def test_reports_and_downloads_are_among_what_a_device_spent(overrides: tuple[str, ...]) -> None:
    run, live = simulate(small(*overrides), 3), played(*overrides, rounds=8)
    spent_j = 6 * run.rounds["energy_mean_j"].to_numpy()  # of all devices
    for lane in (live, StoredLane("stored", run)):
        assert np.sum([lane.history(device).spent_j for device in range(6)], axis=0) == pytest.approx(spent_j.cumsum())
        shown = [details.facts(lane.view(8), device)["energy spent"] for device in range(6)]
        assert sum(float(text.split()[0]) for text in shown) == pytest.approx(1e3 * spent_j[-1], rel=0.01)


def test_a_change_is_marked_on_every_chart_by_round_with_budgets_in_mj() -> None:
    lane = played(changes=[Change(3, "policy.V", "0.5"), Change(5, "system.energy_budget_j", "0.02")])
    curve = charts.curves([lane, lane], "queue_mean_j", 2, False)
    for options in (curve, maps.timeline(lane, 0, 2, None, False)):
        marked = [line for line in options["series"][0]["markLine"]["data"] if "label" in line]
        assert [(line["xAxis"], line["label"]["formatter"]) for line in marked] == [
            (3, "V = 0.5"),
            (5, "budget = 20 mJ"),
        ]


def test_the_map_says_in_words_what_a_device_has_and_where_its_colours_end() -> None:
    lane = played()
    view = lane.view(6)
    options = maps.device_map(view, 0.7339, 50.0, 2, False)
    assert options["visualMap"]["text"] == ["734 mJ", "queue 0"]
    assert options["visualMap"]["max"] == 734
    for point in options["series"][0]["data"]:
        words = point["tooltip"]["formatter"]
        assert f"<b>{point['name']}</b>" in words
        assert "mJ" in words
        assert "stored" in words
        assert "dB" in words
    numbered = [point["label"]["formatter"] for ring in options["series"][2:4] for point in ring["data"]]
    assert view.devices is not None
    assert sorted(map(int, numbered)) == view.devices["device"][view.chosen].tolist()
    assert options["series"][4]["data"][0]["symbol"] == "rect"  # no ring, which those who were dropped have
    # The server is in the middle, nobody nearer than it, and the circles are at even numbers of dB.
    middle, outermost = options["radiusAxis"]["min"], options["radiusAxis"]["max"]
    assert options["series"][5]["data"][0]["value"][0] == middle
    losses = [point["value"][0] for point in options["series"][0]["data"]]
    assert middle < min(losses) <= max(losses) <= outermost
    assert middle % 2 == outermost % 2 == 0


def test_tooltips_name_the_round() -> None:
    lane = played()
    past = lane.history(0)
    for options in (
        charts.curves([lane], "accuracy", 6, False),
        maps.timeline(lane, 0, 6, None, False),
        bars.history([(0, "lane", past)], "stored", 8, 5, False),
    ):
        label = options["xAxis"]["axisPointer"]["label"]
        assert (label["formatter"], label["precision"]) == ("round {value}", 0)


def test_a_chart_begins_again_where_series_are_others_and_not_for_another_round() -> None:
    """Else ECharts would keep what it was not told of."""
    lane = played()
    one, later, two = (
        charts.outline(charts.curves(lanes, "energy_mean_j", shown, False))
        for lanes, shown in (([lane], 2), ([lane], 6), ([lane, lane], 6))
    )
    assert one == later != two
    assert charts.outline({"series": [], "legend": {}}) != charts.outline({"series": []})


def test_for_a_talk_a_legend_of_two_lines_has_room() -> None:
    lane = played()
    view = lane.view(6)
    ranking = ranking_of(view)
    assert ranking is not None
    assert view.scene is not None
    options = bars.scores(ranking, view.scene.decision.schedule, False)
    larger = charts.enlarged(options)
    assert larger["grid"]["top"] == 2 * options["grid"]["top"]
    assert larger["legend"]["textStyle"]["fontSize"] > options["legend"]["textStyle"]["fontSize"]


def test_a_picture_names_its_axes_and_explains_every_curve_and_nothing_else() -> None:
    lane = played()
    picture = charts.for_export(charts.curves([lane], "energy_mean_cum_j", 6, False), "t", False, ("round", "mJ"))
    assert (picture["xAxis"]["name"], picture["yAxis"]["name"]) == ("round", "mJ")
    assert [each["name"] for each in picture["legend"]["data"]] == ["lane", "budget"]
    assert all(each["itemStyle"] == {"opacity": 0} for each in picture["legend"]["data"])  # lines without points
    empty = charts.for_export(charts.curves([lane], "accuracy", 6, False), "t", False, ("round", "%"))
    assert "legend" not in empty  # engine none: there is no curve to explain
    marks = charts.for_export(maps.timeline(lane, 0, 6, None, False), "t", False, ("round", "device"))
    assert marks["legend"]["data"] == [{"name": "sent"}]


def test_a_comparison_opens_with_a_lane_for_each_policy_and_a_choice_of_seeds(tmp_path: Path) -> None:
    in_process(two_arms((3, 4), "system.rounds=5"), tmp_path)
    seeds = by_seed(stored_runs(tmp_path))
    assert {seed: list(runs) for seed, runs in seeds.items()} == {3: ["ours", "random"], 4: ["ours", "random"]}
    session = Session([tmp_path])
    assert session.race.wait(lambda race: race.ready)
    assert [(lane.label, lane.seed) for lane in session.race.lanes] == [("ours", 3), ("random", 3)]
    session.race.jump(2)
    session.selected = 1
    session.choose_seed(4)
    assert session.race.wait(lambda race: race.ready)
    assert [(lane.label, lane.seed) for lane in session.race.lanes] == [("ours", 4), ("random", 4)]
    assert (session.seed, session.selected, session.race.shown) == (4, 1, 2)
    session.close()
    assert list(by_seed(stored_runs(seeds[3]["ours"]))) == [None]  # a run by itself has no seeds to choose from
