"""What a round costs single devices, by settings or by a rule of one's own; and `verify` of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from builders import devices_of, found_in, observation, small, system, to_run, verified

import feelstream as fs
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment.hindsight import bound_of
from feelstream.flower.scheduler import Scheduler
from feelstream.model.system import CostContext, CostRule, RoundCosts
from feelstream.policies import POLICIES
from feelstream.policies.ranking import pack

DOWNLOAD = {"costs.download_bits": 2e6, "costs.download_bit_per_s": 4e6}  # half a second
HALVES = ({"share": 0.5, "deadline_s": 1.2, "download_bit_per_s": 2e6, "power_max_w": 0.7}, {"share": 0.5})
PER_SAMPLE = {"costs.cycles_per_sample": 2e7, "data.eligible": "with_data"}
BY_CLASS = DOWNLOAD | {"costs.receive_power_w": 0.2, "devices.classes": HALVES, "data.eligible": "with_data"}
ONE_FOR_ALL = DOWNLOAD | {"radio.power_max_w": 0.9}
JOINT = ("lyapunov_joint", "balanced_joint", "ocean")
RULE = {"costs.rule.kind": str(Path(__file__).parents[2] / "examples" / "my_cost.py:Sparse")}


class Doubled(CostRule):
    """Twice the cycles of the scenario, and updates of its size."""

    keeps_bits: ClassVar[bool] = True

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(cycles=2 * seen.system.cycles)


class Slow(CostRule):
    """Odd devices receive for longer than the round lasts."""

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(download_s=np.where(np.arange(seen.system.devices) % 2, 100.0, 0.1))


def run_of(policy: str, changes: dict[str, Any], seed: int = 3) -> fs.Run:
    return fs.simulate(small(f"policy.name={policy}", "system.energy_budget_j=0.2").with_(**changes), seed)


QUIET = [name for name in POLICIES.ours if not to_run(name)]  # reports and no download
KEPT = [(name, ONE_FOR_ALL if name in JOINT else BY_CLASS) for name in QUIET]


@pytest.mark.parametrize(("policy", "costs"), [*KEPT, *((name, PER_SAMPLE) for name in ("lyapunov", "fedcs"))])
def test_every_policy_keeps_to_what_its_devices_can_do(policy: str, costs: dict[str, Any]) -> None:
    run = run_of(policy, costs)
    sent, of = devices_of(run).filter("transmitted"), run.scenario.known_system(1)
    k = sent["device"].to_numpy()
    assert len(k)
    ended_s = sent.select(pl.sum_horizontal("^t_(down|cmp|tr)_s$")).to_series().to_numpy()
    assert (ended_s <= np.broadcast_to(of.deadline_s, 6)[k] * (1 + 1e-9)).all()
    assert (sent["power_w"].to_numpy() <= np.broadcast_to(of.power_max_w, 6)[k] * (1 + 1e-9)).all()
    verified(run)


@pytest.mark.parametrize("faults", ["none", "random"])
def test_a_device_that_needs_more_power_than_it_has_is_not_available(faults: str) -> None:
    """Truncated channel inversion: P0/β ≤ P_max, or silence."""
    run = run_of("random", {"radio.power_max_w": 0.7, "world.faults.kind": faults})
    table, received_w = devices_of(run), 10**2.8 / 1000
    able = received_w / table["beta"] <= 0.7
    assert 0 < able.sum() < len(able)
    assert faults == "random" or (table["available"] == able).all()
    verified(run)


def test_packing_counts_what_each_device_has_left() -> None:
    """Six equal devices, of which two have hardly any time: four fit, and not the two."""
    deadline_s = np.array([4.0, 0.43, 4.0, 4.0, 0.43, 4.0])
    seen = observation(system(6, deadline_s=deadline_s))
    assert pack(seen, np.ones(6, bool), 4).tolist() == [0, 2, 3, 5]


@pytest.mark.parametrize("admission", ["paper", "largest"])
def test_a_round_costs_what_a_rule_says(admission: str) -> None:
    scenario = small("system.rounds=12", f"radio.admission={admission}", "policy.size=3").with_(**RULE)
    run = fs.simulate(scenario, 5)
    verified(run)
    of, table = scenario.known_system(10), devices_of(run)
    fresh = np.maximum(table["fresh"].to_numpy(), 1)
    np.testing.assert_allclose(table["cost_cycles"], 2e7 * fresh)
    np.testing.assert_allclose(table["cost_bits"], of.update_bits * np.minimum(0.1 * np.sqrt(fresh), 1.0))
    assert table["transmitted"].sum() > 5
    assert table["e_down_j"].sum() > 0


def test_policies_with_one_seed_meet_the_same_costs() -> None:
    one, other = (devices_of(run_of(policy, RULE)) for policy in ("random", "age"))
    assert one["cost_down_s"].equals(other["cost_down_s"])
    assert not one["cost_down_s"].equals(devices_of(run_of("random", RULE, seed=4))["cost_down_s"])


CHANGED = [(column, factor) for column in ("e_down_j", "t_down_s", "power_w", "t_cmp_s") for factor in (2.0, 0.9)]
CHANGED += [(f"cost_{name}", factor) for name in ("cycles", "bits", "down_s", "down_j") for factor in (1.01, 0.0, -1.0)]


@pytest.fixture(scope="module")
def costly() -> dict[str, fs.Run]:
    runs = {"settings": run_of("lyapunov", BY_CLASS), "rule": run_of("lyapunov", RULE | {"policy.size": 3}, seed=1)}
    assert all(verified(run) for run in runs.values())
    return runs


@pytest.mark.parametrize(("column", "factor"), CHANGED)
def test_a_changed_cost_is_found(costly: dict[str, fs.Run], column: str, factor: float) -> None:
    run = costly["rule" if column.startswith("cost_") else "settings"]
    told = pl.when("transmitted").then(pl.col(column) * factor).otherwise(pl.col(column))
    found = found_in(run, told.alias(column))
    assert column.startswith("cost_") or found.field == column


def test_a_device_with_no_time_left_is_not_available() -> None:
    for more in ({}, {"world.harvest.kind": "packets"}):
        run = fs.simulate(small("system.rounds=5").with_(**{"costs.rule": Slow()}, **more), 1)
        assert not devices_of(run).filter(pl.col("device") % 2 == 1)["available"].any()
        assert run.rounds["scheduled"].sum() > 0
        verified(run)


@pytest.mark.parametrize("policy", ["select_all", "fedcs"])
def test_policies_that_plan_with_equal_updates_need_the_promise(policy: str) -> None:
    run = fs.simulate(small(f"policy.name={policy}").with_(**{"costs.rule": Doubled()}), 1)
    verified(run)
    with pytest.raises(ScenarioError, match=rf"the policy {policy} plans with updates of equal size, so the rule must"):
        small(f"policy.name={policy}").with_(**RULE)


OWN_CYCLES = ({"share": 0.5, "cycles": 1e6}, {"share": 0.5})
ASKING = {"policy": "gradient_norm", "learning.engine": "native"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"devices.classes": ({"share": 1.0, "deadline_s": 5.0},)}, r"devices\.deadline_s: must be at most"),
        ({"costs.download_bits": 1e9}, r"costs\.download_bits: receiving the model must take less than the 4 s"),
        ({"costs.download_bits": 3.9e8}, "with the download and the time after the deadline"),
        ({"policy": "lyapunov_joint", "devices.classes": HALVES}, "must be the same for all devices"),
        (
            {"policy": "ocean", "costs.receive_power_w": 1.0} | DOWNLOAD,
            r"costs\.receive_power_w: must be 0 for the pol",
        ),
        ({"policy": "balanced_joint"} | PER_SAMPLE, r"costs\.cycles_per_sample: must be 0 for the policy balanced_j"),
        (PER_SAMPLE | {"devices.classes": OWN_CYCLES}, r"costs\.cycles_per_sample: takes the place of all cycles"),
        ({"policy": "lyapunov_joint"} | RULE, r"costs\.rule\.kind: must be settings for the policy lyapunov_joint"),
        ({"policy": "ocean"} | RULE, r"costs\.rule\.kind: must be settings for the policy ocean"),
        (ASKING | RULE, "must be settings for the policy gradient_norm"),
        ({"radio.block_bits": 1e4} | RULE, r"radio\.block_bits: must be 0 with a costs\.rule of your own"),
        (ASKING | {"learning.engine": "none"}, r"learning\.engine: must not be none for policy 'gradient_norm', which"),
        (
            ASKING | {"reports.slot_s": 4.0},
            r"reports\.slot_s: must be below system\.round_s = 4 for policy 'gradient_n",
        ),
        (ASKING | {"reports.slot_s": 0.001}, r"reports\.slot_s: no report can ever fit a slot of 0\.001 s"),
        (ASKING | {"reports.slot_s": 3.9}, r"no update can ever fit a round of 4 s, of which reports leave 0\.1 s"),
        (ASKING | {"costs.download_bits": 1e6}, r"costs\.download_bits: must be 0 for the policy gradient_norm"),
        (
            ASKING | {"devices.classes": ({"share": 0.5}, {"share": 0.5, "deadline_s": 0.4})},
            r"devices\.deadline_s: must be above reports\.slot_s = 0\.5 s for a policy that asks",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        small().with_(**changes)


def test_a_deployment_and_a_bound_refuse_a_rule() -> None:
    with pytest.raises(ScenarioError, match=r"costs\.rule\.kind: must be settings in a deployment"):
        Scheduler(small().with_(**RULE), 0, 10)
    with pytest.raises(RunError, match=r"a bound needs costs\.rule\.kind = settings"):
        bound_of(fs.simulate(small("data.fresh=per_round").with_(**RULE), 1))
