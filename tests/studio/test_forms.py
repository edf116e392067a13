"""Forms from settings, drafts of races, and complaints that are those of the command line."""

from __future__ import annotations

import pytest

from feelstream.errors import ScenarioError
from feelstream.policies import POLICIES
from feelstream.scenario import Scenario
from feelstream.scenario.fields import leaves
from feelstream.scenario.files import from_dict, preset, presets
from feelstream.scenario.overrides import as_text
from feelstream.studio.draft import Draft, field_named_in, forms_of


def overrides(forms) -> list[str]:
    """What a form would say after --set if nobody touched it."""
    return [f"{field.path}={field.default}" for field in forms]


@pytest.mark.parametrize("name", list(presets()))
def test_untouched_forms_give_the_preset_back(name: str) -> None:
    scenario = preset(name)
    fields = [field for section in forms_of(scenario).values() for field in section]
    assert from_dict(scenario.as_dict(), overrides(fields)) == scenario


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_has_a_form_and_every_field_a_description(name: str) -> None:
    fields = forms_of(preset("paper-iid", [f"policy.name={name}"]))["policy"]
    assert fields[0].choices == tuple(POLICIES.names())
    assert {field.name for field in fields} >= {"name", "size"}
    assert all(field.description for field in fields)


def test_all_of_a_scenario_is_in_some_form() -> None:
    known = {field.path: field for form in forms_of(Scenario()).values() for field in form}
    for leaf in leaves(Scenario, Scenario()):
        if leaf.path[0] not in ("devices", "trace") and leaf.model is None and leaf.value is not None:
            assert ".".join(leaf.path) in known
    assert {"cpu.energy.kind", "data.arrivals.kind", "learning.local.lr", "world.mobility.kind"} <= known.keys()
    assert known["radio.fading"].choices == ("rayleigh", "none")


@pytest.mark.parametrize(
    ("set_wrong", "where"),
    [
        (lambda draft: draft.policies[0].update({"policy.V": "-1"}), (0, "policy.V")),
        (lambda draft: draft.policies[1].update({"policy.size": "0"}), (1, "policy.size")),
        (lambda draft: draft.policies[1].update({"policy.size": "99"}), (1, "policy.size")),
        (lambda draft: draft.world.update({"system.devices": "x"}), (None, "system.devices")),
        (lambda draft: draft.world.update({"cpu.frequency_hz": "[2e9, 1e9]"}), (None, "cpu.frequency_hz")),
        (lambda draft: draft.world.update({"data.arrivals.sigma": "-3"}), (None, "data.arrivals.sigma")),
        (lambda draft: setattr(draft, "seed", "-4"), (None, "seed")),
    ],
)
def test_the_field_that_is_wrong_is_named_with_the_sentence_of_the_command_line(set_wrong, where) -> None:
    draft = Draft("paper-iid")
    assert draft.problem() is None
    set_wrong(draft)
    problem = draft.problem()
    assert problem is not None
    assert problem[:2] == where
    if where[1] != "seed":
        typed = draft.world | draft.policies[where[0] or 0]
        with pytest.raises(ScenarioError) as told:
            preset("paper-iid", [f"{path}={text}" for path, text in typed.items()])
        assert problem[2] == str(told.value)


def test_two_to_four_policies_with_labels_of_their_own() -> None:
    ours = {"policy.name": "lyapunov"}
    draft = Draft(policies=[ours])
    assert draft.problem() == (None, None, "a race has from 2 to 4 policies, not 1")
    draft.policies = [ours | {"policy.V": "1"}, ours, ours]
    assert draft.labels() == ["lyapunov V=1", "lyapunov", "lyapunov (2)"]


def test_a_form_follows_the_kind_that_is_chosen_in_it() -> None:
    draft = Draft("paper-iid", world={"data.partition.kind": "digits"})
    fields = [field.path for field in draft.forms()[0]["data"]]
    assert "data.partition.per_device" in fields


def test_values_as_they_would_be_typed() -> None:
    assert [as_text(value) for value in (5e-4, 419328000.0, True, (2e7, 1.52e9), "iid", 1 / 3)] == [
        "0.0005", "4.19328e+08", "true", "[2e+07, 1.52e+09]", "iid", "0.3333333333333333",
    ]  # fmt: skip


def test_a_complaint_about_a_table_is_shown_at_one_of_its_fields() -> None:
    paths = {"data.arrivals.kind", "system.round_s"}
    assert field_named_in("data.arrivals: must be a table", paths) == "data.arrivals.kind"
    assert field_named_in("system.round_s: no update can ever fit", paths) == "system.round_s"
    assert field_named_in("something else entirely", paths) is None
