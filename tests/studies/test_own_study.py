"""The study of docs/how-to/study.md: run from its file, reported again, and known by its name once it is installed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from commands import invoked
from report_page import Page
from small_plans import tables

from feelstream import plugins
from feelstream.errors import ScenarioError
from feelstream.experiment import load
from feelstream.studies.registry import study_named, study_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-study"
FILE = f"{EXAMPLE / 'own_study.py'}:STUDY"
SHORT = ("--seeds", "3", "--set", "system.rounds=6", "--set", "learning.steps=2", "--workers", "1")
MADE = ("report.html", "claims.json", "curves.csv", "figures/fig1.pdf", "figures/fig1a.png", "figures/pareto.png")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("study") / "out"
    return out, invoked("study", FILE, *SHORT, "--out", out).stdout


def files(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in MADE}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip leaves of the example's pyproject.toml, where Python looks for packages."""
    about = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = tmp_path / "own_study-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    points = about["entry-points"]["feelstream.studies"]
    lines = [f"{name} = {where}\n" for name, where in points.items()]
    (metadata / "entry_points.txt").write_text(f"[feelstream.studies]\n{''.join(lines)}")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_page_has_the_studys_sections_and_those_of_any_comparison(made):
    out, said = made
    text = (out / "report.html").read_text(encoding="utf-8")
    places = [text.index(f'id="{key}"') for key in ("glance", "claims", "question", "leaderboard", "summary", "curves")]
    assert places == sorted(places)
    words = Page(text).words
    assert "A paper of our own" in words
    assert "A. Author, “A paper of our own”, 2026. The model is that of C.-H. Hu" in " ".join(words)
    assert f"feelstream study {FILE} --seeds 3 --set system.rounds=6 --set learning.steps=2" in words
    assert said.rstrip().splitlines()[-1].split() == ["report", str(out / "report.html")]


def test_the_claims_are_what_the_runs_say(made):
    out, said = made
    claims = {claim["key"]: claim for claim in json.loads((out / "claims.json").read_text(encoding="utf-8"))["claims"]}
    results = load(out)
    spent, base = (
        [results.run(arm, seed).rounds["energy_mean_cum_j"][-1] for seed in range(3)] for arm in ("lyapunov", "random")
    )
    saved = [100 * (1 - ours / other) for ours, other in zip(spent, base, strict=True)]
    assert claims["saving"]["mean"] == pytest.approx(sum(saved) / 3)
    assert claims["accuracy"]["seeds"] == 3
    for claim in claims.values():
        assert claim["verdict"] in said


def test_a_stored_plan_says_whose_it_is_and_runs_no_code(made, tmp_path, caplog):
    """Without the study the results have the page of any comparison, and a sentence says what is missing."""
    out, _ = made
    assert json.loads((out / "plan.json").read_text(encoding="utf-8"))["study"] == "own-study"
    before = files(out)
    assert study_of(load(out).plan) is None
    assert "study 'own-study', which is not installed" in caplog.text
    invoked("report", str(out))
    assert 'id="claims"' not in (out / "report.html").read_text(encoding="utf-8")
    invoked("report", str(out), "--study", FILE)
    assert files(out) == before


@pytest.mark.usefixtures("installed")
def test_an_installed_study_is_known_by_its_name(made):
    out, _ = made
    before, runs = files(out), tables(out / "runs")
    invoked("report", str(out))
    assert files(out) == before
    invoked("study", "own-study", *SHORT, "--out", str(out))
    assert tables(out / "runs") == runs
    assert study_named("own-study").title == "A paper of our own"


def test_the_docs_show_the_file_as_it_is():
    page = (EXAMPLE.parents[1] / "docs" / "how-to" / "study.md").read_text(encoding="utf-8")
    shown = page.partition('```python title="own_study.py"\n')[2].partition("```")[0]
    assert shown
    assert (EXAMPLE / "own_study.py").read_text(encoding="utf-8").endswith(shown)


def test_a_study_without_a_plan_names_its_commands(monkeypatch):
    assert "its commands: feelstream reproduce" in str(invoked("study", "hu2023", code=1).exception)
    with pytest.raises(ScenarioError, match="did you mean 'hu2023'"):
        study_named("hu2032")
    monkeypatch.setattr(plugins, "entry_points", lambda **of: ())
    with pytest.raises(ScenarioError, match=r"'hu2023' is not installed; those of the repository come with"):
        study_named("hu2023")
    with pytest.raises(ScenarioError, match=r"does not fulfil the contract of feelstream\.studies"):
        study_named(f"{EXAMPLE / 'own_study.py'}:page")
