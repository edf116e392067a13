"""The weight that a budget allows, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import feelstream as fs
from feelstream.errors import ScenarioError

FEW: Any = {"cardinality": "cap", "seeds": 2, "rounds": 4, "workers": 1}


@pytest.fixture(scope="module")
def tuned() -> fs.Tuning:
    return fs.tune("tiny", [1.0, 0.001], budget_j=0.08, **FEW)


def test_the_table_says_what_is_kept(tuned: fs.Tuning, tmp_path: Path) -> None:
    table = tuned.table()
    assert table["V"].to_list() == [0.001, 1.0]
    energies = dict(tuned.comparison.summary(long=True).filter(quantity="energy_j").select("arm", "mean").iter_rows())
    assert table["energy_j"].to_list() == pytest.approx(list(energies.values()))
    highs = table["energy_j_high"].to_list()
    assert table["kept"].to_list() == [high <= 0.08 for high in highs]
    assert pl.read_csv(tuned.to_csv(tmp_path / "t.csv").encode()).shape == table.shape
    assert (tmp_path / "t.csv").is_file()


def test_no_weight_may_keep_it() -> None:
    tuned = fs.tune("tiny", [0.1], budget_j=1e-6, **FEW)
    assert tuned.weight is None
    assert repr(tuned) == "Tuning(1 value of V, none keeps 0.001 mJ)"
    with pytest.raises(ScenarioError, match=r"No weight keeps 0\.00100 mJ per device and round over 4 rounds"):
        _ = tuned.scenario


def test_an_interval_that_reaches_beyond_is_told(tuned: fs.Tuning) -> None:
    mean, high = tuned.table().select("energy_j", "energy_j_high").row(0)
    between = fs.Tuning("V", (mean + high) / 2, tuned.trades[:1], tuned.base, tuned.comparison)
    assert "is shown to keep" in str(between)
    assert "95 % interval over 2 seeds reaches" in str(between)


def test_the_picture_has_the_budget(tuned: fs.Tuning) -> None:
    figure = tuned.plot(figsize=(3.5, 3.0))
    (axes,) = figure.axes
    assert "budget" in axes.get_legend_handles_labels()[1]
    assert tuple(figure.get_size_inches()) == (3.5, 3.0)
    assert "<table>" in tuned._repr_html_()
