"""Every named model against PyTorch, as one table in docs/archive/engine.md; `learner.py --all` is the command.

Each turn times the native engine and PyTorch's two fastest variants (found in a round before, out of all of
torch_contender.py) one after the other, by processor time of one thread. A turn gives one ratio, and the median of all
turns is what the table has: other work on the machine slows both sides of a turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from feelstream.learning.native import ISA_VARIABLE, instruction_sets
from machine import described, machine

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "archive" / "engine.md"
BEGIN, END = "<!-- written by benchmarks/learner.py -->", "<!-- end of what benchmarks/learner.py writes -->"
TITLES = {"avx512": "AVX-512", "avx2": "AVX2"}
HEAD = "| model | training step, 32 | against PyTorch | of peak | evaluation of 1,000 | against PyTorch | of peak |"

Task = Callable[[], object]


def seconds(task: Task) -> float:
    start = process_time()
    task()
    return process_time() - start


def in_turns(native: Task, theirs: dict[str, Task], peak: Callable[[], None], repeats: int) -> tuple[float, float, str]:
    """(best native time, median of PyTorch's best over native, PyTorch's fastest variant)."""
    native()
    first = {name: seconds(task) for name, task in theirs.items()}
    fastest = sorted(theirs, key=first.__getitem__)[:2]
    ours, ratios, best = [], [], dict.fromkeys(fastest, float("inf"))
    for _ in range(repeats):
        peak()
        ours.append(seconds(native))
        turn = {name: seconds(theirs[name]) for name in fastest}
        ratios.append(min(turn.values()) / ours[-1])
        best = {name: min(best[name], turn[name]) for name in fastest}
    return min(ours), median(ratios), min(best, key=best.__getitem__)


def on_every_set(arguments: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows that learner.py measures in a process of its own for each instruction set but the baseline."""
    found = {}
    for isa in (isa for isa in TITLES if isa in instruction_sets()):
        command = [sys.executable, str(HERE / "learner.py"), "--all", "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, ISA_VARIABLE: isa})
        if done.returncode:
            sys.exit(f"learner.py failed on {isa}:\n{done.stderr}")
        found[isa] = json.loads(done.stdout.splitlines()[-1])
    return found


def cells(task: dict[str, Any]) -> str:
    return f"{task['native_s'] * 1e3:.2f} ms | {task['ratio']:.1f}× | {task['share']:.0%}"


def section(found: dict[str, list[dict[str, Any]]], turns: int) -> str:
    about = machine()
    parts = [f"{described(about)}. Load of the machine when it ended: {os.getloadavg()[0]:.1f}; {turns} turns."]
    for isa, rows in found.items():
        lines = [f"| {row['model']} | {cells(row['training'])} | {cells(row['evaluation'])} |" for row in rows]
        parts.append("\n".join([f"{TITLES[isa]}:", "", HEAD, "|---|---:|---:|---:|---:|---:|---:|", *lines]))
    return "\n\n".join(parts)


def write(text: str) -> None:
    page = PAGE.read_text()
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"docs/archive/engine.md has lost its marks: {BEGIN} … {END}")
    PAGE.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}")
    print(f"\nwritten: {PAGE}")
