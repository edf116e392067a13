"""Every tutorial runs from top to bottom. The site shows what its cells print; here it counts that none fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import DOCS, TUTORIALS


@pytest.mark.nightly
@pytest.mark.parametrize("script", TUTORIALS, ids=lambda script: script.stem)
def test_a_tutorial_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = script.read_text(encoding="utf-8")
    if "flwr" in text:
        pytest.importorskip("flwr")
    monkeypatch.chdir(tmp_path)
    exec(compile(text, script.name, "exec"), {"__name__": "tutorial"})


def test_every_tutorial_is_listed() -> None:
    listed = re.findall(r"\]\((\w+)\.md\)", (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [script.stem for script in TUTORIALS]
