from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from plotly.offline import get_plotlyjs
from report_page import Page
from small_plans import arm, in_process
from small_results import NASTY, played

import feelstream as fs
from feelstream import report
from feelstream.experiment import Arm, Failure, Plan, Results
from feelstream.experiment.runs import of_rounds
from feelstream.report.charts import MOST_SEEDS, curve_chart
from feelstream.report.html import charts, device_maps
from feelstream.report.html.page import origin
from feelstream.terminal.tables import failed


@pytest.fixture(scope="module")
def learned_text(learned_results, tmp_path_factory) -> str:
    return report.write(learned_results, tmp_path_factory.mktemp("learned-report")).report.read_text(encoding="utf-8")


def test_nothing_is_fetched_from_anywhere(paper_output, learned_text):
    for text in ((paper_output / "report.html").read_text(encoding="utf-8"), learned_text):
        page = Page(text)
        for tag, attributes in page.elements:
            assert "src" not in attributes, tag
            link = attributes.get("href")
            if link is not None:
                assert link.startswith(("#", "data:,")) or link == "https://arxiv.org/abs/2305.01238"
        style = re.search(r"<style>(.*?)</style>", text, re.S)
        assert style is not None
        assert "url(" not in style[1]
        assert "@import" not in style[1]
        (packed,) = re.findall(r'<script type="application/octet-stream" id="plotly">(.*?)</script>', text)
        assert gzip.decompress(base64.b64decode(packed)).decode() == get_plotlyjs()


def test_labels_cannot_become_markup(learned_text):
    page = Page(learned_text)
    assert "img" not in {tag for tag, _ in page.elements}
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert "<b>tiny</b>" not in learned_text
    assert NASTY in page.words  # and is still shown as it is
    names = {trace["name"] for chart in page.data["charts"] for trace in chart["traces"]}
    assert not any("<" in name for name in names)  # plotly would read it as HTML


def test_charts_are_valid_plotly_and_show_every_quantity(learned_text):
    found = Page(learned_text).data["charts"]
    assert [chart["title"] for chart in found] == [
        "Test accuracy",  # the opening picture, which does not come again
        "Energy per device",
        "Test loss",
        "Mean energy queue",
        "Largest energy queue",
        "Accuracy at the end of the run against energy",
    ]
    for chart in found:
        go.Figure(data=chart["traces"], layout=chart["layout"])  # raises on anything plotly does not know
    units = [chart["layout"]["yaxis"]["title"]["text"] for chart in found]
    assert [unit.rpartition("(")[2] for unit in units] == ["%)", "mJ per round)", "nat)", "mJ)", "mJ)", "%)"]


def test_lines_are_means_and_seeds_of_the_runs(learned_results, learned_text):
    chart = Page(learned_text).data["charts"][0]
    mean, seeds = (
        next(trace for trace in chart["traces"] if trace["meta"] == {"role": role, "style": 0})
        for role in ("mean", "seeds")
    )
    values = np.array([learned_results.run("lyapunov", seed).rounds["accuracy"] for seed in (0, 1, 2)]) * 100
    np.testing.assert_allclose(mean["y"], values.mean(axis=0), rtol=1e-5)
    assert seeds["visible"] is False
    drawn = np.array([value for value in seeds["y"] if value is not None]).reshape(3, -1)
    np.testing.assert_allclose(drawn, values, rtol=1e-5)


def unpacked(entry: dict, name: str, rounds: int) -> np.ndarray:
    """A map of the page, devices × rounds."""
    packed = entry[name]
    values = np.frombuffer(base64.b64decode(packed["data"]), {"u1": "<u1", "u2": "<u2", "u4": "<u4"}[packed["kind"]])
    return values.reshape(len(entry["device"]), rounds)


