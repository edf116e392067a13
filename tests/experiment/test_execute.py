"""Plans are played completely, once, and whatever goes wrong with one run stays with that run."""

from __future__ import annotations

import errno
import json
import os
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from patience import PATIENCE_S
from sealing import seal
from small_plans import arm, in_process, tables, two_arms

import feelstream as fs
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment import Failure, Plan, Progress, execute, identity, load, store, worker
from feelstream.experiment.identity import Identity
from feelstream.run.files import write_sealed
from feelstream.run.trace import ROUNDS


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of the runs that are really played."""
    seeds: list[int] = []
    play = worker.play

    def counted(scenario: dict[str, Any], seed: int, *more: Any) -> worker.Answer:
        seeds.append(seed)
        return play(scenario, seed, *more)

    monkeypatch.setattr(worker, "play", counted)
    return seeds


def test_results_are_the_runs_of_simulate(tmp_path: Path) -> None:
    plan = two_arms((4, 2))
    plan = replace(plan, arms=(*plan.arms, arm("no energy", "policy.V=inf")))  # which JSON has no number for
    results = in_process(plan, tmp_path)
    rounds = results.rounds()
    assert results.failures == []
    assert rounds.columns == ["arm", "seed", *ROUNDS]
    keys = [(label, seed) for label in ("ours", "random", "no energy") for seed in (2, 4)]
    assert results.finished == keys
    assert rounds.select("arm", "seed", "round").rows() == [(*key, t) for key in keys for t in range(1, 11)]
    for label, seed in keys:
        alone = fs.simulate(plan.arm(label).scenario, seed)
        assert rounds.filter(arm=label, seed=seed).drop("arm", "seed").equals(alone.rounds)
        devices = results.run(label, seed).devices
        assert devices is not None
        assert alone.devices is not None
        assert devices.equals(alone.devices)
    assert load(tmp_path).rounds().equals(rounds)
    assert load(tmp_path).plan == plan


def test_only_what_is_missing_is_played(tmp_path: Path, played: list[int]) -> None:
    in_process(two_arms((0, 1)), tmp_path)
    assert sorted(played) == [0, 0, 1, 1]
    played.clear()
    in_process(two_arms((0, 1)), tmp_path)
    assert played == []
    results = in_process(two_arms((1, 2)), tmp_path)
    assert played == [2, 2]
    assert results.rounds()["seed"].unique().to_list() == [1, 2]


def test_an_arm_may_have_fewer_seeds(tmp_path: Path, played: list[int]) -> None:
    many, few = two_arms((3, 4, 5)).arms
    plan = Plan("fewer", (many, replace(few, most_seeds=1)), (3, 4, 5))
    results = in_process(plan, tmp_path)
    assert sorted(played) == [3, 3, 4, 5]
    assert results.finished == load(tmp_path).finished == [("ours", 3), ("ours", 4), ("ours", 5), ("random", 3)]
    assert not load(tmp_path).failures
    with pytest.raises(RunError, match="has no seed 4 of random"):
        results.run("random", 4)
    with pytest.raises(ScenarioError, match="'random' needs at least one seed, not 0"):
        Plan("none", (replace(few, most_seeds=0),), (3,))


def test_runs_in_common_are_played_once(tmp_path: Path, played: list[int]) -> None:
    twins = Plan("twins", (arm("one"), arm("other")), (0,))
    results = in_process(twins, tmp_path / "a")
    assert played == [0]
    assert results.rounds().filter(arm="one").drop("arm").equals(results.rounds().filter(arm="other").drop("arm"))
    assert in_process(Plan("more", (arm("third"), *two_arms().arms), (0,)), tmp_path / "a").failures == []
    assert played == [0, 0]  # random only


def test_an_unfinished_plan_can_be_read_and_finished(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop_after_two(state: Progress) -> None:
        if state.runs_done == 2:
            raise StopError

    with ThreadPoolExecutor(1) as executor, pytest.raises(StopError):
        execute(two_arms(), tmp_path, executor=executor, progress=stop_after_two)
    part = load(tmp_path)
    assert len(part.finished) == 2
    assert [failure.reason for failure in part.failures] == [store.NOT_YET] * 2
    missing = part.failures[0]
    with pytest.raises(RunError, match="not finished yet"):
        part.run(missing.arm, missing.seed)
    in_process(two_arms(), tmp_path)
    in_process(two_arms(), tmp_path.with_name("whole"))
    assert tables(tmp_path) == tables(tmp_path.with_name("whole"))


def test_progress_counts_runs_and_rounds(tmp_path: Path) -> None:
    in_process(two_arms((0,)), tmp_path)
    states: list[Progress] = []
    with ThreadPoolExecutor(1) as executor:
        execute(two_arms((0, 1)), tmp_path, executor=executor, progress=states.append)
    assert states == [Progress(4, 2 + n, 0, 20, 10 * n) for n in range(3)]


FAULTY = """
from feelstream.policies.random import Random
class Faulty(Random):
    def select(self, state, observation, rng):
        if observation.round == 3:
            raise ArithmeticError("no luck")
        return super().select(state, observation, rng)
