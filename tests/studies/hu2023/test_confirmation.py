"""The confirmation: what was fixed beforehand, the table of runs, and the page that is made from it."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from feelstream import cli
from feelstream.experiment import Arm, Plan, Results, execute
from feelstream.experiment.plan import flat
from feelstream.scenario.files import from_dict, preset
from feelstream.studies.claims import Verdict
from feelstream.studies.hu2023 import paper
from feelstream.studies.hu2023.confirmation import playing, table, writing
from feelstream.studies.hu2023.confirmation.candidates import (
    CANDIDATES,
    LITERAL,
    Candidate,
    figures,
    widths,
    without_empty,
)
from feelstream.studies.hu2023.confirmation.evidence import Confirmed, confirmed, saving
from feelstream.studies.hu2023.confirmation.finalists import Finalist, finalists

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "docs" / "results" / "confirmation.csv"
TINY = (
    *("system.devices=8", "system.rounds=6", "data.dataset=synthetic", "data.samples=400"),
    *("learning.engine=native", "learning.model=softmax"),
)


def test_the_literal_presets_are_the_literal_specification():
    for label in figures():
        name, own = paper._recipes()[label]
        by_preset = flat(preset(name.replace("paper-", "literal-"), own).as_dict())
        by_candidate = flat(Candidate("literal", "per_round").scenario(label).as_dict())
        assert {key for key in by_preset if by_preset[key] != by_candidate[key]} <= {"learning.eval_every"}
    plan = paper.plan("all", [0], specification=LITERAL)
    assert all(arm.scenario.system.rounds == 25 for arm in plan.arms)


def test_both_readings_of_fresh_data_differ_in_nothing_else():
    for label in (*figures(), *widths(), *without_empty()):
        one, other = (
            flat(Candidate("literal", fresh).scenario(label).as_dict()) for fresh in ("per_round", "since_use")
        )
        assert {key for key in one if one[key] != other[key]} == {"data.fresh"}


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> tuple[Path, list[int]]:
    """Two seeds of two arms under both readings on a small world, and how many runs each call made."""
    base = tmp_path_factory.mktemp("confirmation")
    labels, counts = (paper.proposed("iid", 2), paper.random("iid", 2)), []

    def play(plan: Plan) -> Results:
        counts.append(len(plan.arms))
        small = Plan(
            plan.name, tuple(Arm(arm.label, from_dict(arm.scenario.as_dict(), TINY)) for arm in plan.arms), plan.seeds
        )
        return execute(small, base / "out", executor=threads)

    with ThreadPoolExecutor(1) as threads:
        for seeds in ((2000,), (2000, 2001)):
            for _ in playing.confirm(base / "table.csv", CANDIDATES[:2], labels, seeds, play):
                pass
    return base / "table.csv", counts


def test_a_run_of_the_table_is_never_made_again_and_random_once_for_both_readings(played):
    path, counts = played
    assert counts == [3, 3]  # per seed: proposed under two readings, random once
    found = table.read(path)
    assert len(found) == 6
    assert set(found.filter(arm=paper.random("iid", 2))["fresh"]) == {table.ANY}


def test_the_table_gives_back_the_curves(played):
    path, _ = played
    rounds = table.rounds_of(table.read(path), "literal", "per_round")
    assert set(rounds["arm"]) == {paper.proposed("iid", 2), paper.random("iid", 2)}
    assert rounds["round"].unique().sort().to_list() == [3, 6]
    assert rounds["accuracy"].is_between(0, 1).all()
    assert rounds["energy_mean_cum_j"].is_between(1e-4, 1).all()
    found = Confirmed(CANDIDATES[0], table.read(path)).findings
    assert {finding.claim.key for finding in found} == {"1a-n2-mean", "1a-n2-end", "1c-n2-saving"}


def test_the_order_in_which_rows_are_added_leaves_no_trace(played, tmp_path):
    path, _ = played
    rows = list(table.read(path).iter_rows(named=True))
    for row in reversed(rows):
        table.add(tmp_path / "again.csv", [row])
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def ended_with() -> list[Finalist]:
    """The finalists of the search, by its tables in the repository."""
    return finalists(TABLE.parent)


def test_the_page_in_the_repository_is_what_the_table_says(ended_with):
    """Every number on it; pictures aside, which are made by the same call."""
    found = confirmed(table.read(TABLE), CANDIDATES)
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    page = writing.page(found, writing.figures(found[0]), TABLE.name, confirmed(table.read(TABLE), ended_with))
    assert text == page, "make it again: " + writing.COMMAND
    for key in writing.figures(found[0]):
        assert (ROOT / "docs" / "figures" / f"{key}.png").is_file()


def test_every_row_is_of_a_specification_and_a_seed_that_were_fixed_beforehand(ended_with):
    found = table.read(TABLE)
    assert found["seed"].is_between(2000, 2019).all()
    assert set(found["arm"]) <= {*figures(), *widths(), *without_empty()}
    assert set(found["settings"]) == {"literal", "fitted", *(each.settings for each in ended_with)}
    for each in ended_with:
        assert set(found.filter(settings=each.settings)["arm"]) == set(each.arms)
    assert found.select("settings", "fresh", "arm", "seed").is_duplicated().sum() == 0


def test_the_glance_counts_the_verdicts_of_the_long_tables():
    first = confirmed(table.read(TABLE), CANDIDATES)[0]
    row = next(line for line in writing.at_a_glance([first]).splitlines() if line.startswith("| literal"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    counts = [int(each) for each in re.findall(r"\d+", cells[2])]
    assert counts[3] <= counts[2]
    assert sum(counts[:3]) == len([finding for finding in first.findings if not finding.claim.fitted])
    assert counts[0] == len(first.with_verdict(Verdict.REPRODUCED))
    assert cells[3].startswith(f"{saving(first.findings, 2):.0f} %")


def test_the_opening_says_how_many_undecided_claims_their_long_table_speaks_against():
    """Counted from the cells of that table: "ours [low, high]" against 0, or −2 pp where a claim is to be as good."""
    found = confirmed(table.read(TABLE), CANDIDATES)
    wrong = excluded = 0
    for row in writing.claims_table(found[0].findings).replace("−", "-").splitlines():
        cells = row.split(" | ")
        if cells[-1] == "undecided |":
            least = -2.0 if " as accurate as " in cells[1] else 0.0
            ours = [(float(mean), float(high)) for mean, high in re.findall(r"(\S+) \w+ \[\S+, (\S+)\]", cells[3])]
            wrong += min(mean for mean, _ in ours) <= least
            excluded += min(high for _, high in ours) < least
    assert excluded > 0
    assert f"{wrong} of these have their estimate on the wrong side" in writing.opening(found)
    assert f"in {excluded} the plain 95 % interval excludes the claim" in writing.opening(found)


def test_the_command_writes_the_page_without_running_anything(played, tmp_path):
    path, _ = played
    words = ["confirm", "--seeds", "0", "--table", str(path), "--docs", str(tmp_path / "docs"), "--json"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert set(told["claims"]) == {"literal, per_round", "literal, since_use"}
    assert "## How these settings were chosen" in (tmp_path / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert isinstance(table.read(path), pl.DataFrame)
