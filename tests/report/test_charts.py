"""What a reader would stumble over, for results of every size, on paper and on pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from small_results import NASTY

import feelstream as fs
from feelstream.display.chart import limits_of
from feelstream.display.picture import figure_of, legend_below
from feelstream.display.quantities import QUANTITIES
from feelstream.errors import FeelstreamError
from feelstream.experiment.measures import Point
from feelstream.report.charts import pareto_chart
from feelstream.report.figures import FRONT
from feelstream.report.html.charts import to_plotly

QUICK: Any = {"workers": 1, "rounds": 3}
LONG = "a very long name that somebody gave to the policy, with everything that is known of it"


def figure_with(names: list[str], width: float = 3.5) -> Figure:
    figure = Figure(figsize=(width, 2.5), layout="constrained")
    axes = figure.subplots()
    for name in names:
        axes.plot([0, 1], [0, 1], label=name)
    legend_below(figure, [axes])
    figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize("names", [["a"], ["budget", "a", "b"], [f"policy {n}" for n in range(12)], [LONG, "short"]])
def test_a_legend_is_no_wider_than_its_figure_and_covers_nothing(names: list[str]) -> None:
    figure = figure_with(names)
    (legend,), (axes,) = figure.legends, figure.axes
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert not box.overlaps(axes.get_window_extent())
    shown = [text.get_text().replace("\n", " ") for text in legend.get_texts()]
    assert sorted(shown) == sorted(names)
    assert "budget" not in shown[:-1]  # the line across comes last


def test_panels_keep_their_size_below_a_long_legend() -> None:
    few, many = (figure_with([f"policy number {n}" for n in range(count)]) for count in (2, 12))
    heights = [figure.axes[0].get_window_extent().height for figure in (few, many)]
    assert heights[1] == pytest.approx(heights[0], rel=0.1)


def test_bands_do_not_flatten_the_lines_nor_leave_what_is_possible() -> None:
    loss, accuracy = QUANTITIES["loss"], QUANTITIES["accuracy"]
    assert limits_of(loss, [1.0, 2.0], [0.9, 1.9], [1.1, 2.1]) == pytest.approx((0.852, 2.148))  # all of the band
    assert limits_of(loss, [1.0, 2.0], [-40.0], [60.0]) == pytest.approx((0.0, 3.12))  # a height each side
    assert limits_of(loss, [5.0, 6.0], [-40.0], [60.0]) == pytest.approx((3.88, 7.12))
    assert limits_of(accuracy, [10.0, 90.0], [-30.0], [130.0]) == (0.0, 100.0)
    low, high = limits_of(loss, [0.0, 0.0])
    assert low < high


@pytest.fixture(scope="module")
def found() -> fs.Comparison:
    return fs.compare({"one": "lyapunov", "two": "random"}, "tiny", seeds=3, **QUICK)


def test_every_seed_is_in_the_picture_where_seeds_are_few(found: fs.Comparison) -> None:
    for axes in found.plot().axes:
        low, high = axes.get_ylim()
        for line in axes.get_lines():
            assert all(low <= float(y) <= high for y in line.get_ydata())  # type: ignore[arg-type,union-attr]


def test_panels_of_a_run_fit_two_columns_and_one_round_is_a_point() -> None:
    run = fs.simulate("tiny", rounds=1)
    assert run.plot().get_figwidth() == 7.0
    assert len(run.plot().axes) == 4
    assert run.plot("accuracy").get_figwidth() == 3.5
    for axes in run.plot(["accuracy", "loss", "transmitted"]).axes:  # type: ignore[arg-type]
        assert [tick for tick in axes.get_xticks() if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]] == [1.0]
        assert axes.get_lines()[0].get_marker() == "o"


def test_quantities_of_whole_runs_stand_side_by_side(found: fs.Comparison) -> None:
    first, second = found.plot("late_accuracy", "energy_j").axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["one", "two"]
    assert first.get_xlabel() == "Accuracy, last fifth (%)"
    assert not any(label.get_text() for label in second.get_yticklabels())
    assert first.get_ylim()[0] > first.get_ylim()[1]  # the first configuration is on top


def test_accuracy_against_energy(found: fs.Comparison) -> None:
    (axes,) = found.plot(against="energy_j").axes
    assert axes.get_xlabel() == "Energy per device (mJ per round)"
    with pytest.raises(FeelstreamError, match="only late_accuracy can be drawn against energy_j"):
        found.plot("fairness", against="energy_j")


def test_worlds_have_one_legend_with_the_users_labels() -> None:
    """`random devices=12` is called random below the title that says so, and keeps its style from panel to panel."""
    found = fs.sweep("tiny", {"devices": [10, 12]}, policies=["lyapunov", "random"], seeds=1, engine="none", **QUICK)
    figure = found.plot("energy_mean_cum_j")
    assert [axes.get_title("left") for axes in figure.axes] == ["system.devices = 10", "system.devices = 12"]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["lyapunov", "random", "budget"]
    assert len({axes.get_lines()[-2].get_color() for axes in figure.axes}) == 1


@pytest.mark.parametrize(("budget_j", "drawn"), [(0.08, True), (0.0001, False)])
def test_a_sweep_shows_the_budget_unless_it_is_far_from_the_energies(budget_j: float, drawn: bool) -> None:
    found = fs.sweep("tiny", V=[0.01, 1.0], seeds=1, engine="none", energy_budget_j=budget_j, **QUICK)
    figure = found.plot("energy_j", against="V")
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ("budget" in names) is drawn


def test_tuning_names_the_least_the_best_and_the_largest_weight() -> None:
    tuned = fs.tune("tiny", [1e-4, 1e-2, 1e-1, 1.0], budget_j=0.08, seeds=2, rounds=3)
    figure = tuned.plot()
    (axes,) = figure.axes
    names = [text.get_text() for text in axes.texts]
    assert {"V = 0.0001"} <= set(names) <= {"V = 0.0001", "V = 0.01", "V = 0.1", "V = 1"}
    assert len(names) == len({text.xy for text in axes.texts if isinstance(text, Annotation)}) <= 3
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "budget"


def test_an_arm_that_spends_nothing_has_a_place_on_a_logarithmic_axis() -> None:
    energies = [0.0, *np.geomspace(0.02, 700.0, 16)]
    points = [Point(f"policy_{n}", e, 0.1 * e, 60.0 + n, 1.0, True) for n, e in enumerate(energies)]
    chart = to_plotly(pareto_chart(points))
    axis = chart["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert (axis["ticktext"][0], axis["ticktext"][-1]) == ("0", "1000")
    places = [trace["x"][0] for trace in chart["traces"] if trace["meta"]["role"] == "point"]
    assert places == sorted(set(places))
    assert places[0] == pytest.approx(axis["tickvals"][0], rel=1e-5)
    assert axis["range"][0] < np.log10(places[0])
    (axes,) = figure_of([pareto_chart(points)], 1, FRONT).axes
    assert [line.get_label() for line in axes.get_lines()] == ["Pareto front", *(point.arm for point in points)]


@pytest.mark.parametrize("energies", [[0.0], [0.0, 0.0], [0.0, 5.0], [0.0, 1.0, 2.0]])
def test_without_a_wide_span_the_axis_is_linear_and_begins_at_zero(energies: list[float]) -> None:
    axis = pareto_chart([Point(f"{n}", e, None, 50.0, None, True) for n, e in enumerate(energies)]).x
    assert not axis.logarithmic
    assert axis.limits is not None
    assert axis.limits[0] == 0
    assert axis.limits[1] > max(energies)


def test_a_front_of_one_point_is_no_line_and_bars_are_all_in_the_picture() -> None:
    alone = [Point("best", 1.0, 0.1, 90.0, 1.0, True), Point("worse", 20.0, 30.0, 80.0, 1.0, False)]
    chart = pareto_chart(alone)
    assert [(line.name, line.filled) for line in chart.lines] == [("best", True), ("worse", False)]
    assert chart.x.limits is not None
    assert chart.x.limits[1] > 50.0


def test_where_accuracies_differ_much_the_good_ones_are_spread_by_their_error() -> None:
    near, far = ([Point(f"{a}", 1.0, None, a, None, True) for a in both] for both in ((70.0, 80.0), (50.0, 98.0)))
    assert not pareto_chart(near).y.by_error
    (axes,) = figure_of([pareto_chart(far)], 1, FRONT).axes
    low, middle, high = (axes.transData.transform((1.0, accuracy))[1] for accuracy in (50.0, 90.0, 98.0))
    assert high - middle == pytest.approx((middle - low) * np.log(10.5 / 2.5) / np.log(50.5 / 10.5), rel=1e-6)
    assert {"50", "90", "98"} <= {tick.get_text() for tick in axes.get_yticklabels()}


def test_charts_are_valid_plotly_and_figures_take_odd_names() -> None:
    points = [Point(NASTY, 0.0, None, 50.0, None, True), Point("$x_$", 90.0, 5.0, 99.9, 3.0, True)]
    chart = to_plotly(pareto_chart(points))
    go.Figure(data=chart["traces"], layout=chart["layout"])
    assert not any("<" in trace["name"] for trace in chart["traces"])
    figure_of([pareto_chart(points)], 1, FRONT).draw_without_rendering()
