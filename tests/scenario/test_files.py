"""Presets, overrides, the way from and to TOML, and the settings themselves; wrong ones are in test_refused.py."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

import feelstream as fs
from feelstream.data.streaming.buffers import Window
from feelstream.errors import ScenarioError
from feelstream.learning.server.fedopt import FedAvgM
from feelstream.policies import Lyapunov, Random
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict

PRESETS = list(fs.presets())


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_toml(name: str, tmp_path: Path) -> None:
    scenario = fs.preset(name)
    path = tmp_path / "scenario.toml"
    path.write_text(fs.to_toml(scenario, fs.presets()[name]), encoding="utf-8")
    assert fs.load(path) == scenario
    assert fs.load(name) == scenario


def test_the_list_of_presets() -> None:
    assert set(PRESETS) >= {
        "paper-iid", "paper-3digit", "paper-2digit", "paper-minority", "paper-minority-uniform",
        "literal-iid", "literal-3digit", "literal-2digit", "literal-minority", "literal-minority-uniform",
        "long-iid", "long-3digit", "stress", "theorem", "million", "tiny",
    }  # fmt: skip
    assert all(fs.presets().values())


def test_toml_says_what_every_field_means() -> None:
    lines = [line for line in fs.to_toml(fs.preset("paper-minority")).splitlines() if "=" in line]
    unexplained = [line.split(" =")[0] for line in lines if "#" not in line]
    assert unexplained == ["kind", *["kind"] * 4, *["kind"] * 7, "name", "kind", "kind"]  # costs.rule among them


@pytest.mark.parametrize(
    ("override", "section", "field", "value"),
    [
        ("policy.V=0.2", "policy", "V", 0.2),
        ("policy.V=inf", "policy", "V", float("inf")),
        ("policy.V=.5", "policy", "V", 0.5),
        ("policy.V = 1", "policy", "V", 1.0),
        ("policy.metric=amount", "policy", "metric", "amount"),
        ("policy.metric='amount'", "policy", "metric", "amount"),
        ("data.dataset=1e3.npz", "data", "dataset", "1e3.npz"),
        ('data.dataset="a = b.npz"', "data", "dataset", "a = b.npz"),
        ("system.rounds=30", "system", "rounds", 30),
        ("system.rounds=3_0", "system", "rounds", 30),
        ("cpu.frequency_hz=[1e8, 2e9]", "cpu", "frequency_hz", (1e8, 2e9)),
        ("radio.fading=none", "radio", "fading", "none"),
        ("learning.engine=none", "learning", "engine", "none"),
        ("system.energy_budget_j=" + str([0.5] * 40), "system", "energy_budget_j", (0.5,) * 40),
    ],
)
def test_overrides_are_typed_like_the_field(override: str, section: str, field: str, value: object) -> None:
    found = getattr(getattr(fs.preset("paper-iid", [override]), section), field)
    assert found == value
    assert type(found) is type(value)


def test_another_policy_keeps_the_fields_both_know() -> None:
    scenario = fs.preset("paper-iid", ["policy.size=4", "policy.name=random"])
    assert scenario.policy.model_dump() == {"name": "random", "size": 4}
    assert fs.preset("tiny", ["policy.name='random'"]).policy.plugin_name() == "random"
    assert fs.preset("paper-3digit", ["data.partition.kind=iid"]).data.partition.plugin_name() == "iid"


def test_the_order_of_overrides_does_not_matter_for_names() -> None:
    overrides = ["data.arrivals.rate=7", "data.arrivals.kind=poisson"]
    assert fs.preset("paper-iid", overrides) == fs.preset("paper-iid", overrides[::-1])


def test_overrides_leave_the_table_alone() -> None:
    table = {"policy": {"V": 1.0}}
    assert from_dict(table, ["policy.V=2"]).policy.model_dump()["V"] == 2
    assert table == {"policy": {"V": 1.0}}


def test_an_empty_file_is_the_papers_setting(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    assert fs.load(tmp_path / "empty.toml") == fs.Scenario()


def test_scenarios_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        fs.Scenario().system.rounds = 3  # type: ignore[misc]


def test_a_field_a_user_left_open_has_no_place_in_toml(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from feelstream.policies.random import Random\n"
        "class Mine(Random):\n"
        "    tag = ''\n"
        "    limit: float | None = None\n"
    )
    scenario = fs.preset("tiny", [f"policy.name={file}:Mine"])
    text = fs.to_toml(scenario)
    assert "limit" not in text
    assert from_dict(tomllib.loads(text)) == scenario


def test_a_name_too_long_for_a_file_is_told() -> None:
    with pytest.raises(ScenarioError, match="neither a preset nor a file"):
        fs.load("x" * 5000)


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
    assert fs.preset("tiny", ["arrivals=trace(path='a, [b.csv')"]).data.arrivals.model_dump()["path"] == "a, [b.csv"


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
