"""Numbers of runs that are not kept: pages quote them as their tables in docs/archive/results have them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
NUMBER = re.compile(r"[+−]?\d+(?:\.\d+)?(?: %)?")


@pytest.mark.parametrize(
    ("name", "page", "begin", "end"),
    [
        ("earlier", "archive/reproduction.md", "on 2026-11-16", "\n(["),
        ("other-seeds", "reproduction.md", "On 40 other seeds", " (["),
    ],
)
def test_numbers_of_runs_on_other_seeds_are_those_of_their_table(name: str, page: str, begin: str, end: str) -> None:
    sentences = (DOCS / page).read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    table = (DOCS / "archive" / "results" / f"{name}.csv").read_text(encoding="utf-8")
    known = {value for line in table.splitlines()[1:] for value in NUMBER.findall(line.rpartition(",")[2])}
    for given in ("n = 2", "n = 4"):
        sentences = sentences.replace(given, "")
    said = {each.removesuffix(" %") for each in NUMBER.findall(sentences)}
    assert said
    assert said <= known


def test_the_page_of_the_search_and_that_of_its_finalists_agree() -> None:
    ended = (DOCS / "archive" / "reproduction.md").read_text(encoding="utf-8").partition("## What the search ended")[2]
    finalists = (DOCS / "archive" / "results" / "finalists.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line for line in finalists if "†" not in line]
    told = re.findall(r"figure (\d) .*? has (\d+) of (\d+) claims", ended)
    for figure, kept, whole in told:
        own = [line for line in rows if line.startswith(f"{figure},")]
        held = [line for line in own if ",reproduced" in line or '"reproduced' in line]
        assert (len(held), len(own)) == (int(kept), int(whole))
    assert len(told) == 3
