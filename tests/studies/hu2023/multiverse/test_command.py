"""`feelstream multiverse` from end to end on a small one, with real workers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from feelstream import cli
from feelstream.errors import ScenarioError
from feelstream.studies.hu2023.claims import energy_claims, figure_claims

ONE = ("empty_used=zero", "empty_fresh=zero", "bounds=truncate", "sigma=0.1", "lr=0.05", "batch=8", "steps=1,2")
TINY = (
    *("system.devices=8", "data.dataset=synthetic", "data.samples=400"),
    *("learning.engine=native", "learning.model=softmax"),
)


def words(out: Path, *more: str) -> list[str]:
    options = [word for level in (*ONE, "T=5,6") for word in ("--levels", level)]
    options += [word for override in TINY for word in ("--set", override)]
    sizes = ["--seeds", "2", "--learning", "2", "--search", "1", "--learning-seeds", "2", "--workers", "2"]
    return ["multiverse", *sizes, *options, "--out", str(out), *more]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("multiverse")
    done = CliRunner().invoke(cli.app, words(out / "results", "--docs", str(out / "docs")), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return out, done.stdout


@pytest.mark.slow
def test_every_claim_is_judged_under_every_specification(made):
    out, said = made
    table = pl.read_parquet(out / "results" / "outcomes.parquet")
    energy = [claim.key for claim in energy_claims()]
    assert "8 schedules, 2 seeds" in said  # eligible × fresh × T
    assert table.filter(pl.col("claim").is_in(energy)).group_by("claim").len()["len"].to_list() == [8] * len(energy)
    others = {claim.key for claim in figure_claims()} - set(energy)
    learned = table.filter(pl.col("claim").is_in(others)).group_by("claim").len()
    assert set(learned["claim"]) == others
    assert len(set(learned["len"])) == 1
    assert 2 <= learned["len"][0] <= 4


@pytest.mark.slow
def test_the_page_shows_a_curve_for_each_claim(made):
    out, said = made
    page = (out / "docs" / "multiverse.md").read_text(encoding="utf-8")
    pictures = re.findall(r"\]\((figures/[^)]+)\)", page)
    assert len(pictures) == len(figure_claims())
    for picture in pictures:
        assert 5_000 < (out / "docs" / picture).stat().st_size < 200_000
    assert "feelstream multiverse --seeds 2 --learning 2 --search 1 --learning-seeds 2" in page
    first = said[said.index("Of 8 schedules") :].split("\n\n")[0]
    assert " ".join(first.split()) in page


@pytest.mark.slow
def test_shares_on_the_page_are_those_of_the_table(made):
    out, _ = made
    table = pl.read_parquet(out / "results" / "outcomes.parquet").filter(claim="1c-n2-saving")
    page = (out / "docs" / "multiverse.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| 1c | i.i.d., n = 2"))
    share = table["comes_out"].mean()
    assert isinstance(share, float)
    assert f"| 8 | {100 * share:.0f} % |" in row


@pytest.mark.slow
def test_a_second_call_plays_nothing_again_writes_the_same_and_tells_it_as_json(made):
    out, _ = made
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("results/runs/*/rounds.parquet")}
    outcomes = (out / "results" / "outcomes.csv").read_bytes()
    done = CliRunner().invoke(cli.app, words(out / "results", "--json"))
    assert done.exit_code == 0, done.output
    assert {path: path.stat().st_mtime_ns for path in out.glob("results/runs/*/rounds.parquet")} == stamps
    assert (out / "results" / "outcomes.csv").read_bytes() == outcomes
    told = json.loads(done.stdout)  # what is told on the way is on standard error
    assert {row["claim"] for row in told["claims"]} == {claim.key for claim in figure_claims()}
    for row in told["claims"]:
        assert 0 <= row["clear"] <= row["comes_out"] <= 1
        assert row["low"] <= row["median"] <= row["high"]
    assert told["failures"] == []
    assert Path(told["outcomes"]).is_file()


@pytest.mark.slow
def test_random_is_played_once_for_all_readings_of_importance(made):
    out, _ = made
    runs = [path.name for path in (out / "results" / "runs").iterdir() if path.is_dir()]
    schedules = [name for name in runs if name.startswith("random-iid-k8-n4-seed0")]
    assert len(schedules) < len([name for name in runs if name.startswith("lyapunov-iid-k8-n4-seed0")])


def test_a_wrong_level_is_refused_before_anything_is_played(tmp_path):
    done = CliRunner().invoke(cli.app, ["multiverse", "--levels", "rounds=3", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, ScenarioError)
    assert "there is no such setting" in str(done.exception)
    assert not (tmp_path / "out").exists()
