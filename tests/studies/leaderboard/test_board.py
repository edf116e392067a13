"""The leaderboard: its words, its plot and the command that makes its page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from small_results import NASTY
from typer.testing import CliRunner

from feelstream import cli
from feelstream.experiment import Arm, Plan, Results, comparison, statistics, tuning
from feelstream.experiment.measures import cells, measured
from feelstream.experiment.ranking import Point, pareto_points, verdicts
from feelstream.quantities import QUANTITIES
from feelstream.report import comparison as board
from feelstream.report.drawing.energy_axis import energy_axis, log_ticks
from feelstream.report.drawing.labels import label_points
from feelstream.report.drawing.pareto import TITLE, axis_of, pareto_chart, pareto_figure
from feelstream.scenario.files import preset
from feelstream.studies.leaderboard import words as board_words
from feelstream.studies.leaderboard.entries import BOARD, entries
from feelstream.terminal.common import out as console
from feelstream.terminal.comparing import show

FEW = ("--policy", "lyapunov", "--policy", "random", "--policy", "select_all")
SHORT = ("--set", "system.rounds=4", "--set", "learning.steps=2")


def summary_of(values: Mapping[str, Mapping[str, Sequence[float | None]]]) -> tuple[Plan, pl.DataFrame, pl.DataFrame]:
    """Plan, runs and summary of arms whose values per seed are given."""
    seeds = len(next(iter(next(iter(values.values())).values())))
    arms = tuple(Arm(name, preset("tiny", [f"policy.V={n}.0"])) for n, name in enumerate(values, start=1))
    plan = Plan("x", arms, tuple(range(seeds)))
    rows = [
        {"arm": arm, "seed": seed} | {quantity: given.get(quantity, [None] * seeds)[seed] for quantity in all_of()}
        for arm, given in values.items()
        for seed in range(seeds)
    ]
    runs = pl.DataFrame(rows, schema={"arm": pl.String, "seed": pl.Int64} | dict.fromkeys(all_of(), pl.Float64))
    return plan, runs, comparison.summarise(Results(plan, {}, []), runs)


def all_of() -> tuple[str, ...]:
    return tuple(quantity.name for quantity in QUANTITIES.values() if quantity.table == "runs")


def spread(mean: float, step: float) -> list[float | None]:
    """Five seeds around a mean."""
    return [mean + step * offset for offset in (-2, -1, 0, 1, 2)]


@pytest.fixture
def three():
    return summary_of(
        {
            "dear": {"late_accuracy": spread(0.91, 0.01), "energy_j": spread(4e-3, 1e-5),
                     "energy_over_budget": spread(8.0, 0.1), "rounds_to_80": [10.0, 40.0, 40.0, 40.0, 40.0],
                     "joules_to_80": spread(0.04, 0.01), "reached_80": [1.0, 0.0, 0.0, 0.0, 0.0],
                     "reached_90": [0.0] * 5, "rounds_to_90": [40.0] * 5, "drops": [0.0] * 5},
            "random": {"late_accuracy": spread(0.81, -0.01), "energy_j": spread(5e-3, 2e-5),
                       "energy_over_budget": spread(10.0, 0.2), "rounds_to_80": spread(25.0, 1.0),
                       "joules_to_80": spread(0.125, 0.01), "reached_80": [1.0] * 5, "reached_90": [0.0] * 5,
                       "rounds_to_90": [40.0] * 5, "drops": spread(0.03, 0.001)},
            "cheap": {"late_accuracy": spread(0.3, 0.02), "energy_j": spread(4e-4, 3e-6),
                      "energy_over_budget": spread(0.8, 0.01), "reached_80": [0.0] * 5, "rounds_to_80": [40.0] * 5,
                      "joules_to_80": [0.016] * 5, "reached_90": [0.0] * 5, "rounds_to_90": [40.0] * 5,
                      "drops": [0.0] * 5},
        }
    )  # fmt: skip


def test_cells_say_mean_interval_and_how_many_seeds_got_there(three):
    _, _, summary = three
    measures = measured(summary)
    assert [measure.name for measure in measures] == [
        "late_accuracy", "rounds_to_80", "joules_to_80", "rounds_to_90", "energy_j", "energy_over_budget", "drops",
    ]  # fmt: skip
    # t quantile of four degrees of freedom 2.776; s/√5 = 0.01 √(10/4/5) = 0.00707.
    assert cells(summary, "dear", measures, 5)[:4] == [
        "91.00 ± 1.96",
        "≥ 34.0 ± 16.7 (1/5)",
        "≥ 40.00 ± 19.63 (1/5)",
        "never",
    ]
    assert cells(summary, "random", measures, 5)[1] == "25.0 ± 2.0"
    assert cells(summary, "cheap", measures, 5)[1] == "never"


def test_the_front_and_the_words_follow_from_the_numbers(three):
    plan, runs, summary = three
    assert {point.arm: point.on_front for point in pareto_points(summary)} == {
        "dear": True,
        "random": False,
        "cheap": True,
    }
    said = board_words.discussion(plan, runs, summary)
    assert said == [
        "Highest accuracy at the end: `dear` (91.00 ± 1.96 %); all others are distinguishable from it.",
        "Least energy: `cheap` (0.400 ± 0.006 mJ); all others are distinguishable from it.",
        "On the Pareto front of the means, from the cheapest: `cheap` (0.4 mJ, 30.0 %), `dear` (4 mJ, 91.0 %).",
        "Against `random`, accuracy is better for `dear` and worse for `cheap`; energy is better for `dear`, `cheap` "
        "and worse for none; for the rest no difference is certain.",
        "Within the energy budget on average: `cheap`; all others exceed it or may.",
        "1 of 3 policies reached 80 % with every seed; on average in the fewest rounds `random` (25.0), for the least "
        "energy `random` (125 mJ per device).",
        "No policy reached 90 % with any seed.",
        "Admission dropped the largest share under `random`: 3 % of its scheduled devices.",
    ]


def test_verdicts_are_corrected_for_their_number_and_some_are_withheld():
    """Twenty arms whose lead is significant by itself (t = 3.5): none survives Holm's correction, a clear one does."""
    lead = [0.31, 0.04, 0.12, 0.31, 0.02]
    base = {"late_accuracy": [0.5] * 5}
    small = {f"a{n}": {"late_accuracy": [0.5 + x / 2 + 0.03 for x in lead]} for n in range(20)}
    large = {"b": {"late_accuracy": spread(0.9, 0.001)}}
    constant = {"c": {"late_accuracy": [0.7] * 5}, "d": {"late_accuracy": [0.5] * 5}}
    _, runs, _ = summary_of({"random": base, **small, **large, **constant})
    said = verdicts(runs, "late_accuracy", "random", ["random", *small, "b", "c", "d"])
    assert statistics.compare_arms(runs, "late_accuracy", "a0", "random").verdict == statistics.HIGHER
    assert {said[arm] for arm in small} == {statistics.NOT_DISTINGUISHABLE}
    assert (said["b"], said["c"], said["d"]) == (
        statistics.HIGHER,
        statistics.NO_SPREAD,
        statistics.NOT_DISTINGUISHABLE,
    )
    few = runs.filter(pl.col("seed") < 4)
    assert set(verdicts(few, "late_accuracy", "random", ["b"]).values()) == {statistics.FEW_SEEDS}


