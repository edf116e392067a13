"""The README states the finding with the numbers of the page that the results wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NUMBER = re.compile(r"[+−]?\d+(?:\.\d+)?(?: %)?")


def test_every_number_of_the_readme_is_one_of_the_finding():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    finding = page.partition("## How these settings were chosen")[0]
    assert "| specification, fresh data |" in finding
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Does the paper reproduce?")[2]
    table = readme.partition("[docs/archive/multiverse.md]")[0].replace("docs/reproduction.md", "")
    stated = NUMBER.findall(table)
    assert len(stated) > 10
    assert set(stated) <= set(NUMBER.findall(finding)), "docs/reproduction.md says otherwise by now"


def test_the_readme_says_of_the_search_what_its_page_says():
    page = (ROOT / "docs" / "archive" / "multiverse.md").read_text(encoding="utf-8").partition("## What is tried")[0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("[docs/archive/multiverse.md]")[2]
    section = " ".join(readme.partition("On real cores")[0].replace("docs/archive/multiverse.md", "").split())
    sentence, _, finalists = section.partition("On untouched seeds")
    confirmed = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8").partition("## What the search ended")[2]
    claims = re.findall(r"has (\d+ of \d+) claims", confirmed.partition("###")[0])
    assert len(claims) == 3
    assert re.findall(r"\d+ of \d+", finalists) == claims, "docs/reproduction.md says otherwise by now"
    stated = NUMBER.findall(sentence)
    assert stated
    assert set(stated) <= set(NUMBER.findall(page)), "docs/archive/multiverse.md says otherwise by now"


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [("earlier", "2026-11-16:", "\n\n"), ("other-seeds", "4000 to 4039,", "Energies do not depend")],
)
def test_numbers_of_runs_on_other_seeds_are_those_of_their_table(name: str, begin: str, end: str):
    """Their runs are not kept, and their numbers are in docs/archive/results."""
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    sentences = page.partition(begin)[2].partition(end)[0]
    table = (ROOT / "docs" / "archive" / "results" / f"{name}.csv").read_text(encoding="utf-8")
    known = {value for line in table.splitlines()[1:] for value in NUMBER.findall(line.rpartition(",")[2])}
    for given in ("n = 2", "n = 4", "3 digits"):
        sentences = sentences.replace(given, "")
    assert {each.removesuffix(" %") for each in NUMBER.findall(sentences)} == known
