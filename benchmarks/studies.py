"""What surrounds the runs of a study: how soon a command speaks, what a pool of workers adds, how fast results open.

    python benchmarks/studies.py            1,000 runs of `tiny` without learning, 1,000 stored runs; some minutes
    python benchmarks/studies.py --smoke    6 and 20 of them

**Start**: from starting the process to the first byte that `feelstream run` shows on a terminal, beside a Python that
does nothing and one that imports NumPy and Polars. **Study**: the *compute* of a study is the CPU time that its runs
take one after another in one process that has played before, kept in memory (`simulate`): a fifth of them is played,
half of it before the study and half after. The goal is a share of two cores' time: compute over 2 × the study's time by
the wall, from an empty directory to results that were checked. That is only true on an idle machine; on a busy one,
compute over all CPU time of the study says what that share would be if nobody ever waited. **Memory**: the largest of
two workers that learn `paper-cnn`. **Opening**: `report` and `compare` on 1,000 stored runs against the same commands
on 20 runs, so that what is left is the reading. The stored runs are copies of 20 of each policy, with seeds of their
own.

Ratios are of CPU times where they can be, because other programs add to every clock on the wall; those by the wall are
only true on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import psutil

from feelstream.experiment import Plan, comparison, execute, store
from feelstream.experiment.identity import identify, run_names
from feelstream.run import simulate
from machine import described, machine
from reproduce import Memory

POLICIES = (
    "lyapunov", "random", "round_robin", "select_all", "best_channel", "proportional_fair", "age", "greedy_energy",
    "myopic_energy", "importance_greedy",
)  # fmt: skip
SETTINGS = ("learning.engine=none", "trace.level=rounds")
COPIED = 20  # runs of each policy that are truly played; the stored ones are theirs
GOAL_START_S, GOAL_SHARE, GOAL_MEMORY_MB, GOAL_OPEN_S = 0.15, 0.9, 200.0, 2.0
WORKERS = 2


def arms(policies: Sequence[str]) -> tuple[comparison.Arm, ...]:
    return comparison.arms("tiny", [",".join(policies)], SETTINGS)


def first_output(words: Sequence[str]) -> tuple[float, float]:
    """Seconds by the wall and of the process's CPU until it has shown something on a terminal."""
    ours, theirs = pty.openpty()
    start = perf_counter()
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    select.select([ours], [], [], 60)
    wall = perf_counter() - start
    used = psutil.Process(process.pid).cpu_times()
    while process.poll() is None:  # let it say the rest
        if select.select([ours], [], [], 0.1)[0]:
            try:
                os.read(ours, 65536)
            except OSError:  # Linux's way to say that nobody writes any more
                process.wait()
    os.close(ours)
    return wall, used.user + used.system


def start(takes: int) -> None:
    python = sys.executable
    contenders = {
        "python, nothing": [python, "-c", "print('x', flush=True)"],
        "python, NumPy and Polars": [python, "-c", "import numpy, polars; print('x', flush=True)"],
        "feelstream --version": [python, "-m", "feelstream", "--version"],
        "feelstream run": [python, "-m", "feelstream", "run", "tiny", "--set", "engine=none"],
    }
    taken = {name: [first_output(words) for _ in range(takes)] for name, words in contenders.items()}
    print("first output on a terminal    wall, least    CPU, least")
    for name, takes_of in taken.items():
        wall, cpu = (min(each) for each in zip(*takes_of, strict=True))
        print(f"  {name:26} {wall * 1e3:8.0f} ms {cpu * 1e3:10.0f} ms")
    least = min(wall for wall, _ in taken["feelstream run"])
    _goal("first output of run, s", least, GOAL_START_S)


