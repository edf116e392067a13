"""The README states the finding with the numbers of the page that the results wrote."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
NUMBER = re.compile(r"[+−]?\d+(?:\.\d+)?(?: %)?")


def test_every_number_of_the_readme_is_one_of_the_finding():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    finding = page.partition("The paper is C.-H. Hu")[0]
    assert "| specification |" in finding, "docs/reproduction.md is older than the program; make it again"
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Does the paper reproduce?")[2]
    table = readme.partition("[docs/multiverse.md]")[0].replace("docs/reproduction.md", "")
    stated = NUMBER.findall(table)
    assert len(stated) > 10
    assert set(stated) <= set(NUMBER.findall(finding)), "docs/reproduction.md says otherwise by now"
