"""The report of a reproduction, and what is told of empty slots."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from report_page import Page

from feelstream.errors import RunError
from feelstream.studies import reporting
from feelstream_studies.hu2023.page import empty_share, mean_empty


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


def test_only_scheduled_devices_count_as_slots():
    devices = pl.DataFrame({"stored": [0, 5, 0, 0, 7], "scheduled": [True, True, False, True, True]})
    assert empty_share(devices) == pytest.approx(0.5)
    assert empty_share(devices.filter(~pl.col("scheduled"))) is None


def test_what_is_told_counts_the_empty_slots_of_random_alone(paper_results):
    runs = [paper_results.run(arm, seed) for arm, seed in paper_results.finished if "random" in arm]
    slots = [run.devices.filter("scheduled")["stored"].to_numpy() for run in runs]
    assert mean_empty(paper_results) == pytest.approx(np.mean([np.mean(stored == 0) for stored in slots]))


@pytest.mark.parametrize("which", ["learned_results", "paper_results"])
def test_only_a_study_that_has_a_page_writes_docs(which, request, tmp_path):
    with pytest.raises(RunError, match="no study that writes a page"):
        reporting.write(request.getfixturevalue(which), tmp_path, docs=tmp_path / "docs")