def test_without_learning_there_is_no_front_and_no_word_of_accuracy():
    values = {name: {"energy_j": spread(e, 1e-5), "drops": [0.0] * 5} for name, e in (("a", 1e-3), ("b", 2e-3))}
    values["b"]["energy_j"] = spread(2e-3, 3e-5)
    plan, runs, summary = summary_of(values)
    assert board.worlds(plan, summary) == []
    assert board_words.discussion(plan, runs, summary) == [
        "Least energy: `a` (1.000 ± 0.020 mJ); all others are distinguishable from it.",
        "Admission dropped nobody.",
    ]
    assert "accuracy" not in board.markdown_table(plan, summary) + board.comparison_section(plan, summary).html


@pytest.mark.parametrize("spread", [1.0, 0.05])
def test_names_cover_neither_each_other_nor_points(spread):
    rng = np.random.default_rng(1)
    points = [(float(x), float(y)) for x, y in 0.5 + spread * rng.uniform(-0.5, 0.5, (15, 2))]
    figure = Figure(figsize=(7, 4), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot(*np.transpose(points), "o")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    notes = label_points(figure, axes, points, [f"policy_number_{n}" for n in range(15)], size_pt=6.5)
    figure.draw_without_rendering()
    boxes = [note.get_window_extent(canvas.get_renderer()) for note in notes]
    for a, b in combinations(boxes, 2):
        assert not a.overlaps(b)
    for box in boxes:
        assert not any(box.contains(*axes.transData.transform(point)) for point in points)


def test_a_name_keeps_off_the_bars_of_its_point():
    figure = Figure(figsize=(7, 4), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    bars = [((0.0, 0.5), (1.0, 0.5)), ((0.5, 0.0), (0.5, 1.0))]
    (note,) = label_points(figure, axes, [(0.5, 0.5)], ["a_rather_long_name"], 6.5, bars)
    box = note.get_window_extent(canvas.get_renderer())
    x, y = axes.transData.transform((0.5, 0.5))
    assert box.x0 > x
    assert box.y0 > y


def test_ticks_of_a_logarithmic_axis():
    assert log_ticks(0.9, 21) == [1, 2, 5, 10, 20]
    assert log_ticks(0.5, 400) == [1, 10, 100]


def test_an_arm_that_spends_nothing_has_a_place_on_a_logarithmic_axis():
    """Seventeen names, energies over four decades, and one arm without any."""
    energies = [0.0, *np.geomspace(0.02, 700.0, 16)]
    points = [Point(f"policy_number_{n}", e, 0.1 * e, 60.0 + n, 1.0, True) for n, e in enumerate(energies)]
    axis = axis_of(points)
    assert axis.logarithmic
    assert axis.break_at is not None
    assert axis.low < axis.place(0.0) < axis.break_at < 0.02 < 700 < axis.high
    assert [text for _, text in axis.ticks] == ["0", "0.1", "1", "10", "100", "1000"]
    chart = pareto_chart(points)
    ours = [trace for trace in chart["traces"] if trace["name"].startswith("policy")]
    places = [trace["x"][0] for trace in ours]
    assert places == sorted(set(places))
    assert min(places) > 0
    assert ours[0]["customdata"][0][2] == 0  # what is told on hovering
    figure = pareto_figure(points)
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts if text.get_text()]
    assert len(boxes) == 17
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


@pytest.mark.parametrize("energies", [[0.0], [0.0, 0.0], [0.0, 5.0], [0.0, 1.0, 2.0]])
def test_without_a_wide_span_the_axis_is_linear_and_begins_at_zero(energies: list[float]):
    axis = energy_axis(energies, [None] * len(energies))
    assert not axis.logarithmic
    assert axis.low == 0 == axis.place(0.0)
    assert axis.high > max(energies)


def test_a_front_of_one_point_is_no_line():
    alone = [Point("best", 1.0, 0.1, 90.0, 1.0, True), Point("worse", 20.0, 30.0, 80.0, 1.0, False)]
    chart = pareto_chart(alone)
    assert [trace["name"] for trace in chart["traces"]] == ["best", "worse"]
    assert [trace["textposition"] for trace in chart["traces"]] == ["top right", "top left"]
    assert chart["layout"]["xaxis"]["ticktext"] == ["1", "2", "5", "10", "20", "50"]
    assert "Pareto front" not in pareto_figure(alone).axes[0].get_legend_handles_labels()[1]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_terminal_cuts_neither_names_nor_numbers(columns, monkeypatch, capsys):
    plan, _, summary = summary_of(
        {
            name: {quantity: [50.0, 51.0 + n] for quantity in all_of()}
            for n, name in enumerate(("lyapunov_joint", "random"))
        }
    )
    monkeypatch.setattr(console, "_width", columns)
    show(summary, plan)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    for measure in measured(summary):
        cell = cells(summary, "lyapunov_joint", [measure], 2)[0]
        assert any(cell in line for line in lines if line.startswith(" lyapunov_joint "))


def test_the_chart_is_valid_plotly_and_the_figure_takes_odd_values():
    points = [Point(NASTY, 0.0, None, 50.0, None, True), Point("$x_$", 90.0, 5.0, 99.9, 3.0, True)]
    chart = pareto_chart(points)
    go.Figure(data=chart["traces"], layout=chart["layout"])
    assert not any("<" in trace["name"] for trace in chart["traces"])
    pareto_figure(points)


@pytest.mark.slow
def test_the_leaderboard_command_makes_its_page(tmp_path: Path):
    done = CliRunner().invoke(
        cli.app,
        ["leaderboard", "tiny", *FEW, *SHORT, "--seeds", "2", "--workers", "2", "--out", str(tmp_path / "out"),
         "--eligible", "any", "--docs", str(tmp_path / "docs")],
        env={"COLUMNS": "160"},
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    text = (tmp_path / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    assert re.search(r"Runs of \d{4}-\d\d-\d\d, 2 seeds", text)
    assert f"feelstream leaderboard tiny --seeds 2 --eligible any {' '.join(FEW)} {' '.join(SHORT)} --docs docs" in text
    assert "Changed from the scenario: `data.eligible=any`, `system.rounds=4`, `learning.steps=2`." in text
    assert len(re.findall(r"^\| `(?:lyapunov|random|select_all)` \|", text, re.M)) == 6
    for picture in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / "docs" / picture).stat().st_size < 200_000
    out = tmp_path / "out" / "tiny-any"
    summary = pl.read_csv(out / "summary.csv")
    shown = cells(summary, "select_all", measured(summary, "resources"), 2)
    assert " | ".join(shown) in text
    page = (out / "report.html").read_text(encoding="utf-8")
    assert 'id="leaderboard"' in page
    assert TITLE in page


@pytest.mark.slow
def test_the_leaderboard_as_json_is_all_that_is_printed(tmp_path: Path):
    words = ["leaderboard", "tiny", "--policy", "lyapunov", "--policy", "random", "--set", "learning.engine=none"]
    words += [*SHORT, "--seeds", "2", "--workers", "2", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [each["eligible"] for each in told["boards"]] == ["any", "with_data"]
    for each in told["boards"]:
        assert {row["arm"] for row in each["summary"]} == {"lyapunov", "random"}
        assert each["failures"] == []
        assert Path(each["report"]).is_file()
    assert told["docs"] is None


def test_the_board_is_of_scenarios_that_exist():
    for name, changes in BOARD.items():
        scenario = preset(name, changes)
        assert scenario.system.rounds % scenario.learning.eval_every == 0


@pytest.mark.slow
def test_a_board_enters_variants_and_weights_at_equal_energy():
    """The weight found for `balanced` makes it spend what `lyapunov` does, within what two digits can say."""
    few = ["data.dataset=synthetic", "system.rounds=10", "system.devices=10", "learning.engine=none"]
    entered = entries("paper-iid", few)
    assert entered[0] == "all"
    assert "fedcs(size=10)" in entered
    (found,) = re.findall(r"balanced\(price=([^)]+)\)", " ".join(entered))
    weight = float(found)
    spent = {
        policy: tuning.energy_j(preset("paper-iid", [*few, *policy]), tuning.TUNING_SEEDS)
        for policy in ((), ("policy.name=balanced", f"policy.price={weight}"))
    }
    first, second = spent.values()
    assert 0.8 < first / second < 1.25
    comparison.arms("paper-iid", entered, few)