def test_device_maps_say_what_the_runs_say(learned_results, learned_text):
    maps = Page(learned_text).data["maps"]
    assert {(entry["arm"], entry["seed"]) for entry in maps} == {(arm, seed) for arm in (0, 1) for seed in (0, 1, 2)}
    entry = next(entry for entry in maps if (entry["arm"], entry["seed"]) == (1, 2))
    run = learned_results.run(NASTY, 2)
    assert run.devices is not None
    status, waiting = (unpacked(entry, name, len(entry["rounds"])) for name in ("status", "waiting"))
    for row in run.devices.iter_rows(named=True):
        k, t = row["device"], row["round"] - 1
        assert (status[k, t] == device_maps.SENT) == row["transmitted"]
        assert (status[k, t] == device_maps.INELIGIBLE) == (not row["feasible"])
        assert waiting[k, t] == row["fresh"]  # tiny counts as fresh what came since the last use
    spent = run.devices.group_by("device").agg(pl.col("e_cmp_j", "e_tr_j").mean()).sort("device")
    np.testing.assert_allclose(entry["computing_mj"], spent["e_cmp_j"] * 1e3, rtol=1e-4)
    np.testing.assert_allclose(entry["sending_mj"], spent["e_tr_j"] * 1e3, rtol=1e-4)


def test_waiting_data_per_round_counts_what_was_never_used(paper_results):
    run = paper_results.run(paper_results.plan.arms[0].label, 0)
    entry = device_maps.device_map(run, 1)
    assert entry is not None
    assert run.devices is not None
    waiting = unpacked(entry, "waiting", 6)
    unused = np.zeros(8, int)
    before = np.zeros(8, int)
    for (t,), table in run.devices.group_by("round", maintain_order=True):
        stored = table["stored"].to_numpy()
        unused += stored - before
        before = stored
        np.testing.assert_array_equal(waiting[:, int(str(t)) - 1], unused)
        unused[table["transmitted"].to_numpy()] = 0


