"""Kills at random moments, of the runner and of single workers, change nothing in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnProcess
from pathlib import Path

import psutil
import pytest
import small_plans
from patience import PATIENCE_S
from small_plans import LONG, in_process, tables, two_arms

import feelstream
from feelstream.experiment import load
from feelstream.experiment.pool import _Process

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(feelstream.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


@contextmanager
def runner(out: Path, rounds: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that executes the plan with two workers."""
    command = [sys.executable, "-W", "ignore", small_plans.__file__, str(out), "2"]
    command += [] if rounds is None else [str(rounds)]
    with subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def workers_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children()
        return [child for child in children if "spawn_main" in " ".join(_command(child))]
    return []


def _command(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return process.cmdline()
    return []


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.mark.nightly
def test_kills_change_nothing(tmp_path: Path) -> None:
    in_process(two_arms((0,), *LONG), tmp_path / "undisturbed")
    expected = tables(tmp_path / "undisturbed")
    chance = random.Random(os.getpid())
    targets = ["worker"] * 2 + ["runner", "starting runner"]  # more of them: make soak ATTACKS=kills
    chance.shuffle(targets)
    attempt = 0
    while targets:  # a plan that is finished before the last kill is checked, and begun anew elsewhere
        out = tmp_path / f"killed-{attempt}"
        attempt += 1
        for restart in range(50):
            assert restart < 49, "it never comes to an end"
            with runner(out) as process:
                while targets and kill_one(process, targets[-1], chance):
                    if targets.pop() != "worker":
                        break
                else:
                    process.wait(PATIENCE_S)
            if process.returncode == 0:
                break
        assert tables(out) == expected
        assert load(out).failures == []
        assert not list(out.rglob("progress"))
        assert not list(out.rglob("*.tmp"))


def kill_one(process: subprocess.Popen[bytes], target: str, chance: random.Random) -> bool:
    """Kill the target at a random moment; whether it was still there to be killed."""
    if target != "starting runner":
        while not workers_of(process):
            if ended_within(process, 0.02):
                return False
    if ended_within(process, chance.uniform(0, 2.0)):
        return False
    if target != "worker":
        process.kill()
        return True
    with suppress(IndexError, psutil.NoSuchProcess):
        chance.choice(workers_of(process)).send_signal(signal.SIGKILL)
        return True
    return kill_one(process, target, chance)


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_workers_end_with_their_runner(tmp_path: Path, end: signal.Signals) -> None:
    with runner(tmp_path / "out", rounds=10**6) as process:  # more than can be finished before the signal comes
        pool: list[psutil.Process] = []
        while len(pool) < 2 or not list(tmp_path.glob("out/runs/*/progress")):
            assert not ended_within(process, 0.02)
            pool = workers_of(process)
        process.send_signal(end)
        process.wait(PATIENCE_S)
        _, alive = psutil.wait_procs(pool, timeout=PATIENCE_S)
        assert alive == []
    assert process.returncode != 0
    assert load(tmp_path / "out").failures


def test_a_worker_is_deaf_to_ctrl_c_from_its_first_moment_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is sent to the whole group: a worker blocks it until it ignores it, since Python's start would not."""
    asks = "import signal, sys; sys.exit(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    start = [sys.executable, "-c", asks]
    monkeypatch.setattr(SpawnProcess, "_Popen", lambda _: subprocess.run(start, check=False).returncode)
    assert _Process._Popen(None) == 1
    assert subprocess.run(start, check=False).returncode == 0
