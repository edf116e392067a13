"""The pages say what the program does: the field table is its own, links lead somewhere, the README's Python runs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import feelstream as fs
from feelstream.policies import POLICIES

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])


def test_the_page_of_fields_is_that_of_the_settings():
    spec = importlib.util.spec_from_file_location("make_scenario", ROOT / "docs" / "make_scenario.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    stale = "docs/scenario.md is stale; run python docs/make_scenario.py"
    assert (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8") == maker.page(), stale


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_the_catalogue_names_every_policy():
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    assert [name for name in POLICIES.ours if f"`{name}`" not in page] == []


def test_the_python_of_the_page_on_data_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    pytest.importorskip("torch")
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    stream, model = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(stream, "data.md", "exec"), {})
    assert float(capsys.readouterr().out) > 0.5  # three classes: chance is 0.33
    Path("net.py").write_text(model)
    overrides = ["data.dataset=waves.npz", "learning.model=net.py:Net", "system.rounds=4"]
    assert fs.simulate(fs.preset("tiny", overrides)).about["engine"]["name"] == "torch"


@pytest.mark.mnist
def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first, policy = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(first, "README.md", "exec"), {})
    assert fs.verify("runs/first").ok
    Path("my_policy.py").write_text(policy)
    run = fs.simulate(fs.preset("tiny", ["policy.name=my_policy.py:MostData", "learning.engine=none"]))
    assert run.rounds["scheduled"].sum() > 0
