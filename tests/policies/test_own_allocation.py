"""Policies that choose frequencies, power and band themselves: the lawful pass the run and `verify`, and only they.

Both go by physics, not by equal shares and P0/β.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from builders import devices_of, small, verified
from sealing import seal

import feelstream as fs
from feelstream.errors import PluginError
from feelstream.model.transmission import Transmission
from feelstream.policies.base import Decision, Observation, State
from feelstream.policies.random import Random
from feelstream.testing import check

HERE = "tests/policies/test_own_allocation.py"
ROUNDS = ("system.rounds=12",)
COSTS = f"costs.rule.kind={Path(__file__).parents[2] / 'examples' / 'my_cost.py'}:Sparse"  # updates differ in size
LIMIT = "radio.power_max_w=20.0"  # above all that a lawful allocation takes here


def lawful(observation: Observation, decision: Decision, gain: np.ndarray, rng: np.random.Generator) -> Transmission:
    """Any allocation that physics allows: shares, powers and times drawn at random; who is too late does not send."""
    system, ids = observation.system, decision.schedule
    f_hz = observation.f_hz[ids] if decision.f_hz is None else decision.f_hz
    computed_s = system.cycles[ids] / f_hz
    share = rng.dirichlet(np.ones(len(ids))) * rng.uniform(0.3, 1.0) if len(ids) else np.zeros(0)
    power_w = rng.uniform(0.5, 4.0, len(ids)) * system.received_power_w / observation.beta[ids]
    hz = share * system.bandwidth_hz
    rate = hz * np.log2(1 + power_w * gain / (hz * system.noise_w_per_hz))
    needed_s = system.device_bits[ids] / np.maximum(rate, 1e-300)
    left_s = system.time_s[ids] - computed_s
    sent = needed_s <= left_s
    time_s = np.where(sent, needed_s + rng.random(len(ids)) * np.maximum(left_s - needed_s, 0), 0.0)
    share, power_w = np.where(sent, share, 0.0), np.where(sent, power_w, 0.0)
    return Transmission(sent, share, power_w, computed_s, time_s, system.compute_energy_j(f_hz, ids), power_w * time_s)


class Free(Random):
    """Random devices at random frequencies, with a random lawful split; `factors` spoil it."""

    tag: ClassVar[str] = f"{HERE}:Free"
    factors: ClassVar[dict[str, float]] = {}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        system = observation.system
        in_time = observation.available & (observation.compute_time_s < system.time_s)
        plan = observation.plan(self.size, feasible=in_time)
        ids = np.sort(rng.permutation(np.flatnonzero(in_time))[: self.size])
        slowest = system.cycles[ids] / system.time_s[ids] * 1.2
        f_hz = np.minimum(
            np.maximum(observation.f_hz[ids] * rng.uniform(0.3, 1.0, len(ids)), slowest), observation.f_hz[ids]
        )
        return Decision(ids, plan, f_hz=f_hz)

    def transmit(self, observation: Observation, decision: Decision, gain: np.ndarray) -> Transmission:
        spent = lawful(observation, decision, gain, np.random.default_rng(observation.round))
        return spoilt(spent, self.factors)


def run_of(policy: Any, *fields: str, seed: int = 1) -> fs.Run:
    return fs.simulate(small(*ROUNDS, *fields).with_(policy=policy), seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fields", [(), ("radio.bandwidth_hz=1e6",), ("radio.fading=none",), (COSTS,)])
def test_lawful_allocations_run_and_verify(fields: tuple[str, ...], seed: int) -> None:
    run = run_of(Free(size=3), *fields, seed=seed)
    assert run.rounds["transmitted"].sum() > 0
    assert "how the band was split, beyond physics" in str(verified(run))


def test_lawful_allocations_keep_the_contract() -> None:
    assert [result.problem for result in check(Free()) if not result.ok] == []


# name → (what columns are multiplied by, what the run says, what `verify` says)
UNLAWFUL: dict[str, tuple[dict[str, float], str, str]] = {
    "faster than the CPU": ({"t_cmp_s": 0.1}, "computes faster than its CPU", "no device computes faster than it can"),
    "in no time": ({"t_cmp_s": 0.0}, "computes faster than its CPU", "a scheduled device computes for some time"),
    "free computing": ({"e_cmp_j": 0.0}, "e_cmp_j that the energy law does not give", "E_cmp = "),
    "free sending": ({"e_tr_j": 0.0}, r"e_tr_j that is not P·t_tr_s", "E_tr = P·T_tr"),
    "too few bits": ({"t_tr_s": 1e-3, "e_tr_j": 1e-3}, "sends fewer bits than", "sends the whole update"),
    "after the round": (
        {"t_tr_s": 1e6, "e_tr_j": 1e6}, "ends after (the round|its deadline)", "meets the true deadline",
    ),
    "more than the band": ({"bandwidth_share": 20.0}, "of the band, at most 1 in all", "no more than the whole band"),
    "negative energy": ({"e_tr_j": -1.0}, "whose e_tr_j is an array of finite .* at least 0", "e_tr_j is not negative"),
    "a share for the silent": ({"sent": 0.0}, "of the band, at most 1 in all", "for those who did not send"),
    "no share for a sender": (
        {"bandwidth_share": 0.0}, "a share of the band, at most 1 in all", "a share of the band if it transmits",
    ),
    "too little power": ({"power_w": 1e-12, "e_tr_j": 1e-12}, "sends fewer bits than", "sends the whole update"),
    "too much power": (
        {"power_w": 1e3, "e_tr_j": 1e3},
        "sends with more power than its power_max_w",
        "no device sends with more than its power_max_w",
    ),
}  # fmt: skip


def spoilt(spent: Transmission, factors: dict[str, float]) -> Transmission:
    return replace(spent, **{n: (getattr(spent, n) * x).astype(getattr(spent, n).dtype) for n, x in factors.items()})


def spoilt_table(table: pl.DataFrame, factors: dict[str, float]) -> pl.DataFrame:
    columns = {name.replace("sent", "transmitted"): factor for name, factor in factors.items()}
    return table.with_columns((pl.col(name) * factor).cast(table[name].dtype) for name, factor in columns.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", UNLAWFUL)
@pytest.mark.parametrize("fields", [(LIMIT,), (LIMIT, COSTS)], ids=["alike", "by a cost rule"])
def test_what_physics_forbids_is_named(fields: tuple[str, ...], name: str, tmp_path: Path) -> None:
    """By the run, and by `verify` where the tables say so."""
    factors, refused, rule = UNLAWFUL[name]
    wrong = type("Free", (Free,), {"factors": factors})
    with pytest.raises(PluginError, match=refused):
        run_of(wrong(size=3), *fields)
    run = run_of(Free(size=3), *fields)
    path = run.save(tmp_path / "run")
    spoilt_table(devices_of(run), factors).write_parquet(path / "devices.parquet")
    found = fs.verify(seal(path)).disagreement
    assert found is not None
    assert rule in found.rule


class Slower(Random):
    """A chosen frequency and the default allocation."""

    tag: ClassVar[str] = f"{HERE}:Slower"
    factor: float = 0.5

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        decision = super().select(state, observation, rng)
        left_s = observation.system.round_s - decision.plan.transmit_time_s
        f_hz, least = observation.f_hz[decision.schedule], observation.system.cycles[decision.schedule] / left_s
        return replace(
            decision, f_hz=np.maximum(f_hz * self.factor, least * (1 + 1e-9)) if self.factor < 1 else f_hz * self.factor
        )


def test_a_chosen_frequency_acts_without_an_own_transmit() -> None:
    run = run_of(Slower())
    on = devices_of(run).filter(pl.col("scheduled"))
    used = small().cpu.cycles / on["t_cmp_s"].to_numpy()
    assert (used <= on["f_hz"].to_numpy() * (1 + 1e-9)).all()
    assert (used < on["f_hz"].to_numpy() * 0.9).any()
    verified(run)
    with pytest.raises(PluginError, match="one frequency above 0 per scheduled device, at most its own"):
        run_of(Slower(factor=3.0))


def test_the_published_example_runs_and_verifies() -> None:
    """Slow devices that equal shares would leave out take part, and all who send finish together."""
    fields = ["policy.name=examples/my_allocation.py:FinishTogether", "learning.engine=none", "system.rounds=15"]
    run = fs.simulate(fs.preset("stress", fields), 1)
    verified(run)
    ends = devices_of(run).filter(pl.col("transmitted")).with_columns(end=pl.col("t_cmp_s") + pl.col("t_tr_s"))
    spread = ends.group_by("round").agg((pl.col("end").max() - pl.col("end").min()).alias("spread"))["spread"]
    assert spread.max() < 1e-6  # pyright: ignore[reportOperatorIssue]
    shares = ends.group_by("round").agg(pl.col("bandwidth_share").sum())["bandwidth_share"].to_numpy()
    np.testing.assert_allclose(shares, 1.0, atol=1e-6)
