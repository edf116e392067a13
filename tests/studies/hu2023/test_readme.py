"""The README tells the finding in the words of the page that the results wrote."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_readme_has_the_finding_of_the_page():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    finding = page.split("\n\n")[1]
    assert finding.startswith("Of "), "docs/reproduction.md is older than the program; make it again"
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert " ".join(finding.split()) in readme, "put the first paragraph of docs/reproduction.md into the README"
