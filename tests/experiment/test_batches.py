"""Short runs go to a worker together; what they leave is the same, to the byte."""

from __future__ import annotations

import errno
import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
from small_plans import arm, in_process, tables

from feelstream.experiment import Plan, execute, worker
from feelstream.experiment.batches import AT_MOST, batches, is_short
from feelstream.experiment.pool import Job
from feelstream.run import simulate
from feelstream.run.files import appear_whole
from feelstream.scenario.files import from_dict

SHORT = ("trace.level=rounds",)


def many(seeds: int = 6) -> Plan:
    arms = (arm("ours", *SHORT), arm("per round", "data.fresh=per_round", *SHORT), arm("full"))
    return Plan("many", arms, tuple(range(seeds)))


def jobs(plan: Plan) -> list[Job]:
    return [
        Job(each.scenario.as_dict(), seed, Path(f"{each.label}-{seed}")) for each in plan.arms for seed in plan.seeds
    ]


def test_every_run_is_in_one_batch_and_runs_of_one_world_are_neighbours():
    plan = many(40)
    made = batches(jobs(plan), workers=1)
    assert sorted(str(job.directory) for batch in made for job in batch) == sorted(
        str(job.directory) for job in jobs(plan)
    )
    assert max(len(batch) for batch in made) <= AT_MOST
    assert all(is_short(job.scenario) for batch in made if len(batch) > 1 for job in batch)
    seeds = [job.seed for batch in made for job in batch if is_short(job.scenario)]
    assert sum(a != b for a, b in pairwise(seeds)) == 39  # both arms of a seed, then the next


def test_learning_and_device_tables_are_never_batched():
    assert not is_short(arm("full").scenario.as_dict())
    assert not is_short(arm("learns", "learning.engine=auto", *SHORT).scenario.as_dict())
    assert not is_short(arm("long", "system.rounds=100000", *SHORT).scenario.as_dict())


def test_runs_that_learn_go_first_and_the_longest_of_them_before_all():
    learns = ("learning.engine=auto", *SHORT)
    arms = (
        arm("short", *SHORT),
        arm("two", "policy.name=random", "policy.size=2", *learns),
        arm("rarely tested", "policy.name=random", "policy.size=2", "learning.eval_every=4", *learns),
        arm("everyone", "policy.name=select_all", *learns),
        arm("three", "policy.name=random", "policy.size=3", *learns),
    )
    made = batches(jobs(Plan("mixed", arms, (0,))), workers=2)
    order = [str(job.directory).removesuffix("-0") for batch in made for job in batch]
    assert order == ["everyone", "three", "two", "rarely tested", "short"]


@pytest.mark.slow
def test_batches_leave_the_same_bytes_as_single_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    together = execute(many(), tmp_path / "together", workers=1)
    assert together.failures == []
    monkeypatch.setattr("feelstream.experiment.runner.batches", lambda jobs, workers: [(job,) for job in jobs])
    alone = execute(many(), tmp_path / "alone", workers=1)
    assert alone.failures == []
    assert tables(tmp_path / "together") == tables(tmp_path / "alone")
    monkeypatch.undo()
    in_process(many(), tmp_path / "elsewhere")
    assert tables(tmp_path / "elsewhere") == tables(tmp_path / "alone")


def test_a_failure_in_a_batch_is_one_answer(tmp_path: Path):
    good, bad = arm("good", *SHORT).scenario.as_dict(), arm("bad", *SHORT).scenario.as_dict()
    bad["data"]["dataset"] = "none.npz"
    work: list[worker.Work] = [(bad, 0, str(tmp_path / "bad"), {}), (good, 0, str(tmp_path / "good"), {})]
    first, second = worker.play_all(work)
    assert "none.npz" in (first.problem or "")
    assert second == worker.Answer()
    assert json.loads((tmp_path / "good" / "run.json").read_text())["status"] == "complete"
    assert not (tmp_path / "bad").exists()


def test_what_a_short_run_leaves_is_what_save_writes(tmp_path: Path):
    run = simulate(arm("one", *SHORT).scenario, 3, threads=1)
    saved = run.save(tmp_path / "run")
    assert {file.name: file.read_bytes() for file in saved.glob("[!.]*")} == run.files()


@pytest.mark.parametrize("seconds", [0.0, 0.02, 1e9])
def test_a_batch_answers_in_its_order_however_many_are_stored_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
):
    monkeypatch.setattr(worker, "STORE_SECONDS", seconds)
    table, count = arm("one", *SHORT).scenario.as_dict(), worker.STORING + 3
    work: list[worker.Work] = [(table, seed, str(tmp_path / str(seed)), {"files": {}}) for seed in range(count)]
    work[1] = ({**table, "data": {**table["data"], "dataset": "none.npz"}}, 1, str(tmp_path / "1"), {})
    answers = worker.play_all(work)
    assert [seed for seed, answer in enumerate(answers) if answer.problem] == [1]
    stored = {path.name: json.loads((path / "run.json").read_text())["seed"] for path in tmp_path.iterdir()}
    assert stored == {str(seed): seed for seed in range(count) if seed != 1}


@pytest.mark.parametrize(("named", "made"), [({}, 1), ({"mine.py:Policy": "0" * 64}, 3)])
def test_a_scenario_is_made_once_for_a_batch_unless_it_names_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, str], made: int
):
    """An object of the user's own may remember what it did in the run before."""
    tables: list[object] = []
    monkeypatch.setattr(worker, "from_dict", lambda table: [tables.append(table), from_dict(table)][1])
    monkeypatch.setattr("feelstream.run.preparing._check_promised", lambda *_: None)
    table = arm("one", *SHORT).scenario.as_dict()
    worker.play_all([(table, seed, str(tmp_path / str(seed)), {"files": named}) for seed in range(3)])
    assert len(tables) == made


def test_a_short_run_has_its_name_only_once_its_files_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A power cut may come at any call that forces something to disk: stop at each of them and look."""
    files, left = simulate(arm("one", *SHORT).scenario, 0, threads=1).files(), [0]

    def stop(_: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    for stopped_at in range(1, len(files) + 2):  # each file, then the names in the directory
        left[0] = stopped_at
        with pytest.raises(KeyboardInterrupt):
            appear_whole(tmp_path / "run", files)
        assert [path.name for path in tmp_path.iterdir()] == [".run.tmp"]
    left[0] = 0
    appear_whole(tmp_path / "run", files)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == files


def test_no_run_of_a_batch_is_said_to_be_stored_before_its_name_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A power cut takes names back that were not forced to disk, so no answer may come before they were."""
    forced, real = list[str](), os.fsync

    def noted(handle: int) -> None:
        forced.append(os.readlink(f"/proc/self/fd/{handle}") if os.path.isdir("/proc/self/fd") else "")
        real(handle)

    monkeypatch.setattr(os, "fsync", noted)
    table = arm("one", *SHORT).scenario.as_dict()
    answers = worker.play_all([(table, seed, str(tmp_path / str(seed)), {}) for seed in range(3)])
    assert answers == [worker.Answer()] * 3
    assert len(forced) >= 3 * 3 + 1  # two files and their names for each, and the names of all
    if forced[-1]:
        assert forced[-1] == str(tmp_path)
        assert str(tmp_path) not in forced[:-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]

    def fails(directory: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(worker, "force_names", fails)
    answers = worker.play_all([(table, seed, str(tmp_path / str(seed)), {}) for seed in (3, 4)])
    assert all(answer.problem for answer in answers)
