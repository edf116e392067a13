"""`verify --decisions`: a policy that is asked again decides as it did, and one that broke its rule is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import small
from click.testing import Result
from deployed_clients import FAST, client, grid_of, growing, model, silent_in_training
from sealing import seal
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli import app
from feelstream.errors import RunError
from feelstream.experiment.replaying import ask_again
from feelstream.flower import ScheduledFedAvg
from feelstream.policies import POLICIES, balanced_joint, lyapunov_joint
from feelstream.policies.lyapunov_joint import LyapunovJoint
from feelstream.policies.solvers import joint, rations
from feelstream.policies.solvers.balance import Balance
from feelstream.policies.solvers.devices import Devices, least_power_w

JOINT = ("policy.name=lyapunov_joint", "system.rounds=4", "policy.size=3")
RATIONED = ("policy.name=balanced_joint", "policy.size=5", "system.rounds=16", "system.energy_budget_j=0.002")
OWN = """
import numpy as np
from feelstream.policies.random import Random

class Mine(Random):
    pass

class Draws(Random):
    def select(self, state, observation, rng):
        return super().select(state, observation, np.random.default_rng())
"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", [name for name, cls in POLICIES.ours.items() if not cls().probes])
def test_every_policy_decides_again_as_it_did(policy: str, tmp_path: Path) -> None:
    world = ("world.faults.kind=random", "world.mobility.kind=random_direction", "costs.cycles_per_sample=2e7")
    some = world[:2] if policy in ("lyapunov_joint", "balanced_joint", "ocean") else world
    scenario = small(f"policy.name={policy}", "system.rounds=8", "policy.size=3", *some)
    run = fs.simulate(scenario, 1, changes=[fs.Change(4, "size", 2), fs.Change(6, "energy_budget_j", 0.1)])
    again = ask_again(run.save(tmp_path / "run"))
    assert again.ok, str(again)
    assert (again.about["asked"], again.about["not_asked"]) == (8, None)


def checked(path: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["verify", str(path), *more])


def changed(path: Path, column: str, by: float) -> Path:
    """One number of a scheduled device in round 3."""
    table = pl.read_parquet(path / "devices.parquet")
    row = int(table.with_row_index().filter(pl.col("scheduled"), pl.col("round") == 3)["index"][0])
    values = table[column].to_list()
    values[row] *= by
    table.with_columns(pl.Series(column, values)).write_parquet(path / "devices.parquet")
    return seal(path)


@pytest.mark.parametrize(("column", "field"), [("score", "score"), ("gain", "bandwidth_share")])
def test_what_no_formula_recomputes_is_seen(column: str, field: str, tmp_path: Path) -> None:
    path = fs.simulate(small(*JOINT), 1).save(tmp_path / "run")
    assert ask_again(path).ok
    difference = ask_again(changed(path, column, 1.001)).difference
    assert difference is not None
    assert difference.startswith("round 3, device")
    assert f", {field}: stored" in difference


def test_code_of_the_users_own_runs_only_if_it_is_trusted(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)
    for name in ("Mine", "Draws"):
        fs.simulate(small(f"policy.name={own}:{name}", "system.devices=8", "data.samples=400"), 1).save(tmp_path / name)
    with pytest.raises(RunError, match=r"decides by code of the user's own \(policy\); add --trust to run that code"):
        ask_again(tmp_path / "Mine")
    assert ask_again(tmp_path / "Mine", trust=True).ok
    assert "scheduled: stored" in str(ask_again(tmp_path / "Draws", trust=True))
    own.write_text(OWN + "# changed")
    with pytest.raises(fs.FeelstreamError, match=r"other files|changed"):
        ask_again(tmp_path / "Mine", trust=True)


def test_what_the_trace_does_not_hold_is_said(tmp_path: Path) -> None:
    learning = ("learning.engine=native", "learning.local.steps=2", "learning.local.batch=4", "system.rounds=4")
    path = fs.simulate(small(*learning, "policy.name=oort"), 1).save(tmp_path / "oort")
    again = ask_again(path)
    assert again.ok
    assert (again.about["asked"], again.about["not_asked"]) == (1, "the policy goes by losses, which no trace holds")
    assert "in 1 of 4 rounds" in str(again)
    path = fs.simulate(small(*learning, "policy.name=update_norm"), 1).save(tmp_path / "norms")
    with pytest.raises(RunError, match=r"goes by reports \(update_norm\), which no trace holds"):
        ask_again(path)
    path = fs.simulate(small("trace.level=rounds")).save(tmp_path / "rounds")
    with pytest.raises(RunError, match="stores no devices"):
        ask_again(path)


def test_a_deployment_decides_again_as_it_did(tmp_path: Path) -> None:
    grid = grid_of(
        client(growing, after={"t_cmp_s": 1.5, "e_cmp_j": 0.25}), silent_in_training(client(growing)), client(growing)
    )
    scenario = fs.preset("tiny", [*FAST, "policy.size=2", "radio.fading=none"])
    ScheduledFedAvg(scenario, classes=3, out=tmp_path / "run").start(grid, model(), num_rounds=4)
    again = ask_again(tmp_path / "run")
    assert again.ok, str(again)
    assert again.about["asked"] == 4


