"""The paper on one screen: README, page and terminal say what the stored judgments say, and these what the runs say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from feelstream.experiment.statistics import Interval
from feelstream.studies.claims import Finding, Verdict
from feelstream_studies import tables
from feelstream_studies.hu2023 import one_screen, paper, reproduction
from feelstream_studies.hu2023.claims import all_claims, figure_claims
from feelstream_studies.hu2023.judgments import AGAINST, FITTED, TEXT

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
STORED = tables.read(DOCS / "reproduction.csv").rows


def test_the_judgments_are_those_of_the_runs() -> None:
    assert tables.rounded(reproduction.judged(DOCS)).equals(STORED)


def test_the_page_is_made_from_the_judgments() -> None:
    stale = "docs/reproduction.md is stale; run python docs/make_results.py"
    said = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert said == reproduction.from_tables(DOCS), stale
    assert len(said.split()) <= 1200


def test_the_readme_has_the_table_as_it_is_now() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(text.count(mark) == 1 for mark in reproduction.MARKS)
    assert text == reproduction.readme(text, DOCS), "the README is stale; run python docs/make_results.py"


def test_the_first_answer_of_the_readme_says_what_its_table_says() -> None:
    """The statements that the answer names, with the verdict of the part of the sentence in which each is named."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    answer = text.partition("**Does the paper reproduce?**")[2].partition("**Why use it?**")[0]
    kept, failed, depends = answer.split(";")
    verdicts = {"**yes**": kept, "**no**": failed, "depends on settings": depends}
    named = {
        "its equations": "equations and Algorithm 1",
        "energy savings": "reduction in power consumption",
        "its lead grows": "temporal correlation",
        "energy budget": "long-term energy constraints",
        "the reason that it gives": "fresher data",
        "its accuracy": "better test accuracy",
    }
    for words, statement in named.items():
        (line,) = (line for line in text.partition(reproduction.MARKS[0])[2].split(" | | ") if statement in line)
        assert words in verdicts[line.rpartition("|")[2].strip(" |")]


def test_every_claim_is_in_one_line_and_both_columns() -> None:
    lines = [line for line in one_screen.LINES if line.eligible == "any"]
    own = [[row["claim"] for line in lines for row in one_screen.of(STORED, line, of)] for of in (TEXT, FITTED)]
    assert own[0] == own[1]
    assert len(set(own[0])) == len(own[0])
    assert {claim.key for claim in all_claims()} < set(own[0])


KEPT, OPEN, FAILED = str(Verdict.REPRODUCED), str(Verdict.OPEN), str(Verdict.FAILED)


@pytest.mark.parametrize(
    ("text", "fitted", "verdict"),
    [
        ([KEPT, KEPT], [KEPT, KEPT], "**yes**"),
        ([FAILED, AGAINST], [AGAINST, OPEN], "**no**"),
        ([OPEN, OPEN], [OPEN, OPEN], "open"),
        ([KEPT, OPEN], [KEPT, OPEN], "depends on settings"),
        ([KEPT, KEPT], [OPEN, OPEN], "depends on settings"),
        ([OPEN, OPEN], [FAILED, FAILED], "depends on settings"),
        ([KEPT, FAILED], [FAILED, FAILED], "depends on settings"),
    ],
)
def test_the_verdict_of_a_line_follows_from_its_columns(text: list[str], fitted: list[str], verdict: str) -> None:
    columns = [[{"verdict": each} for each in verdicts] for verdicts in (text, fitted)]
    found = (one_screen.status(columns[0]), one_screen.status(columns[1]))
    assert one_screen.VERDICTS.get(found, one_screen.DEPENDS) == verdict


def test_columns_with_different_claims_are_refused() -> None:
    fewer = STORED.filter(~((pl.col("claim") == "1a-widths") & (pl.col("settings") == FITTED.settings)))
    with pytest.raises(ValueError, match="not the same claims in both columns"):
        one_screen.one_screen(fewer)


def test_a_terminal_shows_a_line_a_panel_and_a_sentence() -> None:
    scenario = paper.scenario(paper.proposed("iid", 2))
    one = Interval(12.34, 10.0, 14.0, 20)
    judged = [Finding(claim, scenario, {"random": one}, one, verdict=Verdict.REPRODUCED) for claim in figure_claims()]
    judged[0] = replace(judged[0], verdict=Verdict.OPEN)
    *panels, empty, sentence = one_screen.told(judged, 0.38).splitlines()
    assert [line.split()[0] for line in panels] == ["1a", "1b", "1c", "1d", "2a", "2b", "3b", "3a"]
    assert all(len(line) <= 80 for line in panels)
    assert panels[0].endswith("3 reproduced, 1 undecided")
    assert panels[2].startswith("1c       saves 12 % with 2 devices, 12 % with 4 devices ")
    assert empty == ""
    assert sentence == (
        "On average, the proposed policy is 12.3 points ahead of random over the run; it saves 12 % with 2 devices, "
        "12 % with 4 devices of its energy, which T was chosen for; 38 % of random's slots go to devices without data."
    )
