"""What a reader of a paper would stumble over, for results of every size."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

import feelstream as fs
from feelstream.display.picture import in_lines
from feelstream.errors import FeelstreamError
from feelstream.report.drawing.legend import legend_below

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


def test_long_labels_take_two_lines_of_about_the_same_length() -> None:
    assert in_lines("Importance scheduled per round") == "Importance\nscheduled per round"
    assert in_lines("Energy per device in the round (mJ)") == "Energy per device\nin the round (mJ)"


@pytest.fixture(scope="module")
def found() -> fs.Comparison:
    return fs.compare({"one": "lyapunov", "two": "random"}, "tiny", seeds=3, **QUICK)


def test_every_seed_is_in_the_picture_where_seeds_are_few(found: fs.Comparison) -> None:
    for axes in found.plot().axes:
        low, high = axes.get_ylim()
        for line in axes.get_lines():
            assert all(low <= float(y) <= high for y in line.get_ydata())  # type: ignore[arg-type,union-attr]


def test_one_round_is_a_point_over_a_whole_number() -> None:
    run = fs.simulate("tiny", rounds=1, engine="none")
    for axes in run.plot().axes:
        assert [tick for tick in axes.get_xticks() if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]] == [1.0]
        assert axes.get_lines()[0].get_marker() == "o"


def test_panels_of_a_run_fit_two_columns() -> None:
    run = fs.simulate("tiny", rounds=3)
    assert run.plot().get_figwidth() == 7.0
    assert len(run.plot().axes) == 4
    assert run.plot("accuracy").get_figwidth() == 3.5
    assert len(run.plot(["accuracy", "loss", "transmitted"]).axes) == 3  # type: ignore[arg-type]


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
