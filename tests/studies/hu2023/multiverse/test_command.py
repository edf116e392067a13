"""`feelstream multiverse`: its runs on a small world, and the pages in the repository."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from feelstream import cli
from feelstream.experiment import Arm, Plan, Results, execute
from feelstream.scenario.files import from_dict
from feelstream.studies.hu2023 import paper, stored
from feelstream.studies.hu2023.multiverse import energy, explorer, page, playing
from feelstream.studies.hu2023.multiverse.race import Wanted
from feelstream.studies.hu2023.multiverse.settings import Specification, schedules, seeds

DOCS = Path(__file__).parents[4] / "docs"
TINY = ("system.devices=8", "system.rounds=6", "data.dataset=synthetic", "data.samples=400")


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")

    def played(plan: Plan) -> Results:
        own = [
            Arm(arm.label, from_dict(arm.scenario.as_dict(), (*TINY, *_small(arm.scenario.learning.engine))))
            for arm in plan.arms
        ]
        return execute(Plan(plan.name, tuple(own), plan.seeds), base / plan.name, executor=threads)

    with ThreadPoolExecutor(1) as threads:
        yield played


def _small(engine: str) -> tuple[str, ...]:
    return () if engine == "none" else ("learning.engine=native", "learning.model=softmax")


def test_a_seed_of_schedules_becomes_rows_of_savings(play, tmp_path):
    """Under `any`, random is played once for both readings and all widths."""
    wanted = {each: [0, 1] for each in schedules() if each.T == "15" and each.eligible == "any"}
    energy.add(tmp_path / "table.csv", energy._played(wanted, seeds()[0], play))
    known = energy.Energy(energy.read(tmp_path / "table.csv"))
    assert set(known.savings) == set(wanted)
    for schedule in wanted:
        assert known.missing(schedule, 0, seeds()[0]) == []
        assert all(-300 < value < 100 for value in known.values(schedule, 0, 1))


def test_a_turn_of_the_race_becomes_rows_with_curves(play, tmp_path):
    own = Specification("any", "per_round", "0.125", "25", "ascending", "short", "one")
    arms = (paper.random("iid", 2), paper.metric("2digit", "dissimilarity"))
    rows = list(playing._played([Wanted(own.read_by(arm), arm, seeds()[0]) for arm in arms], play))
    assert {row["arm"] for row in rows} == set(arms)
    for row in rows:
        assert row["specification"] == str(own.read_by(str(row["arm"])))
        assert len(str(row["rounds"]).split()) == len(str(row["accuracy"]).split()) > 1


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """Where the command has written the pages of the repository's tables, without running anything; what it told."""
    out = tmp_path_factory.mktemp("docs")
    words = ["multiverse", "--turns", "0", "--tables", str(DOCS / "results"), "--docs", str(out), "--json"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    return out, json.loads(done.stdout)


def test_the_page_in_the_repository_is_what_the_tables_say(written):
    out, told = written
    text = (DOCS / page.PAGE).read_text(encoding="utf-8")
    assert text == (out / page.PAGE).read_text(encoding="utf-8"), f"make it again: {page.COMMAND} --turns 0"
    assert told["summary"] in text
    for picture in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (DOCS / picture).is_file()


def test_the_explorer_in_the_repository_is_what_the_tables_say_and_asks_for_no_network(written):
    out, _ = written
    text = (DOCS / explorer.PAGE).read_text(encoding="utf-8")
    assert text == (out / explorer.PAGE).read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|@import|fetch\(|import\(", text)
    assert len(text) < 1_000_000


def test_every_row_is_of_a_registered_seed():
    table = energy.read(DOCS / "results" / playing.ENERGY)
    assert table["seed"].is_in(list(seeds())).all()
    learned = stored.read(DOCS / "results" / playing.LEARNED, ("specification", "arm", "seed", *stored.CURVES))
    assert learned["seed"].is_in(list(seeds())).all()