"""


def test_a_failure_stays_with_its_run(tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    faulty = arm("faulty", f"policy.name={tmp_path / 'faulty.py'}:Faulty")
    broken = arm("no such model", "learning.engine=torch", "learning.model=nowhere:Model")
    results = in_process(Plan("x", (faulty, broken, arm("fine")), (0, 1)), tmp_path / "out")
    assert results.finished == [("fine", 0), ("fine", 1)]
    file = tmp_path / "faulty.py"
    reason = f"policy: '{file}:Faulty' failed in round 3: ArithmeticError: no luck (faulty.py, line 6)"
    assert results.failures[:2] == [Failure("faulty", seed, reason) for seed in (0, 1)]
    assert [(failure.arm, failure.seed) for failure in results.failures[2:]] == [
        ("no such model", 0),
        ("no such model", 1),
    ]
    assert "nowhere" in results.failures[2].reason
    with pytest.raises(RunError, match=r"there is no result of faulty, seed 0: .* ArithmeticError"):
        results.run("faulty", 0)
    assert load(tmp_path / "out").finished == results.finished


@pytest.mark.slow
@pytest.mark.usefixtures("worker_processes")
def test_workers_write_the_same_bytes(tmp_path: Path) -> None:
    """One process, two processes, an executor of the user's: identical files."""
    plan = two_arms((0, 1))
    assert execute(plan, tmp_path / "1", workers=1).failures == []
    assert execute(plan, tmp_path / "2", workers=2).failures == []
    in_process(plan, tmp_path / "thread")
    assert tables(tmp_path / "1") == tables(tmp_path / "2") == tables(tmp_path / "thread")
    assert len(tables(tmp_path / "1")) == 8
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.slow
@pytest.mark.usefixtures("worker_processes")
def test_workers_learn_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    plan = Plan("x", (arm("learning", "learning.engine=torch", "learning.steps=2", "system.rounds=2"),), (0,))
    assert execute(plan, tmp_path / "1").failures == []
    in_process(plan, tmp_path / "thread")
    assert tables(tmp_path / "1") == tables(tmp_path / "thread")
    assert load(tmp_path / "1").rounds()["accuracy"].null_count() == 0


