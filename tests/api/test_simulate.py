"""One run from Python: names, paths, fields by keyword, progress, callbacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import small
from stopped import stop_in

import feelstream as fs
from feelstream.errors import ScenarioError
from feelstream.policies import Lyapunov


def test_a_name_a_path_or_a_scenario(tmp_path: Path) -> None:
    scenario = fs.preset("tiny", ["system.rounds=3", "learning.engine=none", "policy.V=0.1"])
    (tmp_path / "mine.toml").write_text(fs.to_toml(scenario), encoding="utf-8")
    by_name = fs.simulate("tiny", 2, V=0.1, rounds=3, engine="none")
    assert by_name.scenario == scenario
    for source in (tmp_path / "mine.toml", str(tmp_path / "mine.toml"), scenario):
        assert fs.simulate(source, seed=2).rounds.equals(by_name.rounds)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"polcy.V": 1.0}, "polcy: there is no such field; did you mean 'policy'"),
        ({"policy": 3}, "policy: must be a name, a class or an object of a class, not 3"),
        ({"policy.v": 1.0}, "policy.v: there is no such field in lyapunov; did you mean 'V'"),
        ({"learning.clip": 1.0}, "learning.clip: there is no such field; did you mean 'learning.local.clip'"),
        ({"learning.clip": 1.0, "server": "gaussian"}, "learning.clip: there is no such field; allowed: engine, model"),
        (
            {"data.rounds": 3, "buffer": "window"},
            "data.rounds: there is no such field; did you mean 'data.buffer.rounds'",
        ),
        ({"kind": "iid"}, "there is no field 'kind'"),
        ({"buffer.rounds": 7}, "no such field in keep, which has none; it is one of window"),
    ],
)
def test_a_wrong_field_is_told_in_a_sentence(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence.replace(".", r"\.")):
        fs.preset("tiny").with_(**fields)


def test_with_changes_names_objects_and_tables() -> None:
    tiny = fs.preset("tiny")
    assert tiny.with_(policy="random", **{"policy.size": 3}) == fs.preset(
        "tiny", ["policy.name=random", "policy.size=3"]
    )
    assert tiny.with_(partition="digits", per_device=2).data.partition.model_dump() == {
        "kind": "digits",
        "per_device": 2,
        "sizes": "shards",
    }
    window = tiny.with_(buffer="window", **{"buffer.rounds": 4})  # a table without its section
    assert window == fs.preset("tiny", ["data.buffer.kind=window", "data.buffer.rounds=4"])
    assert window == tiny.with_(buffer="window", **{"data.buffer.rounds": 4})
    assert window.system.rounds == 10
    assert tiny.with_(rounds=4).system.rounds == 4
    assert tiny == fs.preset("tiny")

    class Local(Lyapunov):
        """Lives in a function, so no name leads to it."""

    changed = tiny.with_(policy=Local(V=0.3)).with_(V=0.4, size=3)
    assert isinstance(changed.policy, Local)
    assert (changed.policy.V, changed.policy.size) == (0.4, 3)


def test_progress_is_shown_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    fs.simulate(small())
    assert capsys.readouterr() == ("", "")
    fs.simulate(small(), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "8/8" in shown.err
    seen = []
    fs.simulate(small(), progress=seen.append)
    assert [record.observation.round for record in seen] == list(range(1, 9))


class Notes(fs.Callback):
    def __init__(self) -> None:
        self.said: list[object] = []

    def on_start(self, scenario: fs.Scenario, seed: int) -> None:
        self.said.append(seed)

    def on_round(self, row) -> None:
        self.said.append(dict(row))

    def on_end(self, run: fs.Run) -> None:
        self.said.append(run)


def test_callbacks_are_told_the_rows_of_the_table(tmp_path: Path) -> None:
    notes = Notes()
    run = fs.simulate(small("learning.engine=native", "learning.eval_every=3"), 5, callbacks=[notes])
    seed, *rows, end = notes.said
    assert (seed, end) == (5, run)
    assert [sorted(row) for row in rows] == [sorted(run.rounds.columns)] * 8  # type: ignore[arg-type]
    for told, row in zip(rows, run.rounds.rows(named=True), strict=True):
        assert told == pytest.approx(row, nan_ok=True) if row["accuracy"] is not None else told["accuracy"] is None  # type: ignore[index]


def test_a_run_that_goes_on_has_the_running_mean_of_all_its_rounds(tmp_path: Path) -> None:
    stop_in(tmp_path / "run", small(), at=5)
    notes = Notes()
    run = fs.simulate(small(), out=tmp_path / "run", callbacks=[notes])
    told = [row for row in notes.said if isinstance(row, dict)]
    assert [row["round"] for row in told] == [5, 6, 7, 8]
    assert told[-1]["energy_mean_cum_j"] == pytest.approx(run.rounds["energy_mean_cum_j"][-1], rel=1e-12)
    again = Notes()
    fs.simulate(small(), out=tmp_path / "run", callbacks=[again])
    assert [type(entry).__name__ for entry in again.said] == ["int", "Run"]  # it was complete: no round is played


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, feelstream; heavy = {'numpy', 'scipy', 'polars', 'matplotlib', 'pydantic'} & set(sys.modules); "
        "assert not heavy, heavy; feelstream.Scenario; assert 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there() -> None:
    for name in fs.__all__:
        assert getattr(fs, name) is not None
    assert sorted(fs.__all__) == dir(fs)


class Fewest(fs.Policy):
    """The feasible devices with the least data."""

    def select(self, state: object, observation: fs.Observation, rng: np.random.Generator) -> fs.Decision:
        plan = observation.plan(self.size)
        return fs.Decision(np.flatnonzero(plan.feasible)[: self.size], plan)


@pytest.mark.parametrize("policy", [Fewest, Fewest(), Fewest(size=3)])
def test_a_policy_is_a_class_or_an_object(policy: object) -> None:
    run = fs.simulate("tiny", policy=policy, rounds=2, engine="none")
    assert isinstance(run.scenario.policy, Fewest)
    assert run.scenario.policy.size == getattr(policy, "size", 2)
