"""The leaderboard: its words, its plot and the command that makes its page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from builders import small
from commands import invoked
from compared import cells, spread, summary_of

from feelstream.experiment import comparison
from feelstream.experiment.measures import measured, pareto_points
from feelstream.experiment.tuning import with_weight
from feelstream.report import writing as board
from feelstream.report.charts import TITLE
from feelstream.scenario.files import preset
from feelstream_studies import tables
from feelstream_studies.leaderboard import page
from feelstream_studies.leaderboard.entries import BOARD, TUNING_SEEDS, energy_j, entries, match_energy

DOCS = Path(__file__).parents[3] / "docs"
FEW = ("--policy", "lyapunov", "--policy", "random", "--policy", "select_all")
SHORT = ("--set", "system.rounds=4", "--set", "learning.steps=2")


def test_the_points_of_the_chart_know_their_front(three_arms):
    _, _, summary = three_arms
    front = {point.arm: point.on_front for point in pareto_points(summary)}
    assert front == {"dear": True, "random": False, "cheap": True}


def test_verdicts_are_those_of_the_paired_tests(three_arms):
    _, runs, _ = three_arms
    arms = ["dear", "random", "cheap"]
    assert page._verdicts(runs, "late_accuracy", "random", arms) == {"dear": "better", "cheap": "worse"}
    assert page._verdicts(runs, "energy_j", "random", arms) == {"dear": "better", "cheap": "better"}
    assert page._verdicts(runs, "late_accuracy", "nobody", arms) == {}


def test_without_learning_there_is_no_front_and_no_word_of_accuracy():
    values = {name: {"energy_j": spread(e, 1e-5), "drops": [0.0] * 5} for name, e in (("a", 1e-3), ("b", 2e-3))}
    plan, _, summary = summary_of(values)
    assert board.fronts(plan, summary) == []
    assert "accuracy" not in board.comparison_section(plan, summary, []).html


def test_the_page_is_made_from_its_table() -> None:
    stale = "docs/leaderboard.md is stale; run python docs/make_results.py"
    assert (DOCS / "leaderboard.md").read_text(encoding="utf-8") == page.from_tables(DOCS), stale
    assert len((DOCS / "leaderboard.md").read_text(encoding="utf-8").split()) <= 1200


def test_a_colour_for_each_policy_that_the_page_is_about() -> None:
    (figure,) = page.pictures(DOCS).values()
    for axes in (shown := figure.axes):
        names = {str(each.get_label()) for each in axes.containers}
        assert {"balanced_joint", "myopic_energy", "lyapunov", "random", "other entries"} <= names
    assert [axes.get_title(loc="left") for axes in shown] == ["paper-3digit", "stress"]


def test_the_leaderboard_command_makes_its_page(tmp_path: Path):
    words = [*FEW, *SHORT, "--seeds", "2", "--workers", "1", "--eligible", "any"]
    invoked("leaderboard", "tiny", *words, "--out", tmp_path / "out", "--docs", tmp_path / "docs")
    text = (tmp_path / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    assert re.search(r"Runs of \d{4}-\d\d-\d\d, seeds 0–1, commit \w+", text)
    assert f"feelstream leaderboard tiny --seeds 2 --eligible any {' '.join(FEW)} {' '.join(SHORT)} --docs docs" in text
    assert "tiny, any: learning.eval_every" not in text
    assert "Changed from the scenarios: tiny, any: data.eligible=any system.rounds=4 learning.steps=2." in text
    assert re.search(r"^In `tiny`, .* of 3 entries|^In `tiny`, no entry kept", text, re.M)
    assert "With 2 seeds this is no ranking yet." in text
    assert text == page.from_tables(tmp_path / "docs")
    assert (tmp_path / "docs" / "figures" / "leaderboard.png").stat().st_size < 200_000
    out = tmp_path / "out" / "tiny-any"
    summary = pl.read_csv(out / "summary.csv")
    ((_, stored),) = page.summaries(tables.read(tmp_path / "docs" / "leaderboard.csv").rows).values()
    for shown in (measured(summary, "resources"), measured(summary, "learning")):
        assert cells(stored, "select_all", shown, 2) == cells(summary, "select_all", shown, 2)
    report = (out / "report.html").read_text(encoding="utf-8")
    assert 'id="leaderboard"' in report
    assert TITLE in report


@pytest.mark.slow
def test_the_leaderboard_as_json_is_all_that_is_printed_and_its_page_says_where_there_is_nothing(tmp_path: Path):
    words = ["leaderboard", "tiny", "--policy", "lyapunov", "--policy", "random", "--set", "learning.engine=none"]
    words += [*SHORT, "--seeds", "2", "--workers", "1", "--out", str(tmp_path), "--json", "--docs", str(tmp_path)]
    told = json.loads(invoked(*words).stdout)
    assert [each["eligible"] for each in told["boards"]] == ["any", "with_data"]
    for each in told["boards"]:
        assert {row["arm"] for row in each["summary"]} == {"lyapunov", "random"}
        assert each["failures"] == []
        assert Path(each["report"]).is_file()
    text = Path(told["docs"]).read_text(encoding="utf-8")
    for nothing in ("Nothing was learned", "No policy reached 80 % with every seed in `tiny, any`"):
        assert nothing in text


def test_the_board_is_of_scenarios_that_exist():
    for name, changes in BOARD.items():
        scenario = preset(name, changes)
        assert scenario.system.rounds % scenario.learning.eval_every == 0


@pytest.mark.slow
def test_a_board_enters_variants_and_weights_at_equal_energy():
    """The weight found for `balanced` makes it spend what `lyapunov` does, within what two digits can say."""
    few = ["data.dataset=synthetic", "system.rounds=10", "system.devices=10", "learning.engine=none"]
    entered = entries("paper-iid", few)
    assert entered[0] == "all"
    assert "fedcs(size=10)" in entered
    (found,) = re.findall(r"balanced\(price=([^)]+)\)", " ".join(entered))
    weight = float(found)
    spent = {
        policy: energy_j(preset("paper-iid", [*few, *policy]), TUNING_SEEDS)
        for policy in ((), ("policy.name=balanced", f"policy.price={weight}"))
    }
    first, second = spent.values()
    assert 0.8 < first / second < 1.25
    comparison.arms("paper-iid", entered, few)


def test_matching_finds_a_known_weight() -> None:
    """cap on six devices: the energy of V = 1e-3 is found again, with a V that gives the same within a tenth."""
    scenario = small("policy.cardinality=cap", "policy.V=0.001", "system.rounds=40")
    target = energy_j(scenario, (3, 4))
    weight = match_energy(scenario, target, (3, 4))
    assert energy_j(with_weight(scenario, weight), (3, 4)) == pytest.approx(target, rel=0.1)