KILLER = """
import os, signal
from feelstream.policies.random import Random
class Killer(Random):
    def select(self, state, observation, rng):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_run_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    """As the kernel does to a process that takes too much memory."""
    (tmp_path / "killer.py").write_text(KILLER)
    killer = arm("killer", f"policy.name={tmp_path / 'killer.py'}:Killer")
    plan = Plan("x", (killer, arm("fine")), (0,))
    results = execute(plan, tmp_path / "out", workers=2)
    assert results.finished == [("fine", 0)]
    assert [failure.arm for failure in results.failures] == ["killer"]
    assert "killed again and again" in results.failures[0].reason


def test_an_executor_that_breaks_is_reported(tmp_path: Path) -> None:
    class Broken(Executor):
        def submit(self, fn: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
            future: Future[Any] = Future()
            if fn is identity.identify:
                future.set_result(fn(*arguments))
            else:
                future.set_exception(ConnectionError("the network is gone"))
            return future

    results = execute(two_arms((0,)), tmp_path, executor=Broken())
    assert [failure.reason for failure in results.failures] == [
        "the executor could not run it: ConnectionError: the network is gone"
    ] * 2


def test_workers_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identify = identity.identify

    def older(scenario: dict[str, Any]) -> Identity:
        return Identity(known=(identify(scenario).known or {}) | {"feelstream": "0.0.1"})

    monkeypatch.setattr(identity, "identify", older)
    with pytest.raises(RunError, match=r"the workers have feelstream 0\.0\.1 and this is"):
        in_process(two_arms(), tmp_path)


def test_a_worker_with_another_engine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identify = identity.identify

    def first(scenario: dict[str, Any]) -> Identity:
        return Identity(known=(identify(scenario).known or {}) | {"engine": {"name": "native", "isa": "other"}})

    monkeypatch.setattr(identity, "identify", first)
    results = in_process(two_arms((0,)), tmp_path)
    assert "ran it with other engine" in results.failures[0].reason
    assert tables(tmp_path) == {}


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["run.run.write_atomically", "experiment.store.appear_whole"])
def test_a_full_disk_stops_with_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """In the worker and where the files are received."""
    from feelstream.run import files

    write, appear = files.write_atomically, files.appear_whole

    def one_file(path: Path, writer: Any) -> None:
        write(path, full if path.suffix == ".parquet" else writer)

    def all_files(directory: Path, contents: dict[str, bytes]) -> None:
        with monkeypatch.context() as disk:
            disk.setattr("os.fsync", full)
            appear(directory, contents)

    monkeypatch.setattr(f"feelstream.{where}", one_file if where.startswith("run.") else all_files)
    with pytest.raises(RunError, match="is full; make room and give the same command again"):
        in_process(two_arms(), tmp_path)
    monkeypatch.undo()
    assert in_process(two_arms(), tmp_path).failures == []


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot use the directory .*file: "):
        in_process(two_arms(), tmp_path / "file")
    with pytest.raises(RunError, match=r"holds no results: it has no plan\.json"):
        load(tmp_path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_directory(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with pytest.raises(RunError, match=r"cannot use the directory .*: Permission denied"):
        in_process(two_arms(), closed)


def test_results_of_another_format(tmp_path: Path) -> None:
    in_process(two_arms((0,)), tmp_path)
    run_file = next(tmp_path.rglob("run.json"))
    seal(run_file.parent, format=0)
    assert "was written in format 0 and this version reads format" in load(tmp_path).failures[0].reason
    plan_file = tmp_path / "plan.json"
    write_sealed(plan_file, json.loads(plan_file.read_text()) | {"format": 0})
    for use in (load, lambda out: in_process(two_arms(), out)):
        with pytest.raises(RunError, match="was written in format 0 and this version has format 1"):
            use(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"), [("{", "is not a JSON file"), ('{"format": 1}', "does not describe a plan")]
)
def test_a_damaged_plan_file(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "plan.json").write_text(content)
    for use in (load, lambda out: in_process(two_arms(), out)):
        with pytest.raises(RunError, match=message):
            use(tmp_path)


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    results = in_process(two_arms((0,)), tmp_path)
    file = results.directories["ours", 0] / "rounds.parquet"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RunError, match=r"rounds\.parquet is damaged"):
        results.rounds()
    again = in_process(two_arms((0,)), tmp_path)
    assert [(failure.arm, "rounds.parquet is damaged" in failure.reason) for failure in again.failures] == [
        ("ours", True)
    ]
    assert set(again.rounds()["arm"]) == {"random"}  # one damaged file does not end the others


def test_nothing_finished_gives_an_empty_table_of_the_right_form(tmp_path: Path) -> None:
    results = in_process(Plan("x", (arm("a", "learning.engine=torch", "learning.model=nowhere:M"),), (0,)), tmp_path)
    assert results.rounds().schema == pl.Schema({"arm": pl.String, "seed": pl.Int64, **ROUNDS})
    assert results.rounds().is_empty()


def test_two_callers_at_once_are_told(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold(_: Progress) -> None:
        inside.set()
        leave.wait(PATIENCE_S)

    with ThreadPoolExecutor(2) as executor:
        first = executor.submit(execute, two_arms((0,)), tmp_path, executor=executor, progress=hold)
        try:
            assert inside.wait(PATIENCE_S)
            with pytest.raises(RunError, match="another process is writing to"):
                in_process(two_arms((0,)), tmp_path)
        finally:
            leave.set()
        assert first.result().failures == []
