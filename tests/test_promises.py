"""What plug-ins promise is known wherever it is needed: to verify, to measures, to a stored run without their code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import odd_plugins as odd
import pytest
from builders import found_in, small, verified
from sealing import seal
from small_plans import in_process

import feelstream as fs
from feelstream.data.streaming.buffers import Buffer, Fifo, UseOnce
from feelstream.experiment import Arm, Plan
from feelstream.experiment import load as load_results
from feelstream.experiment.runs import COLUMNS, arrivals, participation
from feelstream.run import simulate_in
from feelstream.stored import Inert

HERE = Path(__file__).resolve()


@pytest.mark.parametrize("buffer", [*odd.BUFFERS, UseOnce()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("fresh", ["since_use", "per_round"])
def test_a_run_with_an_odd_buffer_verifies_and_is_read_without_its_code(
    buffer: Buffer, fresh: str, tmp_path: Path
) -> None:
    scenario = small("system.rounds=20", f"data.fresh={fresh}", "data.arrivals.kind=poisson", "policy.V=inf")
    scenario = scenario.with_(buffer=buffer)
    run = simulate_in(tmp_path / "run", scenario, 1)
    assert run.rounds["transmitted"].sum() > 5
    verified(run)
    stored = fs.read(tmp_path / "run").scenario.data.buffer
    assert stored.stated_traits() == buffer.stated_traits()
    assert isinstance(stored, Inert) == (type(buffer) is not UseOnce)
    held = np.arange(12).reshape(4, 3)
    sent = held % 2 == 0
    assert np.array_equal(arrivals(held, sent, stored), arrivals(held, sent, buffer))  # type: ignore[arg-type]


def test_plugins_of_many_kinds_are_read_and_verified_without_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate_in(tmp_path / "run", small(*odd.ODD, "system.rounds=20"), 3)
    monkeypatch.setattr("feelstream.plugins.import_object", lambda reference: pytest.fail(f"{reference} is imported"))
    scenario = fs.read(tmp_path / "run").scenario
    assert isinstance(scenario.world.mobility, Inert)
    assert scenario.world.harvest.battery_j == 2.0
    report = fs.verify(tmp_path / "run")
    assert report.ok, str(report)


def test_measures_understand_a_subclass_and_a_stored_one(tmp_path: Path) -> None:
    """The same runs with use_once and with a class derived from it: the same share of the data was used."""
    kinds = {"ours": "use_once", "theirs": f"{odd.FILE}:Once", "few": f"{odd.FILE}:OnceOfFew"}
    arms = tuple(Arm(label, small(f"data.buffer.kind={kind}", "system.rounds=20")) for label, kind in kinds.items())
    in_process(Plan("three", arms, (0,)), tmp_path)
    results = load_results(tmp_path)
    used: dict[str, Any] = {
        arm.label: participation(results.devices(arm.label, 0, COLUMNS), arm.scenario)["data_used"]
        for arm in results.plan.arms
    }
    assert isinstance(results.plan.arm("theirs").scenario.data.buffer, Inert)
    assert used["ours"] == used["theirs"] > 0
    assert used["few"] is None  # what it discards unseen no table tells


class Boast(Fifo):
    """fifo that says it keeps everything."""

    keeps: ClassVar[bool] = True
    capacity: int = 5

    @property
    def most_held(self) -> int | None:
        return None


def test_a_promise_that_is_not_kept_is_found() -> None:
    run = fs.simulate(small("system.rounds=20", "data.arrivals.kind=poisson").with_(buffer=Boast()), 1)
    assert found_in(run).rule.startswith("where nothing is deleted")


def test_a_stored_plugin_without_promises_makes_none(tmp_path: Path) -> None:
    simulate_in(tmp_path, small(*odd.ODD[:-1]), 1)
    about = json.loads((tmp_path / "run.json").read_text())
    del about["promises"]
    (tmp_path / "run.json").write_text(json.dumps(about))
    assert not any(fs.read(seal(tmp_path)).scenario.data.buffer.stated_traits().values())
