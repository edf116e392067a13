"""The study of energy laws: what it runs, what it finds in made-up runs, and that its page is what is committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import feelstream as fs
from feelstream.experiment import execute
from feelstream.studies.registry import study_named
from feelstream_studies import tables
from feelstream_studies.silicon import findings
from feelstream_studies.silicon.configurations import LAWS, OWN_RANGE, SCENARIOS, Key, keys, plan, scenario_of
from feelstream_studies.silicon.page import from_tables, page, write_docs

ROOT = Path(__file__).parents[3]
SMALL = ("data.dataset=synthetic", "system.rounds=6", "system.devices=8", "learning.engine=none")


def test_every_law_is_run_with_every_policy_and_the_labels_are_read_back():
    labels = [key.label for key in keys()]
    assert len(set(labels)) == len(labels)
    assert [Key.of(label).label for label in labels] == labels
    assert len([law for law in LAWS if law != "cubic"]) >= 3
    assert {key.law for key in keys() if key.policy == "fedcs"} == set(LAWS)


@pytest.mark.parametrize("policy", ["lyapunov", "balanced", "ocean"])
def test_a_law_that_only_scales_energies_changes_no_decision(policy: str):
    """Budgets and weights follow s = 4, of a coefficient four times as large; radio energy is nearly 0 in stress."""
    one = scenario_of(Key("stress", "scenario", "cubic", policy), SMALL)
    weight = "policy.price" if policy == "balanced" else "policy.V"
    at = getattr(one.policy, weight.removeprefix("policy."))
    four = one.with_(
        **{
            "cpu.power_coefficient": 4 * one.cpu.power_coefficient,
            "system.energy_budget_j": 4 * one.system.energy_budget_j,  # type: ignore[operator]
            weight: at / 4 if policy == "balanced" else 16 * at,
        }
    )
    first, second = (fs.simulate(each, seed=3).devices for each in (one, four))
    assert first is not None
    assert second is not None
    assert first["scheduled"].equals(second["scheduled"])


def test_the_scale_of_a_real_core_is_its_mean_energy_over_that_of_the_cubic_law():
    """At 20 MHz to 1.52 GHz, E = c C V(f)² with V of the next point; budgets are multiplied by the ratio of means."""
    one = scenario_of(Key("stress", "scenario", "cubic", "random"), SMALL)
    other = scenario_of(Key("stress", "scenario", "rk3399-a72", "lyapunov"), SMALL)
    profile = fs.load("stress", ["cpu.energy.kind=voltage", "cpu.profile=rk3399-a72"]).known_system(classes=1)
    f_hz = np.linspace(20e6, 1.52e9, 20_001)
    discrete = other.known_system(classes=1)
    real = np.mean([discrete.compute_energy_j(np.full(8, f))[0] for f in f_hz[::20]])
    cubic = np.mean([one.known_system(classes=1).compute_energy_j(np.full(8, f))[0] for f in f_hz[::20]])
    ratio = other.system.energy_budget_j / one.system.energy_budget_j  # type: ignore[operator]
    assert ratio == pytest.approx(real / cubic, rel=2e-3)
    assert pytest.approx(0.05 * ratio**2) == other.policy.V  # type: ignore[attr-defined]
    # A discrete point is at least as high as the voltage between points.
    f = np.full(profile.devices, 1.1e9)
    assert discrete.compute_energy_j(f[:8])[0] >= profile.compute_energy_j(f)[0]


def test_the_page_says_how_many_turns_the_budget_of_a_run_pays():
    """At the cheapest frequency with which computing fits a round; the page names the numbers."""
    said = " ".join((ROOT / "docs" / "silicon.md").read_text(encoding="utf-8").split())
    for name in SCENARIOS:
        paid = []
        for law in LAWS:
            scenario = scenario_of(Key(name, "scenario", law, "balanced_joint"), ("learning.engine=none",))
            system = scenario.known_system(classes=1)
            low_hz, high_hz = scenario.frequency_range_hz
            fits_hz = np.linspace(max(low_hz, system.cycles[0] / system.round_s), high_hz, 2_000)
            turn_j = min(system.compute_energy_j(np.full(system.devices, f_hz))[0] for f_hz in fits_hz)
            paid.append(float(system.energy_budget_j[0]) * system.rounds / turn_j)
        cubic, *cores = paid
        assert f"pays {cubic:.1f} of the cheapest turns under the cubic law" in said
        assert "on the three cores {:.2f}, {:.2f} and {:.2f} of one".format(*cores) in said


def made_up(costs: dict[tuple[str, str], float], spread: float = 0.01) -> pl.DataFrame:
    """Runs of one scenario: J per update of (law, policy), over eight seeds that differ by a factor for all."""
    rng = np.random.default_rng(1)
    rows = []
    for seed in range(8):
        factor = 1 + 0.2 * rng.random()
        for (law, policy), cost in costs.items():
            value = cost * factor * (1 + spread * rng.standard_normal())
            key = {"scenario": "stress", "budget": "scenario", "law": law, "policy": policy, "seed": seed}
            row = {"energy_j": value, "updates": 1.0, "importance": 1.0, "accuracy": None, "per_update_j": value}
            rows.append(key | row)
    return pl.DataFrame(rows, schema_overrides={"accuracy": pl.Float64})


def test_savings_and_what_is_left_of_them():
    costs = {("cubic", "random"): 1.0, ("cubic", "a"): 0.6, ("core", "random"): 0.2, ("core", "a"): 0.18}
    table = findings.savings(made_up(costs, spread=0.0))
    rows = {(row["law"], row["policy"]): row for row in table.rows(named=True)}
    assert rows["cubic", "a"]["saving"] == pytest.approx(0.4)
    assert rows["core", "a"]["saving"] == pytest.approx(0.1)
    assert rows["core", "a"]["left"] == pytest.approx(0.25)
    assert rows["core", "random"]["left"] is None  # nothing was saved, so nothing can be left


def test_a_ranking_flips_only_where_both_orders_are_certain():
    names = {"a": (0.5, 0.9), "b": (0.7, 0.6), "c": (0.701, 0.602)}
    costs = {(law, name): each[at] for at, law in enumerate(("cubic", "core")) for name, each in names.items()}
    (found,) = findings.rankings(made_up(costs), "stress", "scenario", ("cubic", "core"))
    assert set(found.flips) == {("a", "b"), ("a", "c")}  # the order of b and c is not certain under either law
    assert (found.lost, found.pairs) == (0, 3)
    (exact,) = findings.rankings(made_up(costs, spread=0.0), "stress", "scenario", ("cubic", "core"))
    assert exact.agreement == pytest.approx(-1 / 3)  # of three pairs, that of b and c keeps its order


def test_a_policy_that_trains_nobody_has_no_saving_and_no_rank():
    costs = {(law, name): 1.0 + (name == "a") for law in ("cubic", "core") for name in ("random", "a")}
    runs = made_up(costs).with_columns(
        per_update_j=pl.when((pl.col("policy") == "a") & (pl.col("law") == "core")).then(None).otherwise("per_update_j")
    )
    row = findings.savings(runs).filter(law="core", policy="a").row(0, named=True)
    assert (row["saving"], row["seeds"]) == (None, 0)
    (found,) = findings.rankings(runs, "stress", "scenario", ("cubic", "core"))
    assert found.pairs == 0


def test_the_page_is_written_from_results(tmp_path: Path):
    whole = plan((0, 1), SMALL)
    few = [arm for arm in whole.arms if Key.of(arm.label).policy in ("random", "lyapunov", "greedy_energy")]
    joint = [
        replace(arm, label=arm.label.replace("lyapunov", "lyapunov_joint"))  # as dear as it is slow: its place alone
        for arm in few
        if arm.label.endswith("scenario / " + Key.of(arm.label).law + " / lyapunov")
    ]
    study = study_named("silicon")
    results = execute(replace(whole, arms=(*few, *joint), study="silicon"), tmp_path / "out", workers=1)
    assert not results.failures
    assert study.page_of(results).title == page(results).title  # type: ignore[union-attr]
    text = write_docs(tmp_path / "docs", results, []).read_text(encoding="utf-8")
    assert text == from_tables(tmp_path / "docs")
    assert "mean of the last fifth" not in text  # nothing was trained
    table = tables.read(tmp_path / "docs" / "silicon.csv").rows
    assert len(table) == len(results.plan.arms)
    assert (tmp_path / "docs" / "figures" / "silicon.png").stat().st_size < 200_000


def test_the_page_is_made_from_its_tables():
    stale = "docs/silicon.md is stale; run python docs/make_results.py"
    said = (ROOT / "docs" / "silicon.md").read_text(encoding="utf-8")
    assert said == from_tables(ROOT / "docs"), stale
    assert len(said.split()) <= 900


def test_policies_that_train_and_save_for_certain_in_every_scenario_are_shown():
    said = (ROOT / "docs" / "silicon.md").read_text(encoding="utf-8")
    shown = ("lyapunov_joint", "greedy_energy", "ocean", "balanced", "lyapunov")
    for scenario in SCENARIOS:
        assert [line.split("`")[3] for line in said.splitlines() if line.startswith(f"| `{scenario}`")] == list(shown)


def test_the_committed_page_is_of_twenty_untouched_seeds_and_every_law():
    text = (ROOT / "docs" / "silicon.md").read_text(encoding="utf-8")
    assert "seeds 4000–4019" in text
    assert all(law.removesuffix(OWN_RANGE) in text for law in LAWS)