def study(runs: int) -> None:
    plan = Plan("short runs", arms(POLICIES[:2]), tuple(range(runs // 2)))
    for arm in plan.arms:  # the first of a process pays for imports and data
        simulate(arm.scenario, 0, threads=1)
    sampled = plan.seeds[: max(2, len(plan.seeds) // 5)]

    def played(seeds: Sequence[int]) -> float:
        begun = process_time()
        for seed in seeds:
            for arm in plan.arms:
                simulate(arm.scenario, seed, threads=1)
        return process_time() - begun

    half = len(sampled) // 2
    compute = played(sampled[:half])
    with tempfile.TemporaryDirectory() as directory:
        begun, wall, before = process_time(), perf_counter(), os.times()
        results = execute(plan, directory, workers=WORKERS)
        wall, here, after = perf_counter() - wall, process_time() - begun, os.times()
    assert not results.failures, results.failures[:1]
    compute = (compute + played(sampled[half:])) * len(plan.seeds) / len(sampled)
    workers = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"\n{runs} runs of tiny without learning, {WORKERS} workers, {wall:.1f} s by the wall")
    print(f"  compute of the runs alone  {compute:8.2f} s of CPU, from {len(sampled) * len(plan.arms)} of them")
    print(f"  all of the workers         {workers:8.2f} s of CPU, with their start")
    print(f"  this process               {here:8.2f} s of CPU")
    print(f"  compute over all CPU time  {compute / (workers + here):8.1%}")
    print(
        f"  compute over {WORKERS} cores' time {compute / (WORKERS * wall):8.1%}, on an idle machine ≥ {GOAL_SHARE:.0%}"
    )


def memory(rounds: int) -> None:
    settings = (f"system.rounds={rounds}", "data.dataset=synthetic") if rounds < 5 else (f"system.rounds={rounds}",)
    plan = Plan("learning", comparison.arms("paper-iid", ["lyapunov,select_all"], settings), (0, 1))
    with tempfile.TemporaryDirectory() as directory, Memory() as seen:
        results = execute(plan, directory, workers=WORKERS)
    assert not results.failures, results.failures[:1]
    print(f"\n{len(plan.arms) * len(plan.seeds)} runs of paper-iid with learning, {rounds} rounds, {WORKERS} workers")
    _goal("memory that the largest worker holds alone, MB", seen.own_mb, GOAL_MEMORY_MB)
    _goal("with libraries that all processes share, MB", seen.worker_mb, GOAL_MEMORY_MB)


def stored(out: Path, seeds: int) -> None:
    """Results of every policy with this many seeds, as `compare` keeps them."""
    plan = Plan("compare tiny", arms(POLICIES), tuple(range(seeds)), "feelstream compare tiny")
    runs = out / "runs"
    runs.mkdir(parents=True)
    directories, known = dict[store.Key, Path](), dict[str, dict[str, Any]]()
    for arm in plan.arms:
        played = [simulate(arm.scenario, seed, threads=1) for seed in range(min(COPIED, seeds))]
        known[arm.label] = identify(arm.scenario.as_dict()).known or {}
        names = run_names(arm.scenario, plan.seeds, known[arm.label])
        for seed, name in zip(plan.seeds, names, strict=True):
            run = played[seed % len(played)]
            path = directories[arm.label, seed] = runs / name
            path.mkdir()
            copy = replace(run, manifest=run.manifest.model_copy(update={"seed": seed}))
            for file, content in copy.files().items():  # not forced to disk, which would take longer than the rest
                (path / file).write_bytes(content)
    store.write_plan(out, plan, directories, known, {})


def command(*words: str | Path) -> tuple[float, float]:
    """Seconds by the wall and of CPU that a command takes."""
    wall, before = perf_counter(), os.times()
    subprocess.run([sys.executable, "-m", "feelstream", *map(str, words)], check=True, capture_output=True)
    after = os.times()
    return perf_counter() - wall, sum(after[2:4]) - sum(before[2:4])


def opening(many: int) -> None:
    few = 2
    compared = ["compare", "tiny", "--policy", ",".join(POLICIES)]
    compared += [word for setting in SETTINGS for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as directory:
        taken: dict[tuple[str, int], tuple[float, float]] = {}
        for seeds in sorted({few, many}):
            out = Path(directory) / str(seeds)
            stored(out, seeds)
            for name in ("report", "compare"):
                words = ["report", out] if name == "report" else [*compared, "--seeds", str(seeds), "--out", out]
                taken[name, seeds] = command(*words)
    runs = many * len(POLICIES)
    print(f"\nopening {runs:,} runs: a whole command, and what it takes more than with {few * len(POLICIES)} runs")
    print("  command       wall       CPU    more, wall    more, CPU")
    for name in ("report", "compare"):
        (wall, cpu), (least_wall, least_cpu) = taken[name, many], taken[name, few]
        print(f"  {name:8} {wall:7.2f} s {cpu:7.2f} s  {wall - least_wall:9.2f} s {cpu - least_cpu:10.2f} s")
        _goal(f"seconds of CPU to open {runs:,} runs in {name}", cpu - least_cpu, GOAL_OPEN_S)


def _goal(what: str, value: float, goal: float) -> None:
    print(f"goal: {what} {value:.2f} ≤ {goal:g}: {'met' if value <= goal else 'MISSED'}")


def main() -> None:
    options = argparse.ArgumentParser(description="What surrounds the runs of a study.")
    options.add_argument("--smoke", action="store_true", help="small and short: does it run?")
    options.add_argument("--only", choices=["start", "study", "memory", "opening"], help="one of the four")
    asked = options.parse_args()
    print(described(machine()) + f"; load {os.getloadavg()[0]:.1f}")
    if sys.dont_write_bytecode:
        print("PYTHONDONTWRITEBYTECODE is set: unless bytecode is cached, each process compiles what it imports")
    parts = {
        "start": lambda: start(1 if asked.smoke else 7),
        "study": lambda: study(6 if asked.smoke else 1000),
        "memory": lambda: memory(2 if asked.smoke else 12),
        "opening": lambda: opening(2 if asked.smoke else 100),
    }
    for name, measure in parts.items():
        if asked.only in (None, name):
            measure()


if __name__ == "__main__":
    main()
