"""Tables in the terminal."""

from __future__ import annotations

import pytest
from compared import all_of, spread, summary_of

from feelstream.experiment.measures import HEADLINE, cells, measured
from feelstream.terminal.common import out as console
from feelstream.terminal.playing import show, show_all


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_terminal_cuts_neither_names_nor_numbers(columns, monkeypatch, capsys):
    plan, _, summary = summary_of(
        {
            name: {quantity: [50.0, 51.0 + n] for quantity in all_of()}
            for n, name in enumerate(("lyapunov_joint", "random"))
        }
    )
    monkeypatch.setattr(console, "_width", columns)
    show_all(summary, plan)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    for measure in measured(summary):
        cell = cells(summary, "lyapunov_joint", [measure], 2)[0]
        assert any(cell in line for line in lines if line.startswith("lyapunov_joint "))


@pytest.mark.parametrize("name", ["random", "lyapunov_joint(V=0.1,metric=amount)"])
def test_a_comparison_fits_eighty_columns_in_one_table(name, monkeypatch, capsys):
    """Accuracy, energy, its ratio to the budget and the verdict, with five seeds and in words."""
    plan, _, summary = summary_of(
        {
            "lyapunov": {"late_accuracy": spread(0.9, 0.01), "energy_j": spread(0.06, 0.001),
                         "energy_over_budget": spread(0.8, 0.1)},
            name: {"late_accuracy": spread(0.8, 0.02), "energy_j": spread(0.02, 0.002),
                   "energy_over_budget": spread(0.2, 0.1)},
        }
    )  # fmt: skip
    monkeypatch.setattr(console, "_width", 80)
    show(summary, plan)
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("policy" in line for line in lines) == 1
    shown = [quantity for quantity in measured(summary) if quantity.name in HEADLINE]
    assert len(shown) == 3
    for cell in cells(summary, name, shown, 5)[:2]:
        assert cell in said
    assert "accuracy worse" in said
    assert "energy better" in said


def test_below_five_seeds_there_is_no_verdict_in_any_row(capsys):
    plan, _, summary = summary_of(
        {
            name: {"late_accuracy": [0.9, 0.91, 0.92], "energy_j": [1.0 + n, 1.1 + n, 1.2 + n]}
            for n, name in enumerate("abc")
        }
    )
    show(summary, plan)
    said = capsys.readouterr().out
    assert "fewer than 5 seeds: no verdict" in " ".join(said.split())
    assert not any(word in said for word in ("better", "worse", "unclear"))
    assert set(summary["verdict"].drop_nulls()) == {"fewer than 5 seeds: no verdict"}
