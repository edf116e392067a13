"""The leaderboard: its words, its plot and the command that makes its page."""

from __future__ import annotations

import re
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
from feelstream.cli.common import out as console
from feelstream.cli.compare import show
from feelstream.experiment import Arm, Plan, Results, comparison, leaderboard
from feelstream.experiment.leaderboard import Point, pareto_points
from feelstream.report.board import table as board
from feelstream.report.board import words as board_words
from feelstream.report.drawing.labels import label_points
from feelstream.report.drawing.pareto import TITLE, log_ticks, pareto_chart, pareto_figure
from feelstream.scenario.files import preset

FEW = ("--policy", "lyapunov", "--policy", "random", "--policy", "select_all")
SHORT = ("--set", "system.rounds=4", "--set", "learning.steps=2")


def summary_of(values: dict[str, dict[str, list[float | None]]]) -> tuple[Plan, pl.DataFrame, pl.DataFrame]:
    """Plan, runs and summary of arms whose values per seed are given."""
    seeds = len(next(iter(next(iter(values.values())).values())))
    arms = tuple(Arm(name, preset("tiny", [f"policy.size={n}"])) for n, name in enumerate(values, start=1))
    plan = Plan("x", arms, tuple(range(seeds)))
    rows = [
        {"arm": arm, "seed": seed} | {quantity: given.get(quantity, [None] * seeds)[seed] for quantity in all_of()}
        for arm, given in values.items()
        for seed in range(seeds)
    ]
    runs = pl.DataFrame(rows, schema={"arm": pl.String, "seed": pl.Int64} | dict.fromkeys(all_of(), pl.Float64))
    return plan, runs, comparison.summarise(Results(plan, {}, []), runs)


def all_of() -> tuple[str, ...]:
    return tuple(leaderboard.MEASURES)


@pytest.fixture
def three():
    return summary_of(
        {
            "dear": {"final_accuracy": [0.9, 0.92], "energy_j": [4e-3, 4e-3], "energy_over_budget": [8.0, 8.0],
                     "rounds_to_80": [10.0, None], "joules_to_80": [0.04, None], "drops": [0.0, 0.0]},
            "random": {"final_accuracy": [0.8, 0.82], "energy_j": [5e-3, 5e-3], "energy_over_budget": [10.0, 10.0],
                       "rounds_to_80": [30.0, 20.0], "joules_to_80": [0.15, 0.1], "drops": [0.02, 0.04]},
            "cheap": {"final_accuracy": [0.3, 0.31], "energy_j": [4e-4, 4e-4], "energy_over_budget": [0.8, 0.8],
                      "drops": [0.0, 0.0]},
        }
    )  # fmt: skip


def test_cells_say_mean_interval_and_how_many_seeds(three):
    _, _, summary = three
    measures = leaderboard.shown(summary)
    assert [measure.quantity for measure in measures] == [
        "final_accuracy", "rounds_to_80", "joules_to_80", "energy_j", "energy_over_budget", "drops",
    ]  # fmt: skip
    # t quantile of one degree of freedom 12.706; s/√2 = 0.01.
    assert leaderboard.cells(summary, "dear", measures, 2)[:4] == [
        "91.00 ± 12.71",
        "10.0 (1/2)",
        "40.00 (1/2)",
        "4.000 ± 0.000",
    ]
    assert leaderboard.cells(summary, "cheap", measures, 2)[1] == "–"


def test_the_front_and_the_words_follow_from_the_numbers(three):
    plan, runs, summary = three
    assert {point.arm: point.on_front for point in pareto_points(summary)} == {
        "dear": True,
        "random": False,
        "cheap": True,
    }
    said = board_words.discussion(plan, runs, summary)
    assert said == [
        "Highest accuracy after the last round: `dear` (91.00 ± 12.71 %); all others are distinguishable from it.",
        "Least energy: `cheap` (0.400 ± 0.000 mJ); all others are distinguishable from it.",
        "On the Pareto front of the means, from the cheapest: `cheap` (0.4 mJ, 30.5 %), `dear` (4 mJ, 91.0 %).",
        "Against `random`, accuracy is better for `dear` and worse for `cheap`; energy is better for `dear`, `cheap` "
        "and worse for none; for the rest it is not distinguishable.",
        "Within the energy budget on average: `cheap`; all others exceed it or may.",
        "1 of 3 policies reached 80 % with every seed; on average in the fewest rounds `random` (25.0), for the least "
        "energy `random` (125 mJ per device).",
        "No policy reached 90 % with any seed.",
        "Admission dropped the largest share under `random`: 3 % of its scheduled devices.",
    ]


def test_without_learning_there_is_no_front_and_no_word_of_accuracy():
    values = {name: {"energy_j": [energy, energy], "drops": [0.0, 0.0]} for name, energy in (("a", 1e-3), ("b", 2e-3))}
    plan, runs, summary = summary_of(values)
    assert board.worlds(plan, summary) == []
    assert board_words.discussion(plan, runs, summary) == [
        "Least energy: `a` (1.000 ± 0.000 mJ); all others are distinguishable from it.",
        "Admission dropped nobody.",
    ]
    assert "accuracy" not in board.markdown_table(plan, summary) + board.html_table(plan, summary)


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
    for measure in leaderboard.shown(summary):
        cell = leaderboard.cells(summary, "lyapunov_joint", [measure], 2)[0]
        assert any(cell in line for line in lines if line.startswith(" lyapunov_joint "))


def test_the_chart_is_valid_plotly_and_the_figure_takes_odd_values():
    points = [Point(NASTY, 0.0, None, 50.0, None, True), Point("$x_$", 90.0, 5.0, 99.9, 3.0, True)]
    chart = pareto_chart(points)
    go.Figure(data=chart["traces"], layout=chart["layout"])
    assert not any("<" in trace["name"] for trace in chart["traces"])
    pareto_figure(points)


def test_the_leaderboard_command_makes_its_page(tmp_path: Path):
    done = CliRunner().invoke(
        cli.app,
        ["leaderboard", "tiny", *FEW, *SHORT, "--seeds", "2", "--workers", "2", "--out", str(tmp_path / "out"),
         "--docs", str(tmp_path / "docs")],
        env={"COLUMNS": "160"},
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    text = (tmp_path / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    assert re.search(r"Runs of \d{4}-\d\d-\d\d, 2 seeds", text)
    assert f"feelstream leaderboard tiny --seeds 2 {' '.join(FEW)} {' '.join(SHORT)} --docs docs" in text
    assert "Changed from the scenario: `system.rounds=4`, `learning.steps=2`." in text
    assert len(re.findall(r"^\| `(?:lyapunov|random|select_all)` \|", text, re.M)) == 6
    for picture in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / "docs" / picture).stat().st_size < 200_000
    out = tmp_path / "out" / "tiny"
    summary = pl.read_csv(out / "summary.csv")
    shown = leaderboard.cells(summary, "select_all", leaderboard.shown(summary, "resources"), 2)
    assert " | ".join(shown) in text
    page = (out / "report.html").read_text(encoding="utf-8")
    assert 'id="leaderboard"' in page
    assert TITLE in page


def test_the_board_is_of_scenarios_that_exist():
    for name, changes in leaderboard.BOARD.items():
        scenario = preset(name, changes)
        assert scenario.system.rounds % scenario.learning.eval_every == 0
