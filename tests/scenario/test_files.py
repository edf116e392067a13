"""Presets, overrides and the way from and to TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import feelstream as fs
from feelstream.errors import ScenarioError
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
    assert unexplained == ["kind", *["kind"] * 3, *["kind"] * 7, "name", "kind", "kind"]  # costs.rule among them


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
