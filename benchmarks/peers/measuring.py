"""Starts one contender in a process of its own, watches its memory, and reads what it reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workload import STARTED

HERE = Path(__file__).parent
LOOK_S = 0.5  # between two looks at the memory; a look takes the kernel some milliseconds
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "FLWR_TELEMETRY_ENABLED": "0", "WANDB_MODE": "disabled"}


@dataclass(frozen=True)
class Contender:
    name: str
    tuned: bool
    python: Path
    script: str
    workloads: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """One run: `failed` is empty, or says in a line why there is nothing else."""

    form: str = ""
    accuracy: tuple[float, ...] = ()
    loop_s: float = 0.0
    startup_s: float = 0.0
    total_s: float = 0.0
    memory_mb: float = 0.0
    failed: str = ""


def measure(
    contender: Contender, workload: str, data: Path, size: int, rounds: int, seed: int, limit_s: float
) -> Measured:
    command = [str(contender.python), str(HERE / contender.script), "--workload", workload, "--data", str(data)]
    command += ["--size", str(size), "--rounds", str(rounds), "--seed", str(seed)] + ["--tuned"] * contender.tuned
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.time()
        environment = {**os.environ, **QUIET, "PYTHONPATH": paths, STARTED: repr(start)}
        child = subprocess.Popen(command, stdout=output, stderr=errors, env=environment, start_new_session=True)
        most = 0.0
        try:
            while (code := _ended(child)) is None:
                most = max(most, family_mb(child.pid))
                if time.time() - start > limit_s:
                    return Measured(failed=f"took more than {limit_s:.0f} s")
        finally:
            _end_group(child)
        total = time.time() - start
        output.seek(0)
        errors.seek(0)
        reports = [line for line in output.read().splitlines() if line.startswith('{"form"')]
        if code or not reports:
            said = [line for line in errors.read().splitlines() if line.strip()]
            return Measured(failed=(said or ["it ended without a report"])[-1].strip()[:200])
    report = json.loads(reports[-1])
    report["accuracy"] = tuple(report["accuracy"])
    return Measured(**report, total_s=total, memory_mb=most)


def _ended(child: subprocess.Popen) -> int | None:
    """The exit code as soon as there is one, or None after a while."""
    try:
        return child.wait(LOOK_S)
    except subprocess.TimeoutExpired:
        return None


def _end_group(child: subprocess.Popen) -> None:
    """End whatever a contender left running in its session."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def family_mb(root: int) -> float:
    """Memory of a process and all its descendants; pages that several share count once (Linux's PSS)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):  # none where there is no /proc: the memory is then 0
        with suppress(OSError):  # it ended meanwhile
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    family, found = {root}, True
    while found:
        found = {pid for pid, parent in parents.items() if parent in family} - family
        family |= found
    return sum(map(_pss_mb, family))


def _pss_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000