def test_the_command_says_which_of_the_three_was_done(tmp_path: Path) -> None:
    path = fs.simulate(small(*JOINT), 1).save(tmp_path / "run")
    plain = checked(path).stdout
    assert "done: recomputed from the files\n" in plain
    assert "not done: --decisions asks the policy again, --replay repeats the run" in plain
    both = checked(path, "--decisions", "--replay").stdout
    assert "done: recomputed from the files, asked the policy again, repeated the run\n" in both
    assert "asked again in 4 of 4 rounds" in both
    assert '"done": [\n    "files",\n    "decisions"\n  ]' in checked(path, "--decisions", "--json").stdout
    assert "--trust is of --decisions" in str(checked(path, "--trust").exception)
    wrong = checked(changed(path, "score", 1.001), "--decisions", "--replay")
    assert wrong.exit_code == 1
    assert "it DIFFERS: round 3" in wrong.stdout
    assert "repeated the run" not in wrong.stdout.partition("not done")[0]
    assert "FAIL" in checked(tmp_path, "--decisions").stdout


Wrong = tuple[Any, str, Callable[[Any], Any]]  # whose what becomes what, made of the right one
Class = balanced_joint.BalancedJoint


def second_best(right: Any) -> Any:
    def wrong(self: Any, devices: Any, worth: Any, n: int, candidates: Any, order: Any) -> Any:
        ids = np.flatnonzero(candidates)
        return np.sort(ids[np.argsort(-worth[ids])[1 : n + 1]]), 0.0

    return wrong


def hurried(right: Any) -> Any:
    """Sends for longer than planned, and so computes faster."""
    return lambda of: replace(right(of), sending_s=right(of).sending_s * 1.01) if of.computes else right(of)


def equal_shares(right: Any) -> Any:
    def wrong(of: Devices) -> Any:
        share = np.full(of.weight.shape, 1 / of.weight.shape[-1])
        return right(of) if of.computes else replace(
            right(of), share=share, power_w=least_power_w(of, of.sending_s, share)
        )  # fmt: skip

    return wrong


def unlimited(decision: fs.Decision) -> fs.Decision:
    return replace(decision, allowance_j=None)


FEW = ("policy.least=1", "policy.scarcity=0.0")
STRESS = (*JOINT, "radio.bandwidth_hz=1e6", "radio.received_power_dbm=-26.0", "radio.fading=none")
WRONG: dict[str, tuple[Wrong, tuple[str, ...]]] = {
    "paces by the round alone, not since data was there": (
        (rations, "due_j", lambda right: lambda pace, of, t, first: right(pace, of, t, 0 * first + 1)),
        (*RATIONED, "policy.least=1", "data.arrivals.kind=truncated_normal"),
    ),
    "forgets what was spent": (
        (Class, "update", lambda right: lambda self, old, known: right(self, old, known) | {"spent_j": old["spent_j"]}),
        RATIONED,
    ),
    "takes the first": (
        (Balance, "choose", lambda right: lambda self, n: list(range(min(n, len(self.cost))))), RATIONED,
    ),
    "takes the worst": ((Balance, "value", lambda right: lambda self, *sums: -right(self, *sums)), RATIONED),
    "one too many": ((rations, "turns", lambda right: lambda *known: right(*known) + 1), (*RATIONED, *FEW)),
    "every lead counts as a hundred turns": (
        (Class, "_candidates", lambda right: lambda self, *seen: right(self.model_copy(update={"lead": 100.0}), *seen)),
        (*RATIONED, "policy.lead=1.0"),
    ),
    "knows no scarcity": (
        (rations, "part", lambda right: lambda pace, of, t, turn_j: np.zeros(len(turn_j))),
        (*RATIONED, "policy.scarcity=2.0"),
    ),
    "spends without limit": (
        (Class, "transmit", lambda right: lambda self, seen, made, gain: right(self, seen, unlimited(made), gain)),
        (*RATIONED, "radio.noise_w_per_hz=1e-7", "system.energy_budget_j=0.02"),
    ),
    "another set": ((LyapunovJoint, "_choose", second_best), JOINT),
    "hurried": ((lyapunov_joint, "allocate", hurried), STRESS),
    "equal shares": ((joint, "allocate", equal_shares), STRESS),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG)
def test_wrong_rules_are_seen(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (where, name, wrong), fields = WRONG[what]
    with monkeypatch.context() as patch:
        patch.setattr(where, name, wrong(getattr(where, name)))
        made = [fs.simulate(small(*fields), seed).save(tmp_path / f"{seed}") for seed in range(3)]
    assert any(not ask_again(path).ok for path in made), "nothing was seen in three runs"
