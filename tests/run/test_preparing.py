"""Before the first round: what cannot fit is refused at once; a run is made from what run.json says, whatever happens
to the files meanwhile.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import devices_of, small
from recorded import series_of_five
from stopped import stop_in

import feelstream as fs
from feelstream.errors import DataError, ScenarioError
from feelstream.experiment import Arm, Plan, comparison
from feelstream.loop.simulation import Simulation
from feelstream.run import Change, dataset_of, preparing, simulate, simulate_in

LARGE = ("learning.engine=native", "learning.steps=2", "learning.batch=2147483647")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["system.devices=10000000"], r"10,000,000 devices and 8 rounds need about .* GB of memory, and there"),
        (["system.devices=100000", "system.rounds=1000"], r"or set trace\.level to rounds"),
        (LARGE, r"learning\.local\.batch: 2 steps of 2,147,483,647 samples need about 51\.5 GB"),
        ([LARGE[-1]], None),  # without learning nothing is drawn
    ],
)
def test_what_cannot_fit_gets_a_sentence(
    overrides: list[str], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "memory_bytes", lambda: 8 * 10**9)
    with pytest.raises(ScenarioError, match=told) if told else nullcontext():
        fs.simulate(small(*overrides))


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(preparing, "CGROUPS", (str(limit),))
    for text, known in (("1000000", True), ("max", False)):
        limit.write_text(text)
        assert (preparing.memory_bytes() == 1000000) == known


def test_plans_of_absurd_size_get_a_sentence() -> None:
    with pytest.raises(ScenarioError, match="10,000,000 runs; at most 1,000,000"):
        Plan("much", (Arm("a", small()),), range(10**7))  # type: ignore[arg-type]
    values = ",".join(str(1 + n) for n in range(700))
    with pytest.raises(ScenarioError, match="490,000 configurations were asked for, and at most 10,000"):
        comparison.arms("tiny", (), (), [f"policy.V={values}", f"system.round_s={values}"])


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _edit_in_round(round: int, path: Path, text: str) -> Any:
    def edit(record: Any) -> None:
        if record.observation.round == round:
            path.write_text(text)

    return edit


TRACES = {
    "world.availability": ("round,device,available\n1,0,0\n", "round,device,available\n1,0,0\n3,1,0\n4,2,0\n"),
    "world.frequency": ("round,device,f_hz\n1,0,2e7\n", "round,device,f_hz\n1,0,2e7\n3,1,1.5e9\n4,2,1.5e9\n"),
}


@pytest.mark.parametrize("field", TRACES)
def test_a_trace_that_is_edited_during_a_run_does_not_act_on_it(field: str, tmp_path: Path) -> None:
    before, after = TRACES[field]
    path = tmp_path / "trace.csv"
    path.write_text(before)
    scenario = small(f"{field}.kind=trace", f"{field}.path={path}")
    whole = simulate(scenario, 1)
    edited = simulate(scenario, 1, progress=_edit_in_round(2, path, after))
    assert edited.rounds.equals(whole.rounds)
    assert edited.manifest.files[str(path)] == sha256(before.encode()).hexdigest()
    assert not devices_of(simulate(scenario, 1)).equals(devices_of(whole))


def test_a_table_of_devices_is_read_when_the_run_is_made_and_not_again(tmp_path: Path) -> None:
    path = tmp_path / "devices.csv"

    def text(budget: float) -> str:
        return "device,cycles\n" + "".join(f"{k},{budget}\n" for k in range(6))

    path.write_text(text(1e8))
    scenario = small(f"devices.table={path}")
    changes = [Change(4, "policy.V", "0.4")]
    whole = simulate(scenario, 1, changes=changes)
    edited = simulate(scenario, 1, changes=changes, progress=_edit_in_round(2, path, text(2e8)))
    assert edited.rounds.equals(whole.rounds)
    later = simulate(scenario, 1, changes=changes)  # the scenario is older than the table
    assert later.scenario.population.cycles.tolist() == [2e8] * 6
    assert later.manifest.files[str(path)] == _digest(path)
    assert not later.rounds.equals(whole.rounds)


def test_a_profile_is_read_when_the_run_is_made(tmp_path: Path) -> None:
    """Also one whose file has the same times and the same size as before."""
    path = tmp_path / "core.toml"

    def write(top_hz: str) -> None:
        path.write_text(f"dynamic_power_coefficient = 400.0\nfrequency_hz = [4e8, {top_hz}]\nvoltage_v = [0.8, 1.1]\n")
        os.utime(path, ns=(10**18, 10**18))

    write("1.6e9")
    scenario = small("cpu.energy.kind=voltage", f"cpu.profile={path}", "cpu.frequency_hz=profile")
    assert scenario.population.frequency_high_hz[0] == 1.6e9
    write("1.2e9")
    later = simulate(scenario, 1)
    assert later.manifest.resolved.alike["frequency_high_hz"] == 1.2e9
    assert later.manifest.resolved.law.cores[0].frequency_hz == (4e8, 1.2e9)
    assert later.manifest.files == {str(path): _digest(path)}


def test_an_npz_that_is_replaced_with_the_same_times_is_another_data_set(tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    scenario = small(f"data.dataset={series_of_five(path)}")
    first, before = dataset_of(scenario).digest, path.stat()
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "other.npz", **{**arrays, "y_train": arrays["y_train"][::-1]})
    os.utime(tmp_path / "other.npz", ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(tmp_path / "other.npz", path)
    assert path.stat().st_size == before.st_size
    assert dataset_of(scenario).digest != first


def test_an_npz_that_changes_while_a_run_is_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "series.npz"
    scenario = small(f"data.dataset={series_of_five(path)}")

    def touched(*given: Any) -> Simulation:
        while path.stat().st_mtime_ns == before:
            path.touch()
        return Simulation(*given)

    before = path.stat().st_mtime_ns
    monkeypatch.setattr("feelstream.run.preparing.Simulation", touched)
    with pytest.raises(DataError, match=r"series\.npz changed while it was read"):
        simulate(scenario, 0)


@pytest.mark.parametrize("name", ["trace.csv", "part:1.csv"])
def test_a_run_that_is_taken_up_again_with_another_table_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(TRACES["world.availability"][0])
    scenario = small("world.availability.kind=trace", f"world.availability.path={path}")

    stop_in(tmp_path / "run", scenario, at=3)
    path.write_text(TRACES["world.availability"][1])
    with pytest.raises(fs.FeelstreamError, match="holds a run with other files"):
        simulate_in(tmp_path / "run", scenario, 0)
