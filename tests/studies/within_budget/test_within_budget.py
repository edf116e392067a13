"""The study of budgets: what it runs, what it finds in made-up runs, and that its page says what is committed."""

from __future__ import annotations

import re
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
from feelstream_studies.within_budget.page import longer_steps, opening, overview_table, page, summary

ROOT = Path(__file__).parents[3]
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
    assert "at most 1 point in accuracy of the last fifth is shown in 1 of 2, and one of at most 2 points" in said


def test_the_overview_has_losses_in_bold_where_they_are_shown_to_be_small() -> None:
    rng = np.random.default_rng(5)
    gaps = {"a": 0.002 + 0.001 * rng.standard_normal(10), "b": 0.015 + 0.001 * rng.standard_normal(10)}
    table = table_of(made_up(gaps))
    rows = {line.split("|")[1].strip(" `"): line.split("|") for line in overview_table(table).splitlines()[2:4]}
    assert {name: cells[4].strip().startswith("**") for name, cells in rows.items()} == {"a": True, "b": False}
    assert all(cells[6].strip() == "1/1000" for cells in rows.values())
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
    assert SAME not in [each.get_label() for each in overview_figure(table).axes[0].containers]
    assert row["late_accuracy_gap"] == pytest.approx(-0.005)
    assert row["late_accuracy_same"] == row["accuracy_area_same"] == pytest.approx(-0.025)
    assert row["late_accuracy_same_low"] < -0.025 < row["late_accuracy_same_high"]
    for policy in (REFERENCE, OURS, EVERYONE_LONGER):  # nobody else with the same server was played
        assert table.filter(policy=policy)["late_accuracy_same"].to_list() == [None]
    said = longer_steps(table)
    assert "| `a` | −2.5 [−2.6, −2.4] | −2.5 [−2.6, −2.4] |" in said
    assert summary(table, LONGER) in said
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


def test_the_page_says_what_the_table_says() -> None:
    table = pl.read_csv(ROOT / "docs/within-budget.csv", infer_schema_length=None)
    page = (ROOT / "docs/within-budget-results.md").read_text(encoding="utf-8")
    assert page.startswith(opening(table))


def test_the_readme_says_what_the_table_says() -> None:
    table = pl.read_csv(ROOT / "docs/within-budget-longer.csv", infer_schema_length=None)
    ours, everyone = (table.filter(policy=name).sort("scenario") for name in (LONGER, REFERENCE))
    same, gap = (100 * ours[f"late_accuracy_{to}"].to_numpy() for to in ("same", "gap"))
    times = everyone["energy_over_budget"] / ours["energy_over_budget"]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for said in (
        f"In {len(ours)} scenarios",
        f"ends {-same.max():.1f} to {-same.min():.1f} points below training everyone with the same server",
        f"between {-gap.min():.1f} points below and {gap.max():.1f} points above training everyone with FedAvg",
        f"1/{times.min():.0f} to 1/{times.max():.0f} of the energy",
    ):
        assert said in readme
    assert ours["devices_over_budget"].to_list() == [0.0] * len(ours)  # "never lets a device exceed its energy budget"


def test_the_page_on_the_rule_has_the_gaps_of_the_table() -> None:
    own = pl.read_csv(ROOT / "docs/within-budget.csv", infer_schema_length=None).filter(policy=OURS)
    rows = {row["scenario"]: row for row in own.iter_rows(named=True)}
    lines = (ROOT / "docs/within-budget.md").read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("| the rule as it is"))
    heads = next(line for line in reversed(lines[:at]) if line.startswith("| |"))
    cells = [[cell.strip(" `") for cell in line.split("|")[2:-1]] for line in (heads, lines[at], lines[at + 1])]
    assert len(cells[0]) == len(rows)
    for scenario, gaps, spent in zip(*cells, strict=True):
        row = rows[scenario]
        said = [float(gap.replace("−", "-")) for gap in gaps.split(" / ")]
        found = [100 * row[f"{name}_gap"] for name in ("late_accuracy", "accuracy_area")]
        assert said == pytest.approx(found, abs=0.051)
        assert float(spent) == pytest.approx(row["energy_over_budget"], abs=0.0051)


def test_the_page_on_the_rule_says_what_the_servers_memory_adds() -> None:
    table = pl.read_csv(ROOT / "docs/within-budget.csv", infer_schema_length=None)
    text = " ".join((ROOT / "docs/within-budget.md").read_text(encoding="utf-8").replace("−", "-").split())
    adds = text.partition("the memory against FedAvg")[2].partition("In `har`")[0]
    said = {name: (float(late), float(area)) for late, area, name in re.findall(r"(\S+) / (\S+) \(`([\w-]+)`\)", adds)}
    gains = text.partition("`lyapunov` gains")[2].partition(", for no energy")[0]
    by_lyapunov = re.findall(r"([\d.]+) / ([\d.]+)(?: points)? in `([\w-]+)`", gains)
    for policy, found in (
        (PLAIN, said),
        ("lyapunov", {name: (float(late), float(area)) for late, area, name in by_lyapunov}),
    ):
        assert found
        for scenario, values in found.items():
            rows = [table.filter(scenario=scenario, policy=each) for each in (f"{policy}{WITH}memory", policy)]
            for name, value in zip(("late_accuracy_gap", "accuracy_area_gap"), values, strict=True):
                assert 100 * (rows[0][name][0] - rows[1][name][0]) == pytest.approx(value, abs=0.06)
    assert set(said) == set(SCENARIOS)


def test_the_pages_on_longer_steps_say_what_their_table_says() -> None:
    table = pl.read_csv(ROOT / "docs/within-budget-longer.csv", infer_schema_length=None)
    page = (ROOT / "docs/within-budget-longer.md").read_text(encoding="utf-8")
    assert page.startswith(longer_steps(table))
    rows = {(row["scenario"], row["policy"]): row for row in table.iter_rows(named=True)}
    lines = (ROOT / "docs/within-budget.md").read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("| gap to training everyone"))
    four = (lines[at], *lines[at + 2 : at + 5])
    of_ours = [rows["paper-3digit", policy]["late_accuracy"] for policy in (LONGER, PLAIN)]
    server = (ROOT / "docs/leaderboard.md").read_text(encoding="utf-8").partition("All entries")[2].partition("\n\n")[0]
    assert [f"{100 * accuracy:.1f} %" in server for accuracy in of_ours] == [True, True]
    heads, *said = ([cell.strip(" `") for cell in line.split("|")[2:-1]] for line in four)
    assert set(heads) == {scenario for scenario, _ in rows} == set(SCENARIOS)
    of = ((LONGER, "same"), (LONGER, "gap"), (OURS, "gap"))  # to the same server, to FedAvg
    for cells, (policy, to) in zip(said, of, strict=True):
        for scenario, cell in zip(heads, cells, strict=True):
            found = [100 * rows[scenario, policy][f"{name}_{to}"] for name in ("late_accuracy", "accuracy_area")]
            assert [float(gap.replace("−", "-")) for gap in cell.split(" / ")] == pytest.approx(found, abs=0.051)


def test_the_preset_is_what_the_study_plays() -> None:
    tested_alike = load("within-budget", ["learning.eval_every=4"])
    assert [arm.scenario for arm in plan([0]).arms if arm.label == Key("paper-3digit", LONGER).label] == [tested_alike]
