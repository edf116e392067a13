"""Tables in the terminal, which are those that Python prints."""

from __future__ import annotations

import pytest
from compared import all_of, cells, spread, summary_of

from feelstream.experiment.measures import HEADLINE, measured
from feelstream.terminal.tables import everything, plain


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_neither_names_nor_numbers_are_cut(columns):
    plan, _, summary = summary_of(
        {
            name: {quantity: [50.0, 51.0 + n] for quantity in all_of()}
            for n, name in enumerate(("lyapunov_joint", "random"))
        }
    )
    lines = everything(summary, plan, columns).splitlines()
    assert max(map(len, lines)) <= columns
    for measure in measured(summary):
        cell = cells(summary, "lyapunov_joint", [measure], 2)[0]
        assert any(cell in line for line in lines if line.startswith("lyapunov_joint "))


@pytest.mark.parametrize("name", ["random", "lyapunov_joint(V=0.1,metric=amount)"])
def test_a_comparison_fits_eighty_columns_in_one_table(name):
    """Accuracy, energy, its ratio to the budget and the verdict, with five seeds and in words."""
    _, _, summary = summary_of(
        {
            "lyapunov": {"late_accuracy": spread(0.9, 0.01), "energy_j": spread(0.06, 0.001),
                         "energy_over_budget": spread(0.8, 0.1)},
            name: {"late_accuracy": spread(0.8, 0.02), "energy_j": spread(0.02, 0.002),
                   "energy_over_budget": spread(0.2, 0.1)},
        }
    )  # fmt: skip
    said = plain(summary, HEADLINE, 5, 80)
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("policy" in line for line in lines) == 1
    shown = [quantity for quantity in measured(summary) if quantity.name in HEADLINE]
    assert len(shown) == 3
    for cell in cells(summary, name, shown, 5)[:2]:
        assert cell in said
    assert "accuracy worse" in said
    assert "energy better" in said


def test_below_five_seeds_one_line_says_that_there_is_no_verdict():
    plan, _, summary = summary_of(
        {
            name: {"late_accuracy": [0.9, 0.91, 0.92], "energy_j": [1.0 + n, 1.1 + n, 1.2 + n]}
            for n, name in enumerate("abc")
        }
    )
    said = f"{plain(summary, HEADLINE, 3)}\n{everything(summary, plan)}"
    assert " ".join(said.split()).count("fewer than 5 seeds: no verdict") == 1
    assert not any(word in said for word in ("better", "worse", "unclear"))
    assert set(summary["verdict"].drop_nulls()) == {"fewer than 5 seeds: no verdict"}


def test_unclear_has_its_reason():
    """The interval of one difference leaves out 0, and Holm's correction for three of them does not allow to say so."""
    base = [0.5, 0.52, 0.48, 0.51, 0.49]
    gaps = {"b": [0.01, 0.03, 0.02, 0.0, 0.015], "c": [0.0, 0.01, -0.01, 0.005, 0.0], "d": [0.01, -0.01, 0.0, 0.0, 0.0]}
    arms = {"a": base} | {name: [x + y for x, y in zip(base, gap, strict=True)] for name, gap in gaps.items()}
    _, _, summary = summary_of({name: {"energy_j": values} for name, values in arms.items()})
    assert summary.filter(arm="b")["difference_low"].item() > 0
    said = " ".join(plain(summary, ["energy_j"], 5).split())
    assert said.count("energy unclear (Holm)") == 1
    assert said.count("energy unclear") == 3
    assert "unclear (Holm): shown by itself, not among so many comparisons" in said
