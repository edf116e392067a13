"""Plans that take moments, and what must be equal between two ways of playing them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import feelstream as fs
from feelstream.experiment import Arm, Plan, Results, execute


def arm(label: str, *overrides: str) -> Arm:
    return Arm(label, fs.preset("tiny", ["learning.engine=none", *overrides]))


def two_arms(seeds: Sequence[int] = (0, 1), *overrides: str) -> Plan:
    arms = (arm("ours", *overrides), arm("random", "policy.name=random", *overrides))
    return Plan("two arms", arms, tuple(seeds))


def in_process(plan: Plan, out: Path) -> Results:
    """Play one run after the other in a thread of this process: no process pool, and the files travel."""
    with ThreadPoolExecutor(1) as executor:
        return execute(plan, out, executor=executor)


def tables(out: Path) -> dict[str, bytes]:
    """The Parquet files under a directory, by path."""
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*.parquet"))}


LONG = ("system.rounds=1500",)  # more than one checkpoint

if __name__ == "__main__":  # what the tests kill: python small_plans.py OUT WORKERS [ROUNDS]
    rounds = [f"system.rounds={number}" for number in sys.argv[3:]] or LONG
    failures = execute(two_arms((0,), *rounds), sys.argv[1], workers=int(sys.argv[2])).failures
    sys.exit(str(failures) if failures else 0)
