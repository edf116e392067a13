"""Sentences, tables and ECharts options from rounds that were played: right numbers, plain JSON, no NaN."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from builders import small, to_run
from numpy.typing import NDArray

from feelstream.policies import POLICIES
from feelstream.run import Change, simulate
from feelstream.run.explaining import number
from feelstream.scenario.files import preset
from feelstream.studio import charts, maps
from feelstream.studio.board import facts
from feelstream.studio.lanes import LiveLane, StoredLane
from feelstream.studio.views import RoundView, explained, ranking_of, why


def played(*overrides: str, rounds: int = 6, changes=()) -> LiveLane:
    lane = LiveLane("lane", small(*overrides), 3, changes)
    for _ in range(rounds):
        lane.step()
    return lane


def devices_of(view: RoundView) -> dict[str, NDArray]:
    assert view.devices is not None
    return view.devices


def test_the_sentence_names_the_term_that_decided_and_against_whom() -> None:
    lane = played()
    view = lane.view(5)
    devices, chosen = devices_of(view), view.chosen
    sentence = why(view, lane.scenario)
    ids = devices["device"][chosen]
    assert sentence.startswith(f"Devices {ids[0]} and {ids[1]} were scheduled out of ")
    rest = np.where(devices["scheduled"], np.inf, np.nan_to_num(devices["score"], nan=np.inf))
    for at in chosen:
        ahead = f"Device {devices['device'][at]}: It is {number(rest.min() - devices['score'][at])} ahead of"
        assert f"{ahead} device {np.argmin(rest)}, the best that was left out. What decided: " in sentence


def test_whoever_is_merely_cheap_is_not_said_to_have_much_data() -> None:
    """V tells next to nothing here, so energy must be what decided, in every round with queues."""
    lane = played("policy.V=1e-12", "system.energy_budget_j=0.001")
    said = " ".join(why(lane.view(t), lane.scenario) for t in range(3, 7))
    assert set(re.findall(r"What decided: ([^0-9]+) ", said)) == {"energy Q·E"}


def test_a_tie_is_said() -> None:
    """In the first rounds most devices have neither data nor a queue, so that their scores are all 0."""
    lane, ties = LiveLane("lane", preset("tiny", ["learning.engine=none"]), 0), 0
    for _ in range(4):
        lane.step()
        view = lane.view(lane.head)
        devices = devices_of(view)
        left_out = np.nanmin(np.where(devices["scheduled"] | ~devices["feasible"], np.nan, devices["score"]))
        for at in view.chosen:
            said = f"Device {devices['device'][at]}: It ties with device " in why(view, lane.scenario)
            assert said == (devices["score"][at] == left_out)
            ties += said
    assert ties


def test_a_rule_is_said_with_the_policys_size() -> None:
    lane = played("policy.name=round_robin", "policy.size=3")
    assert "`" not in why(lane.view(6), lane.scenario)
    found = explained(played("policy.name=random", "policy.size=3").view(6), 0)
    assert found is not None
    assert "Its rule: 3 feasible devices, all equally likely." in found.text


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_says_why_and_has_a_panel_of_scores_or_none(name: str) -> None:
    lane = played(*to_run(name), f"policy.name={name}")
    for round in range(1, 7):
        sentence = why(lane.view(round), lane.scenario)
        assert sentence.endswith(".")
        assert "nan" not in sentence
        assert sentence.startswith(("Device", "Nobody"))
    view = lane.view(6)
    if (ranking := ranking_of(view)) is not None:
        assert view.scene is not None
        plain(charts.scores(ranking, view.scene.decision.schedule))


def test_a_weight_that_follows_from_the_budget_has_words_too() -> None:
    lane = played("policy.V=auto")
    assert "by the lowest scores (" in why(lane.view(5), lane.scenario)
    view = lane.view(5)
    for at in np.flatnonzero(devices_of(view)["feasible"]):
        explained = facts(view, int(at))
        energy, worth = (float(explained[name].replace("−", "-")) for name in ("energy Q·E", "amount V·I"))
        worth += float(explained["dissimilarity V·I"])
        assert energy - worth == pytest.approx(float(devices_of(view)["score"][at]), rel=0.02, abs=1e-6)


def test_random_draws_nobody_and_dropped_devices_have_words() -> None:
    lane = played("policy.name=random")
    assert "The rule: 2 feasible devices, all equally likely." in why(lane.view(2), lane.scenario)
    lane = played("policy.cardinality=cap", "policy.V=1e-9", "system.energy_budget_j=0")
    assert any("Nobody was scheduled" in why(lane.view(t), lane.scenario) for t in range(2, 7))
    stress = preset("stress", ["learning.engine=none", "data.dataset=synthetic", "system.rounds=20", "policy.size=8"])
    lane = LiveLane("lane", stress, 3)
    for _ in range(20):
        lane.step()
    told = [why(lane.view(t), stress) for t in range(1, 21) if lane.rows[t - 1]["transmitted"] < 8]
    assert told
    assert all("dropped: with this round's channel too late" in sentence for sentence in told)


def plain(options: charts.Options) -> str:
    """As it goes to the page: JSON without NaN, and no code."""
    text = json.dumps(options, allow_nan=False)
    assert "function" not in text
    return text


def test_curves_show_the_rounds_so_far_in_the_frame_of_the_whole_race() -> None:
    lane = played()
    options = charts.curves([lane], "queue_mean_j", 4)
    plain(options)
    assert (options["xAxis"]["min"], options["xAxis"]["max"]) == (1, 8)
    points = options["series"][0]["data"]
    assert [round for round, _ in points] == [1, 2, 3, 4]
    assert [value for _, value in points] == pytest.approx([row["queue_mean_j"] * 1e3 for row in lane.rows[:4]], 1e-3)
    assert options["series"][0]["markLine"]["data"][0]["xAxis"] == 4
    assert charts.curves([lane], "accuracy", 4)["series"][0]["data"] == []  # engine none


def test_the_budget_is_a_step_where_it_changes() -> None:
    lane = played(changes=[Change(3, "system.energy_budget_j", "0.02")])
    budget = charts.curves([lane], "energy_mean_cum_j", 6)["series"][-1]
    assert budget["name"] == "budget"
    assert budget["data"] == [[1, 0.5], [3, 20.0], [8, 20.0]]


def test_a_budget_that_is_far_exceeded_says_by_how_much() -> None:
    lane, strict = played("system.energy_budget_j=0.05"), played("system.energy_budget_j=0.0001")
    label = charts.curves([lane], "energy_mean_cum_j", 6)["series"][-1]["endLabel"]
    assert label["formatter"] == "budget"  # the curve is near, or below
    times = strict.rows[5]["energy_mean_cum_j"] / 1e-4
    assert times > 30
    assert charts.over_budget([strict], 6) == f"over budget, {times:.0f} times"
    first = strict.rows[1]["energy_mean_cum_j"] / 1e-4
    assert charts.over_budget([lane, strict], 2) == f"over budget, {first:.0f} times"
    assert charts.over_budget([strict], 0) == charts.over_budget([strict], 9) == ""


@pytest.mark.slow
def test_long_curves_are_thinned_and_keep_their_end() -> None:
    lane = played("system.rounds=1100", rounds=1100)
    points = charts.curves([lane], "energy_mean_j", 1100)["series"][0]["data"]
    assert len(points) <= charts.MOST_POINTS
    assert points[-1][0] == 1100


def test_the_map_shows_channel_queue_data_and_rings_and_says_them_in_words() -> None:
    view = played().view(6)
    devices = devices_of(view)
    options = maps.device_map(view, 0.7339, float(devices["stored"].max()), 4)
    plain(options)
    stored, fresh, sent, dropped, selected, server = options["series"]
    assert [point["name"] for point in stored["data"]] == [f"device {k}" for k in range(6)]
    loss = [point["value"][0] for point in stored["data"]]
    assert loss == pytest.approx(-10 * np.log10(devices["beta"]), abs=0.01)
    queue = [point["value"][2] for point in stored["data"]]
    assert queue == pytest.approx(devices["queue_j"] * 1e3, rel=1e-3)
    sizes, counts = [point["symbolSize"] for point in stored["data"]], devices["stored"]
    assert np.argsort(sizes, kind="stable").tolist() == np.argsort(counts, kind="stable").tolist()
    assert len(fresh["data"]) == np.count_nonzero(devices["fresh"])
    for point in stored["data"]:
        words = point["tooltip"]["formatter"]
        assert all(said in words for said in (f"<b>{point['name']}</b>", "mJ", "stored", "dB"))
    numbered = [point["label"]["formatter"] for ring in (sent, dropped) for point in ring["data"]]
    assert sorted(map(int, numbered)) == devices["device"][view.chosen].tolist()
    assert [point["name"] for point in selected["data"]] == ["device 4"]
    assert selected["symbol"] == "rect"  # no ring, which those who were dropped have
    assert (options["visualMap"]["text"], options["visualMap"]["max"]) == (["734 mJ", "queue 0"], 734)
    # The server is in the middle, nobody nearer than it, and the circles are at even numbers of dB.
    middle, outermost = options["radiusAxis"]["min"], options["radiusAxis"]["max"]
    assert server["data"][0]["value"][0] == middle < min(loss) <= max(loss) <= outermost
    assert middle % 2 == outermost % 2 == 0


def test_the_timeline_holds_who_was_scheduled_up_to_the_round_shown() -> None:
    lane = played()
    options = maps.timeline(lane, 0, 3, 2)
    plain(options)
    marks = {tuple(mark["value"]) for series in options["series"] for mark in series["data"]}
    views = [(t, lane.view(t)) for t in (1, 2, 3)]
    assert marks == {(t, int(k)) for t, view in views for k in devices_of(view)["device"][view.chosen]}
    assert [line["yAxis"] for line in options["series"][0]["markLine"]["data"]] == [2]


def test_bars_by_label() -> None:
    used = played().view(6).used_labels
    assert used is not None
    options = charts.by_label([("a", used), ("b", np.arange(10))])
    assert [series["data"] for series in options["series"]] == [used.tolist(), list(range(10))]
    assert plain(options)


def test_the_scheduled_stand_on_their_side_of_the_cut_off_and_bars_add_up_to_the_score() -> None:
    lane = played("system.energy_budget_j=0.02", "policy.V=0.01")
    for round in range(1, 7):
        view = lane.view(round)
        ranking = ranking_of(view)
        assert ranking is not None
        assert view.devices is not None
        assert view.scene is not None
        options = charts.scores(ranking, view.scene.decision.schedule)
        json.dumps(options, allow_nan=False)
        *terms, sums = options["series"]
        cut = sums["markLine"]["data"][0]["xAxis"]
        for at, (total, name) in enumerate(sums["data"]):
            device = int(name.split()[1])
            assert total == pytest.approx(view.devices["score"][device], rel=1e-3, abs=1e-12)
            assert sum(term["data"][at] for term in terms) == pytest.approx(total, rel=1e-2, abs=1e-6)
            assert total <= cut if view.devices["scheduled"][device] else total >= cut - 1e-3 * abs(cut)
        assert [total for total, _ in sums["data"]] == sorted(total for total, _ in sums["data"])


def test_the_history_of_a_device_is_that_of_the_trace_live_and_stored() -> None:
    changes = [Change(4, "system.energy_budget_j", "0.02")]
    run, live = simulate(small(), 3, changes=changes), played(rounds=8, changes=changes)
    assert run.devices is not None
    for device in (0, 5):
        rows = run.devices.filter(run.devices["device"] == device)
        past = live.past(device)
        assert past == StoredLane("stored", run).past(device)
        by_column = {name: [row[name] for row in past] for name in past[0]}
        assert by_column["round"] == list(range(1, 9))
        for column in ("queue_next_j", "stored", "scheduled"):
            assert by_column[column] == rows[column].to_list()
        assert by_column["spent_j"] == pytest.approx(np.cumsum((rows["e_cmp_j"] + rows["e_tr_j"]).to_numpy()))
        assert by_column["granted_j"] == pytest.approx(np.cumsum([5e-4] * 3 + [0.02] * 5))
        for what in ("queue_next_j", "spent_j", "stored"):
            options = charts.history([(0, "lane", past)], what, 8, 5)
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
        assert np.sum([[row["spent_j"] for row in lane.past(device)] for device in range(6)], axis=0) == pytest.approx(
            spent_j.cumsum()
        )
        shown = [facts(lane.view(8), device)["energy spent"] for device in range(6)]
        assert sum(float(text.split()[0]) for text in shown) == pytest.approx(1e3 * spent_j[-1], rel=0.01)


def test_a_change_is_marked_on_every_chart_by_round_with_budgets_in_mj() -> None:
    lane = played(changes=[Change(3, "policy.V", "0.5"), Change(5, "system.energy_budget_j", "0.02")])
    curve = charts.curves([lane, lane], "queue_mean_j", 2)
    for options in (curve, maps.timeline(lane, 0, 2, None)):
        marked = [line for line in options["series"][0]["markLine"]["data"] if "label" in line]
        assert [(line["xAxis"], line["label"]["formatter"]) for line in marked] == [
            (3, "V = 0.5"),
            (5, "budget = 20 mJ"),
        ]


def test_tooltips_name_the_round() -> None:
    lane = played()
    past = lane.past(0)
    for options in (
        charts.curves([lane], "accuracy", 6),
        maps.timeline(lane, 0, 6, None),
        charts.history([(0, "lane", past)], "stored", 8, 5),
    ):
        label = options["xAxis"]["axisPointer"]["label"]
        assert (label["formatter"], label["precision"]) == ("round {value}", 0)
