"""The machine that a benchmark ran on, in words: processor, cores, instruction set, peak, versions."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from feelstream.learning import cores
from feelstream.learning.models import build
from feelstream.learning.native import chosen_instruction_set, compile_engine


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def machine() -> dict[str, str | float]:
    isa = chosen_instruction_set()
    kernel = compile_engine(build("paper-cnn", (1, 28, 28), 10), isa)
    found: dict[str, str | float] = {
        "processor": processor(),
        "cores": cores(),
        "isa": isa,
        "peak_gflops": 2 * max(kernel.peak(0.1) for _ in range(3)) / 1e9,  # of one core
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    for package in ("feelstream", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def described(about: dict[str, str | float]) -> str:
    return (
        f"{about['processor']}, {about['cores']} cores used, {about['isa']}, "
        f"{about['peak_gflops']:.0f} GFLOP/s a core; Python {about['python']}, "
        f"PyTorch {about['torch']}, feelstream {about['feelstream']}, {about['date']}"
    )
