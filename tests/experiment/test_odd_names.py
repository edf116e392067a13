"""Configurations may be called anything: what reads like a number or a formula is stored, drawn and read as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import feelstream as fs

NAMES = ["inf", r"\inf", "$V=10^$", "$V=10$", "_mine", "a_b 50 %"]


@pytest.mark.slow
def test_odd_names_come_back_and_are_drawn(tmp_path: Path) -> None:
    fields = {"learning.engine": "none", "system.rounds": 2}
    policies = dict.fromkeys(NAMES, "random")
    found = fs.compare(policies, "tiny", seeds=1, workers=1, out=tmp_path / "found", **fields)
    assert found.table()["arm"].to_list() == NAMES
    again = fs.compare(policies, "tiny", seeds=1, workers=1, out=tmp_path / "found", **fields)
    assert again.table().equals(found.table())
    figure = found.plot("energy_mean_cum_j")
    figure.savefig(tmp_path / "figure.png")
    legend = figure.legends[0] if figure.legends else figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text().strip().replace(r"\$", "$") for text in legend.get_texts()][: len(NAMES)] == NAMES
