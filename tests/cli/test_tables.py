"""Tables in the terminal."""

from __future__ import annotations

import pytest
from compared import all_of, summary_of

from feelstream.experiment.measures import cells, measured
from feelstream.terminal.common import out as console
from feelstream.terminal.comparing import show


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
