"""Cost rules of a user's own: what a round costs follows from them, and `verify` recomputes all that does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from builders import small
from sealing import seal

import feelstream as fs
from feelstream.errors import PluginError, RunError, ScenarioError
from feelstream.experiment.hindsight import bound_of
from feelstream.flower.scheduler import Scheduler
from feelstream.model.system import CostContext, CostRule, RoundCosts
from feelstream.scenario.population import system_of

SPARSE = str(Path(__file__).parents[2] / "examples" / "my_cost.py:Sparse")
RULE = f"costs.rule.kind={SPARSE}"


class Doubled(CostRule):
    """Twice the cycles of the scenario, and updates of its size."""

    keeps_bits: ClassVar[bool] = True

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(cycles=2 * seen.system.cycles)


class Slow(CostRule):
    """Odd devices receive for longer than the round lasts."""

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(download_s=np.where(np.arange(seen.system.devices) % 2, 100.0, 0.1))


class Says(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> Any:
        return RoundCosts(cycles=np.full(seen.system.devices, np.nan))


class Fails(CostRule):
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        raise KeyError("no meter")


def devices_of(run: fs.Run) -> pl.DataFrame:
    assert run.devices is not None
    return run.devices


@pytest.mark.parametrize("admission", ["paper", "largest"])
def test_a_round_costs_what_the_rule_says(tmp_path: Path, admission: str) -> None:
    scenario = small(RULE, "system.rounds=12", f"radio.admission={admission}", "policy.size=3")
    run = fs.simulate(scenario, 5)
    assert fs.verify(run.save(tmp_path / "run")).ok
    of, table = system_of(scenario, 10), devices_of(run)
    column = {name: table[name].to_numpy() for name in table.columns if table[name].dtype.is_numeric()}
    sent, scheduled = table["transmitted"].to_numpy(), table["scheduled"].to_numpy()
    assert sent.sum() > 5
    np.testing.assert_allclose(column["cost_cycles"], 2e7 * np.maximum(column["fresh"], 1))
    share = np.minimum(0.1 * np.sqrt(np.maximum(column["fresh"], 1)), 1.0)
    np.testing.assert_allclose(column["cost_bits"], of.update_bits * share)
    np.testing.assert_allclose(column["t_cmp_s"], np.where(scheduled, column["cost_cycles"] / column["f_hz"], 0.0))
    np.testing.assert_allclose(column["e_cmp_j"], scheduled * 1e-27 * column["cost_cycles"] * column["f_hz"] ** 2)
    np.testing.assert_allclose(column["e_down_j"], 0.01 * column["t_down_s"])
    assert (column["t_down_s"][scheduled] == column["cost_down_s"][scheduled]).all()
    hz = column["bandwidth_share"][sent] * of.bandwidth_hz
    rate = hz * np.log2(1 + column["power_w"][sent] * column["gain"][sent] / (hz * of.noise_w_per_hz))
    np.testing.assert_allclose(column["t_tr_s"][sent], column["cost_bits"][sent] / rate)
    planned = run.rounds["planned"].to_numpy()[column["round"] - 1]
    needed_s = column["cost_cycles"] / column["f_hz"] + column["cost_down_s"]
    needed_s += [of.surrogate_time_s(n) for n in planned] * share
    assert (table["feasible"].to_numpy() == (needed_s <= 4.0)).all()


def test_policies_with_one_seed_meet_the_same_costs() -> None:
    one, other = (devices_of(fs.simulate(small(RULE, f"policy.name={name}"), 2)) for name in ("random", "age"))
    assert one["cost_down_s"].equals(other["cost_down_s"])
    assert not one["cost_down_s"].equals(devices_of(fs.simulate(small(RULE), 3))["cost_down_s"])


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> fs.Run:
    run = fs.simulate(small(RULE, "system.rounds=8", "policy.size=3"), 1)
    assert fs.verify(run.save(tmp_path_factory.mktemp("right") / "run")).ok
    return run


@pytest.mark.parametrize("column", ["cost_cycles", "cost_bits", "cost_down_s", "cost_down_j"])
@pytest.mark.parametrize("factor", [1.01, 0.0, -1.0])
def test_changed_costs_are_found(right: fs.Run, tmp_path: Path, column: str, factor: float) -> None:
    path = right.save(tmp_path / "run")
    sent = pl.col("transmitted")
    changed = devices_of(right).with_columns(pl.when(sent).then(pl.col(column) * factor).otherwise(pl.col(column)))
    changed.write_parquet(path / "devices.parquet")
    seal(path)
    assert not fs.verify(path).ok


def test_a_device_with_no_time_left_is_not_available(tmp_path: Path) -> None:
    for more in ({}, {"world.harvest.kind": "packets"}):
        run = fs.simulate(small("system.rounds=5").with_(**{"costs.rule": Slow()}, **more), 1)
        odd = devices_of(run).filter(pl.col("device") % 2 == 1)
        assert not odd["available"].any()
        assert run.rounds["scheduled"].sum() > 0
        assert fs.verify(run.save(tmp_path / f"run{len(more)}")).ok


@pytest.mark.parametrize("policy", ["select_all", "fedcs"])
def test_policies_that_plan_with_equal_updates_need_the_promise(tmp_path: Path, policy: str) -> None:
    run = fs.simulate(small(f"policy.name={policy}").with_(**{"costs.rule": Doubled()}), 1)
    assert fs.verify(run.save(tmp_path / "run")).ok
    with pytest.raises(ScenarioError, match=rf"the policy {policy} plans with updates of equal size, so the rule must"):
        small(RULE, f"policy.name={policy}")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (["policy.name=lyapunov_joint"], "costs.rule.kind: must be settings for the policy lyapunov_joint"),
        (["policy.name=ocean"], "costs.rule.kind: must be settings for the policy ocean"),
        (["radio.block_bits=1e4"], "radio.block_bits: must be 0 with a costs.rule of your own"),
        (["policy.name=gradient_norm", "learning.engine=native"], "must be settings for the policy gradient_norm"),
    ],
)
def test_what_a_rule_does_not_go_with_is_refused(fields: list[str], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        small(RULE, *fields)


def test_a_deployment_and_a_bound_refuse_it(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"costs\.rule\.kind: must be settings in a deployment"):
        Scheduler(small(RULE), 0, 10)
    run = fs.simulate(small(RULE, "data.fresh=per_round"), 1)
    with pytest.raises(RunError, match=r"a bound needs costs\.rule\.kind = settings"):
        bound_of(run)


def test_a_rule_that_is_wrong_ends_the_run_with_a_sentence() -> None:
    name = r"costs\.rule: '.*'"
    with pytest.raises(
        PluginError, match=f"{name} must return from costs .* whose cycles is .*, at least .*, not .*nan"
    ):
        fs.simulate(small().with_(**{"costs.rule": Says()}), 1)
    with pytest.raises(PluginError, match=f"{name} failed in round 1: KeyError: 'no meter'"):
        fs.simulate(small().with_(**{"costs.rule": Fails()}), 1)


def test_a_stored_run_is_read_and_explained_without_the_rule(tmp_path: Path) -> None:
    rule = Path(SPARSE.rpartition(":")[0]).read_text(encoding="utf-8")
    own = tmp_path / "gone.py"
    own.write_text(rule, encoding="utf-8")
    scenario = small(f"costs.rule.kind={own}:Sparse", "costs.rule.per_sample=3e7", "system.rounds=4")
    path = fs.simulate(scenario, 1).save(tmp_path / "run")
    own.unlink()
    run = fs.read(path)
    assert run.scenario.as_dict() == scenario.as_dict()
    assert not run.scenario.costs.rule.of_settings
    chosen = devices_of(run).filter(pl.col("scheduled")).row(0, named=True)
    assert f"device {chosen['device']}" in str(run.explain(chosen["round"], chosen["device"])).lower()
    assert fs.verify(path).ok
