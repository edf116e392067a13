"""How columns are shown: known columns only, one unit for one dimension, and new ones from a single place."""

from __future__ import annotations

import polars as pl
import pytest

from feelstream.columns import DEVICE_COLUMNS, ROUND_COLUMNS
from feelstream.display.quantities import MEASURES, QUANTITIES, Quantity, by_round
from feelstream.report.charts import curve_chart
from feelstream.report.figures import curve_figure
from feelstream.report.groups import Group
from feelstream.report.html.charts import to_plotly

UNITS = {"_j": "mJ", "_hz": "GHz"}  # how a column's name ends, and what people read


def test_what_is_shown_is_there() -> None:
    for quantity in QUANTITIES.values():
        if quantity.table != "runs" and quantity.name not in MEASURES:
            assert quantity.name in (ROUND_COLUMNS if quantity.table == "rounds" else DEVICE_COLUMNS)
    assert [name for name, column in ROUND_COLUMNS.items() if column.when and name not in MEASURES] == []


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
def test_a_dimension_has_one_unit(quantity: Quantity) -> None:
    for ending, unit in UNITS.items():
        if quantity.name.endswith(ending):
            assert quantity.unit == unit
    assert quantity.scale == {"mJ": 1e3, "%": 100.0, "GHz": 1e-9}.get(quantity.unit, 1.0)


def test_a_new_column_is_drawn_everywhere_once_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    worst = Quantity("worst_tenth", "worst tenth", "%", 100.0, group="learning", better="higher", most=100.0)
    monkeypatch.setitem(QUANTITIES, worst.name, worst)
    rounds = pl.DataFrame({"arm": ["a"] * 4, "seed": [0, 0, 1, 1], "round": [1, 2] * 2, "worst_tenth": [0.1, 0.2] * 2})
    assert by_round(rounds.columns) == [worst]
    group = Group("all", (("a", "a"),))
    chart = to_plotly(curve_chart("worst_tenth", group.arms, rounds))
    assert (chart["title"], chart["layout"]["yaxis"]["title"]["text"]) == ("Worst tenth", "Worst tenth (%)")
    assert chart["traces"][-1]["y"] == [10.0, 20.0]
    (axes,) = curve_figure([group], rounds, ["worst_tenth"], None).axes
    assert axes.get_ylabel() == "Worst tenth (%)"
