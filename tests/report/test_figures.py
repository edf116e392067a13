from __future__ import annotations

import re
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_rgb
from scipy import stats

from feelstream.display.chart import LINE_STYLES
from feelstream.display.picture import COLUMN_WIDTH_IN
from feelstream.report import figures
from feelstream.report.groups import PanelFigure
from feelstream_studies.hu2023 import paper as reproduce

ALL = tuple(reproduce.FIGURES.values())


def made_up(figure_list=ALL, rounds: int = 40) -> pl.DataFrame:
    """Rounds of five seeds with smooth curves in every panel."""
    t = np.arange(1, rounds + 1)
    tables: dict[str, pl.DataFrame] = {}
    for panel in (panel for figure in figure_list for panel in figure.panels):
        for index, curve in enumerate(panel.curves):
            mean = 0.9 * (1 - np.exp(-t / (5 + index)))
            values = pl.Series(panel.quantity, np.concatenate([mean + 0.01 * seed for seed in range(5)]))
            own = tables.get(curve.arm)
            if own is None:
                keys = {"arm": [curve.arm] * 5 * rounds, "seed": np.repeat(np.arange(5), rounds), "round": [*t] * 5}
                own = pl.DataFrame(keys)
            tables[curve.arm] = own.with_columns(values)
    return pl.concat(tables.values(), how="diagonal")


def panel_figure(panel, rounds: pl.DataFrame):
    whole = PanelFigure("fig", "Figure", "", (panel,))
    return dict(figures.panel_figures([whole], rounds))[f"fig{panel.key}"]


@pytest.mark.parametrize("panel", [panel for figure in ALL for panel in figure.panels], ids=lambda panel: panel.key)
def test_panels_fit_a_column_and_have_units_and_one_line_per_curve(panel):
    figure = panel_figure(panel, made_up())
    (axes,) = figure.axes
    assert figure.get_figwidth() == COLUMN_WIDTH_IN
    assert axes.get_xlabel() == "Round"
    assert re.search(r"\((%|nat|mJ per round)\)$", axes.get_ylabel())
    assert [line.get_label() for line in axes.get_lines()] == [curve.name for curve in panel.curves]
    assert len(axes.collections) == len(panel.curves)  # a band each
    # Without colour the curves still differ: in dashes and in markers.
    assert len({(str(line.get_linestyle()), line.get_marker()) for line in axes.get_lines()}) == len(panel.curves)


def test_each_panel_keeps_its_letter_and_the_legend_covers_no_data():
    letters = ["(a)", "(b)", "(c)", "(d)"]
    for paper_figure in ALL:
        figure = dict(figures.panel_figures([paper_figure], made_up([paper_figure])))[paper_figure.key]
        assert [axes.get_title("left")[:3] for axes in figure.axes] == letters[: len(figure.axes)]
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)


def test_threads_may_draw_at_once():
    """Every thread gets our style, and none leaves it or a figure of pyplot's behind."""
    before = dict(mpl.rcParams)
    panels = [panel for figure in ALL for panel in figure.panels] * 2
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda panel: panel_figure(panel, made_up()), panels))
    assert {figure.axes[0].spines["top"].get_visible() for figure in made} == {False}
    assert {figure.axes[0].xaxis.label.get_fontsize() for figure in made} == {8.0}
    assert dict(mpl.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_pdf_embeds_truetype_fonts(tmp_path):
    (pdf,) = figures.save(panel_figure(ALL[0].panels[0], made_up()), tmp_path, "fig1a", formats=("pdf",))
    raw = pdf.read_bytes()
    objects = raw + b"".join(_inflated(raw))
    assert b"/Type3" not in objects
    assert b"/FontFile2" in objects  # the TrueType program itself


def _inflated(raw: bytes):
    for part in re.findall(rb"stream\r?\n(.*?)endstream", raw, re.S):
        try:
            yield zlib.decompress(part)
        except zlib.error:
            continue


def test_the_same_curves_give_the_same_bytes(tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    for directory in (first, second):
        directory.mkdir()
        figures.save(dict(figures.panel_figures(ALL[1:2], made_up()))["fig2"], directory, "fig2")
    for name in ("fig2.pdf", "fig2.png"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_neighbouring_colours_differ_in_grey():
    """Curves 1 to 4 are the most that the paper's panels have; bands overlap, so dashes alone are not enough."""
    grey = [np.dot([0.299, 0.587, 0.114], to_rgb(style.light)) for style in LINE_STYLES[:4]]
    assert len({style.mpl_dash for style in LINE_STYLES[:6]}) == 6
    assert abs(grey[0] - grey[1]) > 0.05


def test_curves_are_the_bands_of_the_runs(paper_results, paper_output):
    """Recomputed here from the single runs with another library's t interval."""
    stored = pl.read_parquet(paper_output / "curves.parquet")
    assert stored.columns == ["panel", "quantity", "arm", "round", "mean", "low", "high", "n"]
    assert pl.read_csv(paper_output / "curves.csv", schema=stored.schema).equals(stored)
    assert set(stored["panel"]) == {"1c", "1d"}  # nothing was learned, so there is no accuracy to show
    for arm in paper_results.plan.arms:
        values = np.array(
            [paper_results.run(arm.label, seed).rounds["energy_mean_cum_j"] for seed in paper_results.plan.seeds]
        )
        shown = stored.filter(pl.col("arm") == arm.label).sort("round")
        assert shown["round"].to_list() == list(range(1, 7))
        np.testing.assert_allclose(shown["mean"], values.mean(axis=0))
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(axis=0), stats.sem(values, axis=0))
        np.testing.assert_allclose(shown["low"], low)
        np.testing.assert_allclose(shown["high"], high)
        assert set(shown["n"]) == {3}


def test_one_seed_has_a_line_and_no_band(paper_results):
    rounds = paper_results.rounds().filter(pl.col("seed") == 0)
    table = figures.panel_curves((reproduce.FIGURES["fig1"],), rounds)
    assert table["low"].null_count() == table.height
    (axes,) = panel_figure(reproduce.FIGURES["fig1"].panels[2], rounds).axes
    assert len(axes.get_lines()) == 4
