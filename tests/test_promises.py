"""What plug-ins promise is known wherever it is needed: to verify, to measures, to a stored run without their code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import odd_plugins as odd
import polars as pl
import pytest
from builders import small
from sealing import seal
from small_plans import in_process

import feelstream as fs
from feelstream.data.streaming.buffers import BUFFERS, Buffer, Fifo, UseOnce
from feelstream.environment.availability import AVAILABILITIES, FAULTS
from feelstream.environment.harvest import HARVESTS
from feelstream.environment.mobility import MOBILITIES
from feelstream.errors import RunError
from feelstream.experiment import Arm, Plan
from feelstream.experiment import load as load_results
from feelstream.experiment.comparison import COLUMNS, participation
from feelstream.learning.local import LOCAL_TRAININGS
from feelstream.learning.server import SERVER_UPDATES
from feelstream.model.importance import METRICS
from feelstream.model.transmission import Transmission
from feelstream.plugins import Inert, Kind
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation
from feelstream.policies.random import Random
from feelstream.run import simulate_in
from feelstream.verification.ours import (
    CONTROLLED_OCEAN,
    KNOWS_PROBABILITY,
    OUR_LOCAL_TRAININGS,
    OUR_METRICS,
    OUR_POLICIES,
    OUR_SERVER_UPDATES,
)
from feelstream.verification.promises import OURS, Promises

HERE = Path(__file__).resolve()


def test_verification_knows_exactly_our_policies_metrics_and_local_training() -> None:
    assert set(OUR_POLICIES) - {CONTROLLED_OCEAN} == set(POLICIES.ours), "OUR_POLICIES in verification/ours.py"
    assert set(OUR_METRICS) == set(METRICS.ours), "OUR_METRICS in verification/ours.py"
    assert set(OUR_SERVER_UPDATES) == set(SERVER_UPDATES.ours), "OUR_SERVER_UPDATES in verification/ours.py"
    knowing = {name for name, policy in POLICIES.ours.items() if policy().knows_probability}  # type: ignore[attr-defined]
    assert set(KNOWS_PROBABILITY) == knowing, "KNOWS_PROBABILITY in verification/ours.py"
    assert set(OUR_LOCAL_TRAININGS) == set(LOCAL_TRAININGS.ours), "OUR_LOCAL_TRAININGS in verification/ours.py"


@pytest.mark.parametrize("kind", [BUFFERS, MOBILITIES, AVAILABILITIES, HARVESTS, FAULTS], ids=lambda each: each.group)
def test_verification_knows_what_our_plugins_promise(kind: Kind[Any]) -> None:
    """Its own table, which shares no code with the classes, says of each of ours what the class says."""
    known = OURS[kind.group]
    assert list(known) == list(kind.ours), "OURS in verification/promises.py"
    for name, cls in kind.ours.items():
        plugin = cls(**({"path": "file.csv"} if "path" in cls.model_fields else {}))  # type: ignore[arg-type]
        said = known[name](plugin.model_dump())
        flags = {flag for each in known.values() for flag in each(_any_fields())}  # those that a re-check goes by
        promised = {flag: value for flag, value in plugin.plugin_promises().items() if flag in flags and value}
        assert said == promised, name


def _any_fields() -> dict[str, Any]:
    return {"capacity": 1, "capacity_j": 1.0, "start": 1.0}


@pytest.mark.parametrize("buffer", [*odd.BUFFERS, UseOnce()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("fresh", ["since_use", "per_round"])
def test_a_run_with_an_odd_buffer_verifies_and_is_read_without_its_code(
    buffer: Buffer, fresh: str, tmp_path: Path
) -> None:
    scenario = small("system.rounds=20", f"data.fresh={fresh}", "data.arrivals.kind=poisson", "policy.V=inf")
    scenario = scenario.with_(buffer=buffer)
    run = simulate_in(tmp_path / "run", scenario, 1)
    assert run.rounds["transmitted"].sum() > 5
    report = fs.verify(tmp_path / "run")
    assert report.ok, str(report)
    stored = fs.read(tmp_path / "run").scenario.data.buffer
    assert stored.plugin_promises() == buffer.plugin_promises()
    assert isinstance(stored, Inert) == (type(buffer) is not UseOnce)
    held = np.arange(12).reshape(4, 3)
    sent = held % 2 == 0
    assert np.array_equal(stored.arrivals(held, sent), buffer.arrivals(held, sent))  # type: ignore[arg-type]


def test_every_kind_of_plugin_is_read_and_verified_without_its_code(
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
    used = {row["arm"]: row["data_used"] for row in _resources(results).to_dicts()}
    assert isinstance(results.plan.arm("theirs").scenario.data.buffer, Inert)
    assert used["ours"] == used["theirs"] > 0
    assert used["few"] is None  # what it discards unseen no table tells


def _resources(results: Any) -> pl.DataFrame:
    rows = [
        {"arm": arm.label} | participation(results.devices(arm.label, 0, COLUMNS), arm.scenario)
        for arm in results.plan.arms
    ]
    return pl.DataFrame(rows)


class Boast(Fifo):
    """fifo that says it keeps everything."""

    keeps: ClassVar[bool] = True
    capacity: int = 5

    @property
    def most_held(self) -> int | None:
        return None


def test_a_promise_that_is_not_kept_is_found(tmp_path: Path) -> None:
    run = fs.simulate(small("system.rounds=20", "data.arrivals.kind=poisson").with_(buffer=Boast()), 1)
    found = fs.verify(run.save(tmp_path / "run")).disagreement
    assert found is not None
    assert found.rule.startswith("where nothing is deleted")


def test_runs_from_before_promises_were_stored_are_read_and_verified(tmp_path: Path) -> None:
    settings = ["data.buffer.kind=fifo", "world.harvest.kind=packets", "world.mobility.kind=random_direction"]
    simulate_in(tmp_path, small(*settings), 1)
    _without_promises(tmp_path)
    assert fs.read(tmp_path).scenario.world.harvest.battery_j == 20.0
    report = fs.verify(tmp_path)
    assert report.ok, str(report)


def test_an_odd_run_from_before_promises_nothing(tmp_path: Path) -> None:
    simulate_in(tmp_path, small(*odd.ODD[:-1]), 1)
    _without_promises(tmp_path)
    assert not any(fs.read(tmp_path).scenario.data.buffer.plugin_promises().values())
    assert fs.verify(tmp_path).ok


def _without_promises(directory: Path) -> None:
    about = json.loads((directory / "run.json").read_text())
    del about["promises"]
    (directory / "run.json").write_text(json.dumps(about))
    seal(directory)


class HalfBand(Random):
    """Whoever is scheduled sends with half of what its share of the band would be; the rest of the band lies idle."""

    tag: ClassVar[str] = f"{HERE}:HalfBand"

    def transmit(self, observation: Observation, decision: Decision, gain: np.ndarray) -> Transmission:
        spent = super().transmit(observation, decision, gain)
        half = spent.bandwidth_share / 2  # half the band carries more than half as much per second
        return replace(spent, bandwidth_share=half, t_tr_s=spent.t_tr_s * 2, e_tr_j=spent.e_tr_j * 2)


def test_a_policy_with_its_own_transmit_verifies(tmp_path: Path) -> None:
    run = fs.simulate(small("system.rounds=12").with_(policy=HalfBand(size=2)), 1)
    path = run.save(tmp_path / "run")
    report = fs.verify(path)
    assert report.ok, str(report)
    assert "the user's own transmit" in str(report)
    for column, factor, rule in (
        ("bandwidth_share", 5.0, "no more than the whole band"),
        ("e_tr_j", -1.0, "e_tr_j is not negative"),
    ):
        assert run.devices is not None
        run.devices.with_columns(pl.col(column) * factor).write_parquet(path / "devices.parquet")
        found = fs.verify(seal(path)).disagreement
        assert found is not None
        assert found.rule.startswith(rule)


def test_a_metric_known_by_an_entry_point_is_the_users_own(tmp_path: Path) -> None:
    """Its name has no colon; that it is not ours says enough."""
    simulate_in(tmp_path, small())
    about = json.loads((tmp_path / "run.json").read_text())
    about["scenario"]["policy"]["metric"] = "theirs"
    (tmp_path / "run.json").write_text(json.dumps(about))
    report = fs.verify(seal(tmp_path))
    assert report.ok, str(report)
    assert "the importance by a user's own metric" in str(report)


@pytest.mark.parametrize("value", ["many", True, -1, [2]])
def test_nonsense_in_place_of_a_promise_gets_a_sentence(value: Any, tmp_path: Path) -> None:
    simulate_in(tmp_path, small(*odd.ODD[:2]), 1)
    about = json.loads((tmp_path / "run.json").read_text())
    about["promises"]["buffers"]["most_held"] = value
    (tmp_path / "run.json").write_text(json.dumps(about))
    with pytest.raises(RunError, match=r"run.json: promises\.buffers\.most_held must be a number of at least 0"):
        fs.verify(seal(tmp_path))


def test_flags_are_true_only_if_they_say_true() -> None:
    flags = Promises.of("buffers", {"kind": "mine.py:Mine"}, {"buffers": {"keeps": 1, "empties_on_use": True}})
    assert "keeps" not in flags
    assert "empties_on_use" in flags
