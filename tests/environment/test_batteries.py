"""No battery is ever overdrawn, whatever the world and whoever schedules; who cannot promise that is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import devices_of, found_in, small, to_run, verified
from hypothesis import given, settings
from hypothesis import strategies as st

import feelstream as fs
from feelstream.errors import FeelstreamError, ScenarioError
from feelstream.loop.world import World
from feelstream.model.transmission import Transmission
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation, Policy, State

OWN_BAND = ["lyapunov_joint", "lyapunov_joint policy.power_max_w=0.3", "ocean", "ocean policy.power=fixed"]
EVERY_POLICY = sorted({*POLICIES.names(), *OWN_BAND})

CLASSES = "devices.classes=[{share=0.5, cycles=8e7}, {share=0.5, cycles=9e8, gain_db=[-9.0, -4.0]}]"
WORLDS = st.fixed_dictionaries(
    {
        "world.harvest.kind": st.sampled_from(["packets", "solar"]),
        # From less than a round of computing takes to more than a run can spend.
        "world.harvest.capacity_j": st.sampled_from([0.05, 0.5, 2.0, 8.0, 30.0]),
        "world.harvest.start": st.sampled_from([0.0, 0.3, 1.0]),
        "world.mobility.kind": st.sampled_from(["static", "random_direction"]),
        "world.channel.kind": st.sampled_from(["independent", "ar1"]),
        "world.availability.kind": st.sampled_from(["always", "markov"]),
        "world.frequency.kind": st.sampled_from(["uniform", "levels"]),
        "radio.link_margin": st.sampled_from([1.0, 3.0]),
        "radio.admission": st.sampled_from(["paper", "largest"]),
        # Radio-bound: with 0.2 MHz sending takes most of a round, at nearly full power.
        "radio.bandwidth_hz": st.sampled_from([2e5, 2e7]),
        "policy.size": st.sampled_from([1, 3]),
    }
)


def play(policy: str, world: dict[str, Any], mixed: bool, seed: int) -> fs.Run:
    name, *own = policy.split()
    overrides = [*to_run(name), f"policy.name={name}", *own, *(f"{field}={value}" for field, value in world.items())]
    return fs.simulate(small(*overrides, *([CLASSES] if mixed else []), "data.arrivals.kind=poisson"), seed)


@pytest.mark.slow
@pytest.mark.parametrize("policy", EVERY_POLICY)
@settings(max_examples=5)
@given(world=WORLDS, mixed=st.booleans(), seed=st.integers(0, 99))
def test_no_battery_is_overdrawn(policy: str, world: dict[str, Any], mixed: bool, seed: int) -> None:
    run = play(policy, world, mixed, seed)
    table = devices_of(run)
    spent = table.select(pl.sum_horizontal("^e_(cmp|tr|report)_j$")).to_series().to_numpy()
    charge = table["battery_j"].to_numpy()
    assert (charge >= 0).all()
    assert (spent <= charge * (1 + 1e-12)).all()
    verified(run)


@pytest.mark.parametrize(("policy", "charge_j"), list(zip(OWN_BAND, (6.0, 0.8, 6.0, 4.0), strict=True)))
def test_batteries_hold_some_devices_back_and_not_all(policy: str, charge_j: float) -> None:
    world = {"world.harvest.kind": "packets", "world.harvest.capacity_j": charge_j, "world.harvest.start": 1.0}
    table = devices_of(play(policy, world, False, 1))
    assert table["scheduled"].any()
    assert not table["available"].all()


def test_the_bound_is_the_policys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator that asks for less charge than lyapunov_joint can spend is seen, though nothing was overdrawn."""
    with monkeypatch.context() as patch:
        patch.setattr(World, "worst_case_j", lambda self, system, most_power_w: system.most_compute_energy_j(self.f_hz))
        world = {"world.harvest.kind": "packets", "world.harvest.capacity_j": 3.0}
        run = play("lyapunov_joint", world, False, 1)
    assert found_in(run).field == "available"


class Loud(Policy):
    """Everyone sends with a kilowatt, and does not say so."""

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        return Decision(np.flatnonzero(plan.feasible)[: self.size], plan)

    def transmit(self, observation: Observation, decision: Decision, gain: np.ndarray) -> Transmission:
        plain = super().transmit(observation, decision, gain)
        return replace(plain, power_w=1e3 * plain.sent, e_tr_j=1e3 * plain.t_tr_s)


class Liar(Loud):
    """The same, and promises a watt."""

    def most_power_w(self, system: Any, beta: np.ndarray) -> np.ndarray:
        return np.ones(len(beta))


def test_a_policy_that_does_not_say_its_power_is_refused() -> None:
    harvest = "world.harvest.kind=packets"
    with pytest.raises(ScenarioError, match=r"world.harvest.kind: must be none for a policy with its own transmit"):
        small(harvest).with_(policy=Loud())
    assert small().with_(policy=Loud()).policy == Loud()
    with pytest.raises(FeelstreamError, match=r"let device \d spend .* J of a charge of .* J in round 1"):
        fs.simulate(small(harvest, "radio.bandwidth_hz=2e6").with_(policy=Liar()))
