"""The study of budgets: what it runs, what it finds in made-up runs, and that its page says what is committed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from feelstream.experiment import execute
from feelstream.learning.server.base import Remembered
from feelstream.learning.server.wrappers import Limited, Smoothed
from feelstream.scenario.files import load
from feelstream.studies.registry import study_named
from feelstream_studies import tables
from feelstream_studies.within_budget.configurations import (
    EVERYONE_LONGER,
    FEW,
    LONGER,
    OURS,
    PLAIN,
    POLICIES,
    REFERENCE,
    SCENARIOS,
    WITH,
    Key,
    plan,
)
from feelstream_studies.within_budget.figures import SAME, overview_figure
from feelstream_studies.within_budget.findings import MEASURES, held, table_of
from feelstream_studies.within_budget.page import from_tables, page, summary, text, write_docs

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
ABOUT = {"Seeds": "0–9", "Runs": "2026-11-19", "Commit": "abc", "Command": "feelstream study within-budget"}
SMALL = ("data.dataset=synthetic", "system.rounds=4", "system.devices=5", "learning.engine=none")


def test_every_policy_is_run_in_every_scenario_and_labels_are_read_back() -> None:
    found = plan((1, 2))
    keys = [Key.of(arm.label) for arm in found.arms]
    assert [key.label for key in keys] == [arm.label for arm in found.arms]
    assert {key.scenario for key in keys} == set(SCENARIOS)
    for key, arm in zip(keys, found.arms, strict=True):
        if "size=K" in key.policy:
            assert getattr(arm.scenario.policy, "size", None) == arm.scenario.system.devices
    assert len(keys) == len(SCENARIOS) * len(POLICIES)
    remembering = [arm for arm in found.arms if WITH in arm.label]
    assert {arm.scenario.learning.server.plugin_name() for arm in remembering} == {"smoothed"}
    assert len(remembering) == 6 * len(SCENARIOS)
    ours = next(arm for arm in found.arms if arm.label == f"har / {OURS}").scenario.learning.server
    assert ours == Smoothed(weight=0.5, inner=Remembered(discount=0.3))
    longer = [arm for arm in found.arms if Key.of(arm.label).policy in (LONGER, EVERYONE_LONGER)]
    assert len(longer) == 2 * len(SCENARIOS)
    memory = Remembered(discount=0.3, server_learning_rate=1.4)
    for arm in longer:
        assert arm.scenario.learning.server == Smoothed(weight=0.5, inner=Limited(times=6.0, window=20, inner=memory))
    fashion = next(arm for arm in found.arms if arm.label == f"fashion-3digit / {OURS}")
    assert fashion.scenario.data.dataset == "fashion-mnist"


def test_policies_that_no_margin_is_about_have_fewer_seeds() -> None:
    found = plan(range(4000, 4020))
    counts = {Key.of(arm.label): len(found.seeds_of(arm)) for arm in found.arms}
    for scenario in SCENARIOS:
        for policy in (REFERENCE, LONGER, OURS, PLAIN, EVERYONE_LONGER):
            assert counts[Key(scenario, policy)] == 20
    assert counts[Key("paper-3digit", "lyapunov")] == counts[Key("long-iid", f"{REFERENCE}{WITH}memory")] == FEW


def made_up(gaps: dict[str, np.ndarray]) -> pl.DataFrame:
    """Runs in which our policy loses so much in each scenario, seed by seed, in both measures of accuracy."""
    rows = []
    for scenario, gap in gaps.items():
        for seed, lost in enumerate(gap):
            shared = {"scenario": scenario, "seed": seed, "devices_over_budget": 0.0}
            everyone = {"late_accuracy": 0.9, "accuracy_area": 0.7, "energy_j": 0.4, "energy_over_budget": 800.0}
            rows.append(shared | everyone | {"policy": REFERENCE, "worst_device": 900.0})
            ours = {"late_accuracy": 0.9 - lost, "accuracy_area": 0.7 - lost, "energy_j": 4e-4}
            rows.append(shared | ours | {"policy": OURS, "energy_over_budget": 0.8, "worst_device": 0.95})
    return pl.DataFrame(rows).select("scenario", "policy", "seed", *MEASURES)


def test_margins_are_judged_by_a_one_sided_paired_test_with_holms_correction() -> None:
    """a loses 0.2 ± 0.1 points, b 1.5: of its two margins b has only that of 2 points over the run."""
    rng = np.random.default_rng(5)
    gaps = {"a": 0.002 + 0.001 * rng.standard_normal(10), "b": 0.015 + 0.001 * rng.standard_normal(10)}
    table = table_of(made_up(gaps))
    assert held(table, OURS, "late_accuracy") == (["a"], ["b"])
    assert held(table, OURS, "accuracy_area") == (["a", "b"], [])
    row = table.filter(scenario="b", policy=OURS).row(0, named=True)
    test: Any = stats.ttest_1samp
    p_of = {
        (name, margin): float(test(margin - gap, 0.0, alternative="greater").pvalue)
        for name, gap in gaps.items()
        for margin in (0.01, 0.02)
    }
    p = sorted(p_of.values())
    place = p.index(p_of["b", 0.02])
    assert row["accuracy_area_p"] == pytest.approx(max((4 - i) * p[i] for i in range(place + 1)), rel=1e-6)
    assert row["late_accuracy_gap"] == pytest.approx(-gaps["b"].mean())
    said = summary(table)
    assert "ends 0.2 to 1.5 points below training everyone with FedAvg." in said
    assert "spends 1/1000 to 1/1000 of the energy of training everyone" in said
    assert "No device exceeded its budget; the worst device, mean over seeds, spent 0.95 of it." in said


def rows_of(said: str, heading: str) -> dict[str, list[str]]:
    """Cells of the first table after a heading, by scenario."""
    table = said.partition(heading)[2].partition("\n\n##")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return {line.split("|")[1].strip(" `"): [cell.strip() for cell in line.split("|")[2:-1]] for line in lines}


def test_the_page_has_gaps_in_bold_where_a_larger_loss_is_excluded() -> None:
    """a loses 0.2 points and b 1.5, of which only the margin of 2 points over the run is known to hold."""
    rng = np.random.default_rng(5)
    gaps = {"a": 0.002 + 0.001 * rng.standard_normal(10), "b": 0.015 + 0.001 * rng.standard_normal(10)}
    runs = made_up(gaps).with_columns(pl.col("policy").replace({OURS: LONGER}))
    table = table_of(runs)
    said = text(tables.Table(table, ABOUT))
    ends = rows_of(said, "worst device / budget |")
    assert {name: ends[name][4].startswith("**−") for name in gaps} == {"a": True, "b": False}
    assert [ends[name][5] for name in gaps] == ["1/1000", "1/1000"]
    whole = rows_of(said, "## Over the whole run")
    assert [cells[1].startswith("**−") for cells in whole.values()] == [True, True]
    assert "at the end is excluded in 1 of 2 scenarios (not in `b`), and one of" in said
    assert "over the run in 2 of 2. No margin" in said
    assert "real cores" not in said  # whose energies were not given
    accuracy, energy = overview_figure(table).axes[:2]
    assert [label.get_text() for label in accuracy.get_yticklabels()] == ["a", "b"]
    assert energy.get_xscale() == "log"


def test_the_gap_to_everyone_with_the_same_server_is_in_the_table() -> None:
    """Everyone gains 2 points by longer steps; ours lose 0.5 to everyone with FedAvg, so 2.5 with the same server."""
    runs = made_up({"a": 0.005 + 0.001 * np.linspace(-1, 1, 5)})
    better = [pl.col(name) + 0.02 for name in ("late_accuracy", "accuracy_area")]
    everyone = runs.filter(policy=REFERENCE).with_columns(pl.lit(EVERYONE_LONGER).alias("policy"), *better)
    ours = runs.filter(policy=OURS).with_columns(pl.lit(LONGER).alias("policy"))
    table = table_of(pl.concat([runs, everyone, ours]))
    row = table.filter(policy=LONGER).row(0, named=True)
    accuracy, _ = overview_figure(table, LONGER).axes[:2]
    [same] = [each[0] for each in accuracy.containers if each.get_label() == SAME]
    assert float(same.get_xdata()[0]) == pytest.approx(100 * (row["late_accuracy"] + 0.025))
    assert SAME not in [each.get_label() for each in overview_figure(table, OURS).axes[0].containers]
    assert row["late_accuracy_gap"] == pytest.approx(-0.005)
    assert row["late_accuracy_same"] == row["accuracy_area_same"] == pytest.approx(-0.025)
    assert row["late_accuracy_same_low"] < -0.025 < row["late_accuracy_same_high"]
    for policy in (REFERENCE, OURS, EVERYONE_LONGER):  # nobody else with the same server was played
        assert table.filter(policy=policy)["late_accuracy_same"].to_list() == [None]
    said = summary(table, LONGER)
    ends = rows_of(text(tables.Table(table, ABOUT)), "worst device / budget |")
    assert ends["a"][3:5] == ["−2.5 [−2.6, −2.4]", "**−0.5 [−0.6, −0.4]**"]
    assert "ends 2.5 to 2.5 points below training everyone with the same server, and 0.5 to 0.5 points below" in said


def test_few_seeds_are_no_evidence() -> None:
    table = table_of(made_up({"a": np.array([0.001, 0.002, 0.0015])}))
    assert table.filter(policy=OURS)["late_accuracy_holds"].to_list() == [None]
    assert held(table, OURS, "late_accuracy") == ([], ["a"])


def test_its_report_and_page_are_written_from_runs(tmp_path: Path) -> None:
    """Two scenarios without learning: no accuracy, and so no margin, but every energy."""
    study = study_named("within-budget")
    small = study.plan_of((0, 1), SMALL)
    some = replace(
        small, arms=tuple(arm for arm in small.arms if Key.of(arm.label).scenario in ("stress", "paper-iid"))
    )
    with ThreadPoolExecutor(1) as executor:
        results = execute(some, tmp_path / "runs", executor=executor)
    found = page(results)
    assert "paper-iid" in found.sections[0].html
    assert "± " in found.sections[0].html
    assert "<td>balanced_joint(size=K) with memory</td>" in found.sections[0].html
    said = write_docs(tmp_path, results, []).read_text(encoding="utf-8")
    assert "seeds, 0–1)" in said
    table = tables.read(tmp_path / "within-budget.csv")
    assert said == from_tables(tmp_path)
    assert set(table.rows["scenario"]) == {"stress", "paper-iid"}
    assert (tmp_path / "figures" / "within-budget.png").stat().st_size < 200_000


def test_the_page_is_made_from_its_tables() -> None:
    stale = "docs/within-budget-results.md is stale; run python docs/make_results.py"
    said = (DOCS / "within-budget-results.md").read_text(encoding="utf-8")
    assert said == from_tables(DOCS), stale
    assert len(said.split()) <= 1000


def test_the_readme_and_the_page_on_the_rule_say_what_the_table_says() -> None:
    table = tables.read(DOCS / "within-budget.csv").rows
    ours, everyone = (table.filter(policy=name).sort("scenario") for name in (LONGER, REFERENCE))
    same, gap = (100 * ours[f"late_accuracy_{to}"].to_numpy() for to in ("same", "gap"))
    times = everyone["energy_over_budget"] / ours["energy_over_budget"]
    pages = (ROOT / "README.md", DOCS / "within-budget.md")
    readme, rule = (" ".join(page.read_text(encoding="utf-8").split()) for page in pages)
    for said in (
        f"In {len(ours)} scenarios",
        f"ends {-same.max():.1f} to {-same.min():.1f} points below training everyone with the same server",
        f"between {-gap.min():.1f} points below and {gap.max():.1f} points above training everyone with FedAvg",
        f"1/{times.min():.0f} to 1/{times.max():.0f} of the energy",
    ):
        assert said in readme
    assert f"{-same.max():.1f} to {-same.min():.1f} points below that of training everyone" in rule
    assert ours["devices_over_budget"].to_list() == [0.0] * len(ours)  # "never lets a device exceed its energy budget"


def test_every_seed_of_the_table_is_of_all_policies_that_the_page_compares() -> None:
    table = tables.read(DOCS / "within-budget.csv")
    own = table.rows.filter(pl.col("policy").is_in([REFERENCE, EVERYONE_LONGER, LONGER, OURS, PLAIN]))
    assert set(own["scenario"]) == set(SCENARIOS)
    assert set(own["seeds"]) == {20}
    assert table.about["Seeds"] == "11000–11019"


def test_the_preset_is_what_the_study_plays() -> None:
    tested_alike = load("within-budget", ["learning.eval_every=4"])
    assert [arm.scenario for arm in plan([0]).arms if arm.label == Key("paper-3digit", LONGER).label] == [tested_alike]
