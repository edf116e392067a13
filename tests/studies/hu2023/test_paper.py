from __future__ import annotations

from math import inf

import pytest

from feelstream.errors import ScenarioError
from feelstream.policies import Lyapunov
from feelstream.scenario.files import preset
from feelstream_studies.hu2023 import paper as reproduce


def test_the_plan_is_the_papers_table():
    plan = reproduce.plan("all", range(2))
    arms = {arm.label: arm.scenario for arm in plan.arms}
    assert len(arms) == 8 + 6 + 6 + 8 + 12  # the last: figure 1 without empty devices, and by width
    for setting, kind in (("iid", "iid"), ("3digit", "digits")):
        for n in (2, 4):
            proposed, random = arms[reproduce.proposed(setting, n)], arms[reproduce.random(setting, n)]
            assert isinstance(proposed.policy, Lyapunov)
            assert (proposed.policy.size, proposed.policy.V) == (n, 0.05)
            assert (random.policy.plugin_name(), random.policy.size) == ("random", n)
            assert proposed.data == random.data  # the same world
            assert proposed.data.partition.plugin_name() == kind
    for setting in ("iid", "2digit", "minority", "minority-uniform"):
        for name in reproduce.METRICS:
            policy = arms[reproduce.metric(setting, name)].policy
            assert isinstance(policy, Lyapunov)
            assert (policy.metric, policy.size, policy.V) == (name, 2, inf)
    assert arms[reproduce.metric("minority-uniform", "amount")].data.arrivals.plugin_name() == "uniform"
    assert arms[reproduce.metric("minority", "amount")].data.arrivals.plugin_name() == "truncated_normal"


def test_eight_panels_and_figure_1_twice_more_without_empty_devices_and_by_width():
    panels = [panel.key for figure in reproduce.FIGURES.values() for panel in figure.panels]
    assert panels[:8] == ["1a", "1b", "1c", "1d", "2a", "2b", "3a", "3b"]
    assert panels[8:12] == ["1a-with-data", "1b-with-data", "1c-with-data", "1d-with-data"]
    assert panels[12:] == ["1a-widths", "1b-widths"]
    assert sum(len(panel.curves) for panel in reproduce.FIGURES["fig1"].panels) == 16
    assert len(reproduce.plan("fig1", [0]).arms) == 8  # panels that show the same runs share them
    assert "".join(panel.letter for panel in reproduce.FIGURES["fig1-with-data"].panels) == "abcd"


def test_the_figure_without_empty_devices_differs_in_nothing_else():
    arms = {arm.label: arm.scenario.as_dict() for arm in reproduce.plan("all", [0], ["data.eligible=any"]).arms}
    for label in (reproduce.proposed("iid", 2), reproduce.random("3digit", 4)):
        literal, skipping = reproduce.flat(arms[label]), reproduce.flat(arms[reproduce.with_data(label)])
        assert {key: skipping[key] for key in literal if skipping[key] != literal[key]} == {
            "data.eligible": "with_data"
        }


def test_a_width_of_arrivals_is_set_where_there_is_one_and_arms_by_width_keep_theirs():
    plan = reproduce.plan("all", [0], ["data.arrivals.sigma=0.1", "system.rounds=7"])
    widths = {arm.label: getattr(arm.scenario.data.arrivals, "sigma", None) for arm in plan.arms}
    for width in reproduce.WIDTHS:
        assert widths[reproduce.at_width(reproduce.random("3digit", 2), width)] == width
    assert widths[reproduce.metric("minority", "amount")] == 0.1
    assert widths[reproduce.metric("minority-uniform", "amount")] is None
    assert {arm.scenario.system.rounds for arm in plan.arms} == {7}


def test_overrides_reach_every_arm_that_has_the_field():
    plan = reproduce.plan("fig1", [0], ["system.rounds=7", "policy.V=0.5"])
    assert {arm.scenario.system.rounds for arm in plan.arms} == {7}
    assert {getattr(arm.scenario.policy, "V", None) for arm in plan.arms} == {0.5, None}  # None: random has no V
    assert reproduce.changes(plan) == ["system.rounds=7", "policy.V=0.5"]
    again = reproduce.plan("fig1", [0], reproduce.changes(plan))
    assert again == plan
    assert reproduce.changes(reproduce.plan("all", [0])) == []


@pytest.mark.parametrize(
    ("name", "override", "words"),
    [
        ("fig1", "policy.size=3", "panels of the paper's figures differ in"),
        ("fig1", "data.partition.kind=iid", "panels of the paper's figures differ in"),
        ("fig1", "system.round=3", "no such field"),
        ("fig1", "policy.speed=3", "no such field"),
        ("fig2", "policy.V=1.0", "no run of fig2"),
        ("fig1-widths", "data.arrivals.sigma=0.1", "no run of fig1-widths"),
        ("fig4", "system.rounds=3", "there is no figure 'fig4'"),
    ],
)
def test_wrong_requests_are_refused_with_a_reason(name, override, words):
    with pytest.raises(ScenarioError, match=words):
        reproduce.plan(name, [0], [override])


def test_a_plan_of_something_else_has_no_figures():
    plan = reproduce.plan("fig1", [0])
    assert [figure.key for figure in reproduce.figures_of(plan)] == ["fig1"]
    other = type(plan)("compare paper-iid", plan.arms, plan.seeds)
    assert reproduce.figures_of(other) == ()


def test_the_literal_specification_is_told_as_changes_that_make_the_same_plan_again():
    plan = reproduce.plan("all", range(2000, 2002), ["policy.V=0.1"], reproduce.LITERAL)
    told = reproduce.command(plan)
    assert told.startswith("feelstream reproduce all --seeds 2 --seed-start 2000 --set system.rounds=25 ")
    again = reproduce.plan("all", range(2000, 2002), reproduce.changes(plan))
    assert again == plan
    widths = reproduce.plan("fig1-widths", [0], specification=reproduce.LITERAL)  # whose σ are its own
    assert {arm.scenario.data.fresh for arm in widths.arms} == {"per_round"}


def test_the_literal_presets_are_the_literal_specification():
    for figure in ("fig1", "fig2", "fig3"):
        for arm in reproduce.plan(figure, [0], specification=reproduce.LITERAL).arms:
            name, own = reproduce._recipes()[arm.label]
            by_preset = reproduce.flat(preset(name.replace("paper-", "literal-"), own).as_dict())
            by_specification = reproduce.flat(arm.scenario.as_dict())
            differ = {key for key in by_preset if by_preset[key] != by_specification[key]}
            assert differ <= {"learning.eval_every"}
