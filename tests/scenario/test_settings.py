"""The settings themselves; wrong ones are told in test_cli.py."""

from __future__ import annotations

import numpy as np
import pytest

import feelstream as fs
from feelstream.data.streaming.buffers import Window
from feelstream.learning.server.fedopt import FedAvgM
from feelstream.policies import Lyapunov, Random
from feelstream.scenario import Scenario


def test_the_defaults_are_the_papers() -> None:
    system = Scenario().known_system(10)
    assert (system.devices, system.rounds, system.round_s) == (40, 40, 4.0)
    assert system.received_power_w == pytest.approx(0.631, rel=1e-3)
    assert (system.energy_budget_j == np.full(40, 5e-4)).all()
    assert Scenario().policy == Lyapunov(V=0.05, size=2, cardinality="exact", metric="combined")


def test_settings_from_objects() -> None:
    assert Scenario(policy=Random(size=3)).policy == Random(size=3)
    with pytest.raises(ValueError, match=r"policy\.size: must be at most"):
        Scenario(policy=Random(size=41))


@pytest.mark.parametrize(
    "overrides",
    [
        ["server=top_k(fraction=0.2,inner=fedavgm(server_momentum=0.5))"],
        ["learning.server.inner.kind=fedavgm", "server.kind=top_k", "inner.server_momentum=0.5", "fraction=0.2"],
        ["learning.server.kind=top_k", "fraction=0.2", 'inner={kind = "fedavgm", server_momentum = 0.5}'],
    ],
)
def test_a_plugin_in_a_plugin_is_set_as_any_other(overrides: list[str]) -> None:
    server = fs.preset("tiny", overrides).learning.server
    assert server.model_dump(exclude={"feedback"}) == {
        "kind": "top_k",
        "fraction": 0.2,
        "inner": FedAvgM(server_momentum=0.5).model_dump(),
    }
    again = fs.preset("tiny").with_(server=server).overridden(["inner.server_momentum=0.25"])  # of an object
    assert again.learning.server == server.model_copy(update={"inner": FedAvgM(server_momentum=0.25)})


def test_the_shortest_path_to_a_field_is_meant() -> None:
    scenario = fs.preset("tiny", ["buffer=window(rounds=3)", "rounds=7", "samples=50", "lr=0.5"])
    assert (scenario.system.rounds, scenario.data.buffer, scenario.data.samples) == (7, Window(rounds=3), 50)
    assert dict(scenario.learning.local)["lr"] == 0.5
    assert fs.preset("tiny", ["data.buffer=window", "buffer.rounds=4"]).data.buffer == Window(rounds=4)
    with pytest.raises(fs.FeelstreamError, match="there is no field 'inner'"):
        fs.preset("tiny", ["inner=fedavgm"])
    with pytest.raises(fs.FeelstreamError, match=r"data\.buffer\.size: there is no such field in window; allowed"):
        fs.preset("tiny", ["buffer=window(size=3)"])


def test_the_smallest_plan_decides_what_can_ever_fit() -> None:
    """Two on the band never fit the round, one does: only a policy that may plan one alone is possible."""
    narrow = ["radio.bandwidth_hz=1e6", "radio.received_power_dbm=-36", "cpu.frequency_hz=[1e9, 1e10]"]
    narrow += ["system.round_s=0.5", "data.dataset=synthetic", "policy.size=2"]
    with pytest.raises(fs.FeelstreamError, match="sending with 2 on the band"):
        fs.preset("paper-iid", narrow)
    free = fs.preset("paper-iid", [*narrow, "policy.cardinality=free", "learning.engine=none", "system.rounds=10"])
    assert set(fs.simulate(free).rounds["scheduled"]) <= {0, 1}


def test_the_extremes_of_what_is_allowed_can_be_played() -> None:
    overrides = ["learning.engine=none", "system.rounds=5", "policy.V=1e100", "system.energy_budget_j=1e100"]
    overrides += ["radio.received_power_dbm=900", "radio.gain_db=[-50, 1000]", "radio.link_margin=1e100"]
    run = fs.simulate(fs.preset("tiny", overrides))
    assert np.isfinite(run.rounds["energy_mean_j"].to_numpy()).all()
    assert run.rounds["scheduled"].sum() > 0
