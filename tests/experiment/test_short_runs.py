"""Short runs are played last and stored whole; what they leave is the same as of any other, to the byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from small_plans import arm, in_process, tables

from feelstream.experiment import Plan, execute
from feelstream.experiment.plan import Job, in_order, is_short
from feelstream.run import simulate
from feelstream.run.files import appear_whole

SHORT = ("trace.level=rounds",)


def jobs(plan: Plan) -> list[Job]:
    return [
        Job(each.scenario, each.scenario.as_dict(), seed, Path(f"{each.label}-{seed}"))
        for each in plan.arms
        for seed in plan.seeds
    ]


def test_learning_and_device_tables_are_not_short() -> None:
    assert is_short(arm("short", *SHORT).scenario)
    assert not is_short(arm("full").scenario)
    assert not is_short(arm("learns", "learning.engine=auto", *SHORT).scenario)
    assert not is_short(arm("long", "system.rounds=100000", *SHORT).scenario)


def test_the_longest_run_goes_first_and_short_runs_go_by_seed() -> None:
    learns = ("learning.engine=auto", *SHORT)
    arms = (
        arm("short", *SHORT),
        arm("two", "policy.name=random", "policy.size=2", *learns),
        arm("rarely tested", "policy.name=random", "policy.size=2", "learning.eval_every=4", *learns),
        arm("everyone", "policy.name=select_all", *learns),
        arm("three", "policy.name=random", "policy.size=3", *learns),
        arm("also short", "policy.size=3", *SHORT),
    )
    made = [str(job.directory) for job in in_order(jobs(Plan("mixed", arms, tuple(range(4)))))]
    long = ["everyone", "three", "two", "rarely tested"]
    assert made[:16] == [f"{label}-{seed}" for label in long for seed in range(4)]
    assert made[16:] == [f"{label}-{seed}" for seed in range(4) for label in ("short", "also short")]


@pytest.mark.slow
def test_short_runs_leave_the_same_bytes_wherever_they_are_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan = Plan("many", (arm("ours", *SHORT), arm("per round", "data.fresh=per_round", *SHORT), arm("full")), (0, 1, 2))
    assert execute(plan, tmp_path / "short", workers=1).failures == []
    in_process(plan, tmp_path / "elsewhere")
    monkeypatch.setattr("feelstream.experiment.plan.SHORT", 0)
    assert execute(plan, tmp_path / "long", workers=1).failures == []
    assert tables(tmp_path / "short") == tables(tmp_path / "elsewhere") == tables(tmp_path / "long")


def test_what_a_short_run_leaves_is_what_save_writes(tmp_path: Path) -> None:
    run = simulate(arm("one", *SHORT).scenario, 3, threads=1)
    saved = run.save(tmp_path / "run")
    assert {file.name: file.read_bytes() for file in saved.glob("[!.]*")} == run.files()


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
    left[0] = 1 + len(files) + 1  # the name of the run itself: it is forced to disk before anybody hears of the run
    with pytest.raises(KeyboardInterrupt):
        appear_whole(tmp_path / "run", files)
    left[0] = 0
    appear_whole(tmp_path / "run", files)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == files
