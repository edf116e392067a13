"""What a tab holds: a drafted race, which is what `feelstream compare` takes, or stored runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_plans import in_process, two_arms

from feelstream.errors import ScenarioError
from feelstream.experiment.comparison import arms
from feelstream.studio.lanes import first_seeds, stored_runs
from feelstream.studio.session import Draft, Session, first_draft


def test_a_draft_has_the_arms_of_the_comparison_with_the_same_words() -> None:
    draft = Draft("tiny", policies="lyapunov(V=0.5,size=3), random", settings="\nsystem.rounds = 7\n engine=none\n")
    assert draft.arms() == arms("tiny", ["lyapunov(V=0.5,size=3)", "random"], ["system.rounds=7", "engine=none"])
    assert [lane.label for lane in draft.lanes()] == ["lyapunov(V=0.5,size=3)", "random"]
    assert {lane.scenario.system.rounds for lane in draft.lanes()} == {7}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"policies": "lyapunov(V=-1), random"}, "policy.V: must be greater than 0, not -1"),
        ({"policies": "lyapunof"}, "did you mean 'lyapunov'"),
        ({"policies": "all"}, "policies: at most 4 race at once, not "),
        ({"policies": " "}, "policies: name at least one"),
        ({"settings": "system.devices"}, "'system.devices' must read section.field=value"),
        ({"settings": "cpu.frequency_hz = [2e9, 1e9]"}, "cpu.frequency_hz"),
        ({"seed": "-4"}, "seed: must be a whole number from 0 to 2^63 - 1, not '-4'"),
        ({"seed": str(2**63)}, "seed: must be a whole number"),
    ],
)
def test_what_is_wrong_gets_a_sentence(wrong: dict[str, str], sentence: str) -> None:
    with pytest.raises(ScenarioError) as told:
        Draft("tiny", **wrong).check()
    assert sentence in str(told.value)


def test_the_first_race_is_possible_with_and_without_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path))
    draft, note = first_draft()
    assert {arm.scenario.data.dataset for arm in draft.arms()} == {"synthetic"}
    assert "MNIST is not on this machine yet" in note
    assert Draft().check() is None


def test_a_comparison_opens_with_a_lane_for_each_policy(tmp_path: Path) -> None:
    in_process(two_arms((3, 4), "system.rounds=5"), tmp_path)
    stored = stored_runs(tmp_path)
    assert list(stored) == [("ours", 3), ("ours", 4), ("random", 3), ("random", 4)]
    session = Session([tmp_path])
    assert session.race.wait(lambda race: race.ready)
    assert [(lane.label, lane.seed) for lane in session.race.lanes] == [("ours", 3), ("random", 3)]
    session.replay({"ours, seed 4": stored["ours", 4]}, "one")
    assert session.race.wait(lambda race: race.ready)
    assert [(lane.label, lane.seed) for lane in session.race.lanes] == [("ours, seed 4", 4)]
    session.close()
    assert list(first_seeds(stored_runs(stored["ours", 3]))) == [stored["ours", 3].name]