def test_large_maps_are_thinned_and_stay_small():
    scenario = fs.preset(
        "tiny", ["system.devices=300", "system.rounds=500", "learning.engine=none", "data.arrivals.kind=uniform"]
    )
    run = fs.simulate(scenario, 0)
    entry = device_maps.device_map(run, 1)
    assert entry is not None
    assert len(entry["device"]) == device_maps.MOST_DEVICES
    assert (entry["step"], len(entry["rounds"])) == (2, 250)
    status = unpacked(entry, "status", 250)
    sent = run.devices.filter("transmitted", pl.col("device").is_in(entry["device"]))  # type: ignore[union-attr]
    columns = {(entry["device"].index(k), (t - 1) // 2) for k, t in zip(sent["device"], sent["round"], strict=True)}
    assert columns == {tuple(cell) for cell in np.argwhere(status == device_maps.SENT).tolist()}
    assert len(json.dumps(entry)) < 250_000
    assert device_maps.seeds_that_fit(range(100), 20, 40, 40) == tuple(range(18))


def test_long_lines_are_thinned_with_their_ends_kept_and_of_very_many_seeds_the_first_are_drawn():
    rounds, seeds = charts.MOST_POINTS + 100, MOST_SEEDS + 5
    rows = pl.DataFrame({"seed": range(seeds), "arm": "a"}).join(
        pl.DataFrame({"round": range(1, rounds + 1)}), how="cross"
    )
    rows = rows.with_columns(queue_mean_j=1.0 + pl.col("seed") + pl.col("round") / 1000)
    chart = curve_chart("queue_mean_j", [("a", "a")], rows)
    traces = {trace["meta"]["role"]: trace for trace in charts.to_plotly(chart)["traces"]}
    x = traces["mean"]["x"]
    assert (len(x), x[0], x[-1]) == (charts.MOST_POINTS, 1, rounds)
    assert traces["seeds"]["x"].count(None) == MOST_SEEDS
    assert len(traces["seeds"]["x"]) <= charts.MOST_SEED_POINTS + MOST_SEEDS


def test_a_page_that_leaves_seeds_out_says_so(learned_results, learned_text, tmp_path, monkeypatch):
    seeds = len(learned_results.plan.seeds)
    assert seeds > 1
    assert "Show each seed" in learned_text
    monkeypatch.setattr("feelstream.report.html.page.MOST_SEEDS", seeds - 1)
    text = report.write(learned_results, tmp_path).report.read_text(encoding="utf-8")
    assert f"Show the first {seeds - 1} seeds" in text
    assert "Show each seed" not in text


def test_a_single_run_has_a_report(tmp_path):
    fs.simulate(fs.preset("tiny", ["learning.engine=none"]), 7).save(tmp_path / "one")
    results = report.results_in(tmp_path / "one")
    written = report.write(results, tmp_path / "one")
    page = Page(written.report.read_text(encoding="utf-8"))
    assert "one: lyapunov, seed 7" in page.words
    said = " ".join(page.words)
    assert "over seeds" not in said
    assert "Show each seed" not in said
    assert {chart["title"] for chart in page.data["charts"]} == {
        "Energy per device",
        "Mean energy queue",
        "Largest energy queue",
    }


def test_runs_that_were_made_one_by_one_are_seeds_of_their_scenario(tmp_path):
    for name, seed, V in (("a", 0, 0.1), ("b", 1, 0.2), ("c", 1, 0.1)):
        fs.simulate("tiny", seed, V=V, rounds=2, engine="none", out=tmp_path / name)
    results = report.results_in(tmp_path)
    assert results.finished == [("lyapunov V=0.1", 0), ("lyapunov V=0.1", 1), ("lyapunov V=0.2", 1)]
    assert failed(results, played=False) == []
    fs.simulate("tiny", 0, V=0.1, rounds=2, engine="none", out=tmp_path / "again")
    assert [arm.label for arm in report.results_in(tmp_path).plan.arms] == ["a", "again", "b", "c"]
    budgets: dict[str, Any] = {"by device": [0.01 * k for k in range(10)], "for all": 0.05}
    for name, budget_j in budgets.items():
        fs.simulate("tiny", out=tmp_path / "long" / name, energy_budget_j=budget_j, rounds=2, engine="none")
    assert [arm.label for arm in report.results_in(tmp_path / "long").plan.arms] == ["by device", "for all"]


def test_runs_without_device_tables_have_no_maps(tmp_path):
    scenario = fs.preset("tiny", ["learning.engine=none", "trace.level=rounds"])
    results = played(Plan("rounds only", (Arm("a", scenario),), (0, 1)), tmp_path / "runs")
    page = Page(report.write(results, tmp_path / "out").report.read_text(encoding="utf-8"))
    assert page.data["maps"] == []
    assert not any(attributes.get("id") == "map-schedule" for _, attributes in page.elements)


@pytest.mark.slow
def test_missing_runs_are_named(learned_results, tmp_path):
    failure = Failure(NASTY, 2, "the <disk> is gone")
    partial = Results(learned_results.plan, learned_results.directories, [failure])
    words = Page(report.write(partial, tmp_path).report.read_text(encoding="utf-8")).words
    assert f"{NASTY}, seed 2: the <disk> is gone" in words


def test_the_page_opens_with_what_came_out(learned_results, learned_text):
    page = Page(learned_text)
    runs = of_rounds(learned_results.rounds())
    arms = [arm.label for arm in learned_results.plan.arms]
    accuracy = {arm: float(runs.filter(arm=arm)["late_accuracy"].to_numpy().mean()) for arm in arms}
    energy = {arm: float(runs.filter(arm=arm)["energy_j"].to_numpy().mean()) for arm in arms}
    best, least = max(arms, key=accuracy.__getitem__), min(arms, key=energy.__getitem__)
    assert (
        learned_text.index('id="glance"') < learned_text.index('id="leaderboard"') < learned_text.index('id="curves"')
    )
    assert learned_text.index('class="lead"') < learned_text.index('<figure class="chart"')
    words = " ".join(" ".join(page.words).split())
    assert f"{best} is the most accurate, with {accuracy[best] * 100:.1f} %" in words
    assert f"{least} spends the least, " in words
    assert f"Against {arms[0]}, seed by seed" in words


@pytest.mark.slow
def test_a_single_run_has_no_leaderboard(learned_results, tmp_path):
    arm, seed = learned_results.finished[0]
    results = report.results_in(learned_results.directories[arm, seed])
    text = report.write(results, tmp_path).report.read_text(encoding="utf-8")
    assert 'id="leaderboard"' not in text
    assert f"One run of {arm} with " in text
    assert f", seed {seed}." in text
    assert 'id="devices"' in text


def test_the_command_of_a_comparison_is_the_one_that_was_given(learned_results):
    command = "feelstream compare tiny --policy random --seeds 3"
    told = replace(learned_results.plan, command=command)
    assert origin(replace(learned_results, plan=told)).command == command


def test_arms_that_differ_by_orders_of_magnitude_get_a_logarithmic_axis():
    rows = [
        {"arm": arm, "seed": seed, "round": t, "energy_mean_cum_j": energy * (1 + 40 * (seed == 4))}
        for arm, energy in (("a", 1e-3), ("b", 1.0))
        for seed in range(5)
        for t in (1, 2)
    ]
    both = [("a", "a"), ("b", "b")]
    chart = charts.to_plotly(curve_chart("energy_mean_cum_j", both, pl.DataFrame(rows)))
    assert chart["layout"]["yaxis"]["type"] == "log"
    bands = [trace for trace in chart["traces"] if trace["meta"]["role"] == "band"]
    assert min(value for trace in bands for value in trace["y"]) > 0  # an interval that reaches below 0 is cut
    same = [row for row in rows if row["arm"] == "a"]
    idle = [row | {"energy_mean_cum_j": 0.0} if row["round"] == 1 and row["arm"] == "a" else row for row in rows]
    for others in (same, idle):  # of the same size; one that touches 0, for which a logarithmic axis has no place
        chart = charts.to_plotly(curve_chart("energy_mean_cum_j", both, pl.DataFrame(others)))
        assert "type" not in chart["layout"]["yaxis"]


@pytest.mark.parametrize(
    ("budget_j", "name", "drawn"), [(2e-3, "budget", [2.0, 2.0]), (2e-5, "budget: 0.02 mJ, off the axis", [None])]
)
def test_a_budget_far_from_all_curves_is_named_and_not_drawn(budget_j, name, drawn):
    rows = [{"arm": "a", "seed": seed, "round": t, "energy_mean_cum_j": 3e-3} for seed in (0, 1) for t in (1, 2)]
    chart = charts.to_plotly(curve_chart("energy_mean_cum_j", [("a", "a")], pl.DataFrame(rows), budget_j))
    (line,) = [trace for trace in chart["traces"] if trace["meta"]["role"] == "budget"]
    assert (line["name"], line["y"]) == (name, drawn)


def test_below_five_seeds_no_test_is_spoken_of(learned_text):
    words = " ".join(" ".join(Page(learned_text).words).split())
    assert "Fewer than 5 seeds: no verdict." in words
    assert not re.search(r"Holm|t-test|unclear|shades", words)


@pytest.mark.parametrize("seeds", [2, 5])
def test_a_sweep_has_the_field_that_was_varied_on_x(seeds, tmp_path):
    arms = tuple(arm(f"lyapunov V={V:g}", f"policy.V={V}", "system.rounds=3") for V in (0.01, 0.1, 1.0))
    results = in_process(Plan("sweep", arms, tuple(range(seeds))), tmp_path)
    page = Page(report.write(results, tmp_path).report.read_text(encoding="utf-8"))
    assert "Against policy.V" in page.words
    (chart,) = [chart for chart in page.data["charts"] if "against policy.V" in chart["title"]]  # nothing was learned
    line = next(trace for trace in chart["traces"] if trace["meta"]["role"] == "mean")
    assert (line["x"], chart["layout"]["xaxis"]["title"]["text"]) == ([0.01, 0.1, 1.0], "V")
    assert chart["layout"]["xaxis"]["type"] == "log"
    assert line["error_y"]["visible"] == (seeds == 5)
    assert any(trace["meta"]["role"] == "dots" for trace in chart["traces"]) == (seeds == 2)
    means = of_rounds(results.rounds()).group_by("arm", maintain_order=True).agg(pl.col("energy_j").mean())
    assert line["y"] == pytest.approx((means["energy_j"] * 1e3).to_list(), rel=1e-5)


def test_below_five_seeds_there_is_no_band():
    for seeds in (4, 5):
        rows = [
            {"arm": "a", "seed": seed, "round": t, "accuracy": 0.5 + 0.01 * seed}
            for seed in range(seeds)
            for t in (1, 2)
        ]
        chart = charts.to_plotly(curve_chart("accuracy", [("a", "a")], pl.DataFrame(rows)))
        roles = [trace["meta"]["role"] for trace in chart["traces"]]
        assert roles == (["seeds", "mean"] if seeds < 5 else ["band", "seeds", "mean"])
