"""The leaderboard: its words, its plot and the command that makes its page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from builders import small
from compared import spread, summary_of
from typer.testing import CliRunner

from feelstream import cli
from feelstream.experiment import comparison
from feelstream.experiment.measures import cells, measured, pareto_points
from feelstream.experiment.tuning import with_weight
from feelstream.report import comparison as board
from feelstream.report.charts import TITLE
from feelstream.scenario.files import preset
from feelstream_studies.leaderboard.discussion import discussion
from feelstream_studies.leaderboard.entries import BOARD, TUNING_SEEDS, energy_j, entries, match_energy

FEW = ("--policy", "lyapunov", "--policy", "random", "--policy", "select_all")
SHORT = ("--set", "system.rounds=4", "--set", "learning.steps=2")


def test_the_front_and_the_words_follow_from_the_numbers(three_arms):
    plan, runs, summary = three_arms
    assert {point.arm: point.on_front for point in pareto_points(summary)} == {
        "dear": True,
        "random": False,
        "cheap": True,
    }
    said = discussion(plan, runs, summary)
    assert said == [
        "Highest accuracy at the end: `dear` (91.00 ± 1.96 %); all others are worse.",
        "Least energy: `cheap` (0.400 ± 0.006 mJ); all others are worse.",
        "On the Pareto front of the means, from the cheapest: `cheap` (0.4 mJ, 30.0 %), `dear` (4 mJ, 91.0 %).",
        "Against `random`, accuracy is better for `dear` and worse for `cheap`; energy is better for `dear`, `cheap` "
        "and worse for none; for the rest, no difference is shown.",
        "Within the energy budget on average: `cheap`; all others exceed it or may do so.",
        "1 of 3 policies reached 80 % with every seed. On average, `random` took the fewest rounds (25.0) and `random` "
        "the least energy (125 mJ per device).",
        "No policy reached 90 % with any seed.",
        "Admission dropped the most under `random`: 3 % of its scheduled devices.",
    ]


def test_entries_that_came_to_the_same_are_one_point_of_the_front():
    values = {
        name: {"energy_j": spread(e, 1e-5), "late_accuracy": spread(0.9, 0.01)}
        for name, e in (("a", 1e-3), ("b", 1e-3))
    }
    plan, runs, summary = summary_of(values)
    said = discussion(plan, runs, summary)
    assert "On the Pareto front of the means, from the cheapest: `a` = `b` (1 mJ, 90.0 %)." in said


def test_without_learning_there_is_no_front_and_no_word_of_accuracy():
    values = {name: {"energy_j": spread(e, 1e-5), "drops": [0.0] * 5} for name, e in (("a", 1e-3), ("b", 2e-3))}
    values["b"]["energy_j"] = spread(2e-3, 3e-5)
    plan, runs, summary = summary_of(values)
    assert board.worlds(plan, summary) == []
    assert discussion(plan, runs, summary) == [
        "Least energy: `a` (1.00 ± 0.02 mJ); all others are worse.",
        "Admission dropped nobody.",
    ]
    assert "accuracy" not in board.comparison_section(plan, summary).html


def test_the_leaderboard_command_makes_its_page(tmp_path: Path):
    done = CliRunner().invoke(
        cli.app,
        ["leaderboard", "tiny", *FEW, *SHORT, "--seeds", "2", "--workers", "1", "--out", str(tmp_path / "out"),
         "--eligible", "any", "--docs", str(tmp_path / "docs")],
        env={"COLUMNS": "160"},
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    text = (tmp_path / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    assert re.search(r"Runs of \d{4}-\d\d-\d\d, 2 seeds", text)
    assert f"feelstream leaderboard tiny --seeds 2 --eligible any {' '.join(FEW)} {' '.join(SHORT)} --docs docs" in text
    assert "Changed from the scenario: `data.eligible=any`, `system.rounds=4`, `learning.steps=2`." in text
    whole = text.partition("## tiny, eligible: any")[2]
    assert len(re.findall(r"^\| `(?:lyapunov|random|select_all)` \|", whole, re.M)) == 6
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[:3] == ["## Within the budget", "## Cost to target", "## Robustness"]
    assert "- `tiny`, eligible any: 3 entries, 2 seeds, " in text
    opening = text.split("\n\n")[1]
    assert re.match(r"The most accurate policies: .* With 2 seeds this is no ranking yet\.$", opening)
    for picture in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / "docs" / picture).stat().st_size < 200_000
    out = tmp_path / "out" / "tiny-any"
    summary = pl.read_csv(out / "summary.csv")
    shown = cells(summary, "select_all", measured(summary, "resources"), 2)
    assert " | ".join(shown) in text
    page = (out / "report.html").read_text(encoding="utf-8")
    assert 'id="leaderboard"' in page
    assert TITLE in page


@pytest.mark.slow
def test_the_leaderboard_as_json_is_all_that_is_printed_and_its_page_says_where_there_is_nothing(tmp_path: Path):
    words = ["leaderboard", "tiny", "--policy", "lyapunov", "--policy", "random", "--set", "learning.engine=none"]
    words += [*SHORT, "--seeds", "2", "--workers", "1", "--out", str(tmp_path), "--json", "--docs", str(tmp_path)]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [each["eligible"] for each in told["boards"]] == ["any", "with_data"]
    for each in told["boards"]:
        assert {row["arm"] for row in each["summary"]} == {"lyapunov", "random"}
        assert each["failures"] == []
        assert Path(each["report"]).is_file()
    text = Path(told["docs"]).read_text(encoding="utf-8")
    for nothing in ("Nothing was learned", "No policy kept", "No policy reached 80 %", "No policy is on all boards"):
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
