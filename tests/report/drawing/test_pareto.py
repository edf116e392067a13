"""Accuracy against energy, in print and on the page."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import plotly.graph_objects as go
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from small_results import NASTY

from feelstream.experiment.measures import Point
from feelstream.report.drawing.accuracy_axis import bent
from feelstream.report.drawing.energy_axis import energy_axis, log_ticks
from feelstream.report.drawing.labels import label_points
from feelstream.report.drawing.pareto import axis_of, pareto_chart, pareto_figure


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


def test_of_many_the_beaten_have_numbers_and_a_key_and_nothing_covers_anything():
    """Twenty policies at one energy and nearly one accuracy, as in `stress`; two on the front, far apart."""
    front = [Point("thrifty", 0.4, 0.01, 70.0, 1.0, True), Point("best", 300.0, 1.0, 97.0, 0.2, True)]
    beaten = [Point(f"policy_{n}", 30.0 + n / 10, 0.5, 94.0 + n / 20, 0.3, False) for n in range(20)]
    figure = pareto_figure([*front, *beaten])
    figure.draw_without_rendering()
    renderer, axes = FigureCanvasAgg(figure).get_renderer(), figure.axes[0]
    texts = {text.get_text(): text.get_window_extent(renderer) for text in axes.texts if text.get_text()}
    (key,) = (text for text in texts if "\n" in text)
    assert key.splitlines()[0] == "1  policy_19"  # the most accurate first
    assert len(key.splitlines()) == 20
    assert set(texts) - {key} == {"thrifty", "best", *(str(n) for n in range(1, 21))}
    assert not any(a.overlaps(b) for a, b in combinations(texts.values(), 2))
    assert texts[key].x1 <= figure.bbox.x1


def test_where_accuracies_differ_much_the_good_ones_are_spread_by_their_error():
    assert bent([70.0, 95.0])
    assert not bent([70.0, 80.0])
    assert not bent([91.0, 95.0])
    figure = pareto_figure([Point("a", 1.0, None, 50.0, None, True), Point("b", 2.0, None, 98.0, None, True)])
    axes = figure.axes[0]
    low, middle, high = (axes.transData.transform((1.0, accuracy))[1] for accuracy in (50.0, 90.0, 98.0))
    assert high - middle == pytest.approx((middle - low) * np.log(10.5 / 2.5) / np.log(50.5 / 10.5), rel=1e-6)
    shown = [float(tick.get_text()) for tick in axes.get_yticklabels()]
    assert shown == sorted(shown)
    assert {50.0, 90.0} <= set(shown)


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


def test_the_chart_is_valid_plotly_and_the_figure_takes_odd_values():
    points = [Point(NASTY, 0.0, None, 50.0, None, True), Point("$x_$", 90.0, 5.0, 99.9, 3.0, True)]
    chart = pareto_chart(points)
    go.Figure(data=chart["traces"], layout=chart["layout"])
    assert not any("<" in trace["name"] for trace in chart["traces"])
    pareto_figure(points)
