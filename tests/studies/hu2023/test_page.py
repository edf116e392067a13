"""The report of a reproduction, and its page for the docs."""

from __future__ import annotations

import json
import re

import pytest
from report_page import Page

from feelstream.errors import RunError
from feelstream.studies import reporting


def test_the_paper_report_has_claims_settings_and_the_command(paper_output):
    page = Page((paper_output / "report.html").read_text(encoding="utf-8"))
    words = "\n".join(page.words)
    stored = json.loads((paper_output / "claims.json").read_text(encoding="utf-8"))
    assert {claim["panel"] for claim in stored["claims"]} == {"1c", "1d"}
    for claim in stored["claims"]:
        assert claim["claim"] in words
        assert claim["low"] < claim["mean"] < claim["high"]
    assert "feelstream reproduce fig1 --seeds 3 --set system.devices=8 --set system.rounds=6" in words
    assert "[data.partition]" in words
    assert (paper_output / "figures" / "fig1d.pdf").is_file()
    assert not (paper_output / "figures" / "fig1a.pdf").exists()  # no accuracy, no panel


def test_the_docs_page_is_dated_and_shows_what_it_wrote(paper_output):
    text = (paper_output / "docs" / "reproduced.md").read_text(encoding="utf-8")
    assert re.search(r"Runs of \d{4}-\d\d-\d\d, 3 seeds", text)
    for picture in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (paper_output / "docs" / picture).stat().st_size < 200_000
    rows = [line for line in text.splitlines() if line.startswith("| 1")]
    assert len(rows) == 4
    assert all(row.count(" | ") == 7 for row in rows)


def test_only_a_study_writes_docs(learned_results, tmp_path):
    with pytest.raises(RunError, match="no study that writes a page"):
        reporting.write(learned_results, tmp_path, docs=tmp_path / "docs")
