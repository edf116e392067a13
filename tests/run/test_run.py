"""Runs in memory and in directories: kills, restarts, misuse, and a disk that fails at any write."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import odd_plugins as odd
import polars as pl
import pytest
from builders import small
from small_plans import in_process
from stopped import goes_on_bit_for_bit, stop_in

import feelstream as fs
from feelstream.columns import FORMAT
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment import Arm, Plan
from feelstream.experiment.replaying import replay
from feelstream.run import files as run_files
from feelstream.run import simulate_in, trace
from feelstream.run.files import sole_writer, write_atomically
from feelstream.run.manifest import Manifest
from soak.attack import Attack
from soak.damage import Damage
from soak.io import Io
from soak.processes import Kills

SUPPORT = Path(__file__).parents[1] / "support"


def files(directory: Path) -> dict[str, bytes]:
    """The tables and, where something was learned, the model."""
    kept = sorted([*directory.glob("*.parquet"), *directory.glob("*.npz")])
    return {path.name: path.read_bytes() for path in kept}


def played(attack: Attack, trials: int) -> None:
    """An attack of the soak in short: `make soak` goes on for as long as one likes."""
    for _ in range(trials):
        attack.try_once()
    attack.close()
    assert attack.lost == []


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_commands_that_are_killed_go_on_to_the_same_bytes(tmp_path: Path) -> None:
    played(Kills(tmp_path / "kills", random.Random(2)), 4)


@pytest.mark.slow
def test_damaged_files_are_told_or_read_as_they_were(tmp_path: Path) -> None:
    attack = Damage(tmp_path / "damage", random.Random(0))
    played(attack, 80)
    assert attack.refused > 40


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
def test_a_call_that_fails_loses_nothing(tmp_path: Path) -> None:
    """A preloaded library fails calls by which a run, a plan and a report change files."""
    attack = Io(tmp_path / "io", random.Random(0))
    played(attack, 40)
    assert attack.refused > 20  # the errors did happen, and each was one sentence
    assert min(attack.calls.values()) > 20  # and they were counted in every kind of work


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("state-000003.npz", "is damaged"),
        ("rounds-000001.parquet", "is missing"),
        ("checkpoint.json", "is the checkpoint of another run"),
    ],
)
def test_damaged_progress_says_what_to_remove(name: str, told: str, tmp_path: Path) -> None:
    for directory, seed in (("run", 0), ("other", 1)):
        stop_in(tmp_path / directory, small(), at=4, seed=seed)
    file = tmp_path / "run" / "progress" / name
    shutil.copy(tmp_path / "other" / "progress" / name, file)
    if told == "is missing":
        file.unlink()
    with pytest.raises(RunError, match=rf"{told}.*; remove .*progress to start the run again"):
        simulate_in(tmp_path / "run", small())
    shutil.rmtree(file.parent)
    assert simulate_in(tmp_path / "run", small()).rounds.equals(fs.simulate(small()).rounds)


def test_rows_without_a_checkpoint_do_not_count(tmp_path: Path) -> None:
    """A kill between the rows and the checkpoint: the rows are there, one part more than the checkpoint knows."""
    scenario = small()
    alone = simulate_in(tmp_path / "alone", scenario)
    stop_in(tmp_path / "run", scenario, at=5)
    progress = tmp_path / "run" / "progress"
    assert (progress / "rounds-000003.parquet").exists()
    for table in ("rounds", "devices"):
        shutil.copy(progress / f"{table}-000000.parquet", progress / f"{table}-000004.parquet")
    played = []
    simulate_in(tmp_path / "run", scenario, progress=played.append)
    assert played[0].observation.round == 5
    assert files(tmp_path / "run") == files(tmp_path / "alone")
    assert alone.rounds["round"].to_list() == list(range(1, 9))


EVALUATORS = str(SUPPORT.parents[1] / "examples" / "my_evaluator.py")
# What there is to keep of a run that learns, beside what `feelstream check` stores and reads of each plug-in.
STOPPED = {
    "torch": ("learning.engine=torch", "learning.lr=0.1"),
    "momentum, optimiser, faults": (
        "learning.engine=native", "learning.local.momentum=0.9", "learning.local.keep=momentum",
        "learning.server.kind=smoothed", "learning.server.inner.kind=fedadam", "world.faults.kind=markov",
    ),
    "own": (
        "learning.engine=native", f"learning.local.kind={odd.FILE}:Sleepy", f"learning.server.kind={odd.FILE}:Duel",
        "learning.eval_every=3", f'learning.evaluators=["test", "classes", "{EVALUATORS}:Records", "{EVALUATORS}:gap"]',
    ),
}  # fmt: skip


@pytest.mark.parametrize("kept", STOPPED)
def test_a_run_that_learns_goes_on_verifies_and_repeats(kept: str, tmp_path: Path) -> None:
    if kept == "torch":
        pytest.importorskip("torch")
    whole = goes_on_bit_for_bit(tmp_path, small(*STOPPED[kept]), at=5)
    report = fs.verify(whole)
    assert report.ok, str(report)
    assert replay(whole).ok
    for which in ("server update", "local training"):
        assert (f"what the user's own {which} does" in report.not_checked) == (kept == "own")


@pytest.mark.parametrize("level", ["full", "rounds"])
def test_in_memory_and_in_a_directory_are_the_same(level: str, tmp_path: Path, monkeypatch) -> None:
    scenario = small(f"trace.level={level}")
    whole = fs.simulate(scenario, 3)
    monkeypatch.setattr(trace, "MANY", 1)  # rows are taken and joined every round
    simulate_in(tmp_path / "run", scenario, 3)
    for name, run in (("whole", whole), ("in parts", fs.simulate(scenario, 3))):
        assert files(run.save(tmp_path / name)) == files(tmp_path / "run")
    assert (tmp_path / "run" / "devices.parquet").exists() == (level == "full") == (whole.devices is not None)


def test_a_complete_run_is_not_played_again(tmp_path: Path) -> None:
    scenario = small()
    simulate_in(tmp_path, scenario)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir() if path.name != ".lock"}
    played = []
    run = simulate_in(tmp_path, scenario, progress=played.append)
    assert played == []
    assert run.rounds.equals(fs.simulate(scenario).rounds)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir() if path.name != ".lock"}


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    ("seed", "overrides", "told"),
    [
        (1, [], r"another seed \(0 there, 1 here\)"),
        (0, ["policy.V=0.2"], r"another scenario \(policy.V 0.05 there, 0.2 here\)"),
        (0, ["policy.name=random"], r"another scenario \(policy.name lyapunov there, random here\)"),
    ],
)
def test_another_run_is_refused_and_left_alone(
    complete: bool, seed: int, overrides: list[str], told: str, tmp_path: Path
) -> None:
    stop_in(tmp_path, small(), at=4)
    if complete:
        simulate_in(tmp_path, small())
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(RunError, match=told):
        simulate_in(tmp_path, small(*overrides), seed)
    assert (tmp_path / "run.json").read_bytes() == before
    assert simulate_in(tmp_path, small()).rounds["round"][-1] == 8


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"numpy": "1.0"}, r"other versions \(numpy 1.0 there, .* here\)"),
        ({"python": "3.2.9"}, r"other versions \(python 3.2 there"),
        ({"polars": "0.1"}, None),  # it stores numbers and computes none
    ],
)
def test_a_run_is_not_continued_under_other_versions(changed: dict[str, str], told: str | None, tmp_path: Path) -> None:
    for at in (4, None):  # one that is finished is read whatever made it
        stop_in(tmp_path, small(), at) if at else simulate_in(tmp_path, small())
        stored = Manifest.read(tmp_path)
        stored.model_copy(update={"versions": stored.versions | changed}).write(tmp_path)
        with pytest.raises(RunError, match=told) if told and at else nullcontext():
            assert simulate_in(tmp_path, small()).rounds["round"][-1] == 8
        stored.write(tmp_path)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with sole_writer(tmp_path), pytest.raises(RunError, match="another process is writing"):
        simulate_in(tmp_path, small())


@pytest.mark.parametrize(("place", "told"), [(".", "is not empty"), ("thesis.tex", "it is a file")])
def test_what_lies_there_is_left_alone(place: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for use in (lambda path: simulate_in(path, small()), fs.simulate(small()).save):
        with pytest.raises(RunError, match=told):
            use(tmp_path / place)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_progress_counts_with_its_run_json_and_until_the_end(tmp_path: Path) -> None:
    stop_in(tmp_path, small(), at=4)
    (tmp_path / "run.json").unlink()
    assert simulate_in(tmp_path, small(), seed=9).rounds.equals(fs.simulate(small(), 9).rounds)
    (tmp_path / "progress").mkdir()
    simulate_in(tmp_path, small(), seed=9)
    assert not (tmp_path / "progress").exists()


def test_a_disk_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", none)
    simulate_in(tmp_path, small())
    assert "cannot be locked here; see to it that no other process writes to it" in caplog.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is damaged: it is not a JSON file"),
        ("[]", "is damaged: it does not describe a run"),
        ("{}", "is damaged: it does not describe a run"),
        (f'{{"format": {FORMAT}}}', "is damaged: it does not describe a run"),
        ('{"format": 99}', f"was written in format 99 and this version reads format {FORMAT}"),
    ],
)
def test_a_damaged_run_json_is_told(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    for use in (fs.read, lambda path: simulate_in(path, small())):
        with pytest.raises(RunError, match=told):
            use(tmp_path)


def test_reading_what_is_no_finished_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"it has no run\.json"):
        fs.read(tmp_path)
    stop_in(tmp_path, small(), at=4)
    with pytest.raises(RunError, match="unfinished run"):
        fs.read(tmp_path)
    simulate_in(tmp_path, small())
    (tmp_path / "rounds.parquet").write_text("not a table")
    with pytest.raises(RunError, match=r"rounds\.parquet is damaged"):
        fs.read(tmp_path)


def test_any_seed_name_and_infinite_setting_survive_the_files(tmp_path: Path) -> None:
    directory, seed = tmp_path / "a[1]*", np.int64(2**40)
    run = simulate_in(directory, small("policy.V=inf"), seed)  # type: ignore[arg-type]
    assert json.loads((directory / "run.json").read_text())["scenario"]["policy"]["V"] == "inf"
    stored = fs.read(directory)
    assert (stored.scenario, stored.seed) == (small("policy.V=inf"), 2**40)
    assert stored.rounds.equals(run.rounds)
    assert fs.verify(directory).ok
    assert simulate_in(directory, small("policy.V=inf"), seed).rounds.equals(run.rounds)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="seed must be 0 or more, not -1"):
        fs.simulate(small(), seed=-1)


def test_a_table_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    def full(path: Path) -> None:
        raise pl.exceptions.ComputeError("No space left on device (os error 28)\nmore")

    with pytest.raises(RunError, match=r"cannot write .*: No space left on device \(os error 28\)$"):
        write_atomically(tmp_path / "rounds.parquet", full)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs to know what a handle is of")
def test_the_directory_is_forced_to_disk_after_the_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fsync(handle: int) -> None:
        done.append("directory" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")

    def replace(source: Path, target: Path) -> None:
        done.append("name")
        os.replace(source, target)

    monkeypatch.setattr(run_files, "os", SimpleNamespace(**vars(os) | {"fsync": fsync, "replace": replace}))
    write_atomically(tmp_path / "file", lambda path: path.write_text("x"))
    assert done == ["file", "name", "directory"]


MUTE = """
import feelstream as fs

class Mute(fs.Policy):
    def select(self, state, observation, rng):
        raise {error}

class OursError(fs.FeelstreamError):
    def __str__(self):
        raise ValueError("no text")

class MuteError(Exception):
    __str__ = OursError.__str__
"""


@pytest.mark.parametrize("error", ["MuteError", "OursError"])
def test_an_error_without_a_text_of_its_own_is_a_sentence_too(error: str, tmp_path: Path) -> None:
    """In a plan, where a worker asks of every error whether the disk is full."""
    (tmp_path / "mute.py").write_text(MUTE.format(error=error))
    scenario = small("system.rounds=2", f"policy.name={tmp_path / 'mute.py'}:Mute")
    (failure,) = in_process(Plan("mute", (Arm("one", scenario),), (0,)), tmp_path / "out").failures
    assert error in failure.reason
