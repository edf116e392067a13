"""How the cost of a round grows with devices, classes, scheduled devices and rounds, as exponents.

    python benchmarks/growth.py --axes K --policies all    K = 10⁴ … 10⁶, of which 1,000 are scheduled
    python benchmarks/growth.py --axes m,n,T               m = 10 … 1,000, n = 2 … 1,000, T = 10³ … 10⁵
    python benchmarks/growth.py --smoke                    small and short, in one process

The scenario is the preset `million` in all of it. **K**: devices; what scheduling and admitting 1,000 of them takes,
the median of several rounds. **m**: classes, with 2,000 devices. **n**: scheduled devices of 2,000, with as much band
for each. **T**: rounds of a whole run with 20 devices, kept in memory. For m, n and T a round is all of it: arrivals,
decision, channel, queues and its row, and the least of several rounds counts. Times are CPU time on one thread. An
exponent is the slope of log cost over log size by least squares over the largest sizes, two for K and three for the
others: where a constant part is left in them it is below 1, and it is above 1 where a cost grows faster than its cause.
For T it is the time of the whole run, and what the process holds more of.

--page writes the rows of K into docs/growth.csv, for docs/speed.md, and the others into docs/archive/growth.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import numpy as np
import polars as pl

from feelstream import preset
from feelstream.data.datasets import load
from feelstream.loop import simulation as loop
from feelstream.loop.simulation import Simulation
from feelstream.policies import POLICIES
from feelstream.run import simulate, trace
from feelstream_studies import tables

SIZES = {
    "K": (10_000, 100_000, 1_000_000),
    "m": (10, 32, 100, 316, 1_000),
    "n": (2, 10, 32, 100, 316, 1_000),
    "T": (1_000, 10_000, 100_000),
}
SMOKE = {"K": (10, 100, 1_000), "m": (2, 5, 10), "n": (1, 2, 5), "T": (5, 10, 20)}
WORDS = {"K": "devices", "m": "classes", "n": "scheduled devices", "T": "rounds"}
DEVICES, FEW, MANY = 2_000, 20, 1_000
HORIZON = 20  # rounds of `million`: budgets of fewer would not pay for a turn
MOST = {"representative": 10_000}  # devices beyond which a round of it takes tens of seconds, as it says itself
SLOPES = {"K": 2, "m": 3, "n": 3, "T": 3}  # largest sizes that an exponent is fitted to
GOALS = {"K": 1.1, "m": 1.05, "n": 1.2, "T": 1.05}  # n log n from 100 to 1,000 is n^1.18; the rest is noise
DOCS = Path(__file__).parents[1] / "docs"
PAGE, TABLE = DOCS / "archive" / "growth.md", DOCS / "growth.csv"
BEGIN, END = "<!-- growth: begin -->", "<!-- growth: end -->"


def overrides(policy: str, devices: int, size: int, rounds: int) -> list[str]:
    return [
        f"system.devices={devices}", f"system.rounds={rounds}", f"policy.name={policy}", f"policy.size={size}",
        f"radio.bandwidth_hz={size * 1e7}", f"data.samples={10 * devices}",
    ]  # fmt: skip


def timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The same function, which adds the CPU seconds that it takes to the last number."""

    def measured(*args: Any, **named: Any) -> Any:
        begun = process_time()
        try:
            return function(*args, **named)
        finally:
            spent[-1] += process_time() - begun

    return measured


def round_s(axis: str, value: int, policy: str, rounds: int) -> float:
    """CPU seconds of a round but the first, which has no used data to compare with.

    For K the median of scheduling and admitting, otherwise the least of the whole round.
    """
    devices = value if axis == "K" else DEVICES
    size = {"K": min(MANY, devices // 2), "n": value}.get(axis, 2)
    classes = value if axis == "m" else 10
    scenario = preset("million", overrides(policy, devices, size, max(rounds, HORIZON)))
    labels = np.random.default_rng(0).integers(0, classes, 10 * devices).astype(np.int64)
    data = replace(load("synthetic", samples=1), train_labels=labels, classes=classes)
    simulation = Simulation(scenario, 0, data, None)
    whole, scheduling = list[float](), list[float]()
    decide, transmit = loop.decide, loop.transmit
    loop.decide, loop.transmit = timed(decide, scheduling), timed(transmit, scheduling)
    try:
        for _ in range(rounds):
            scheduling.append(0.0)
            begun = process_time()
            rows = trace.Rows(False, ())
            rows.add(simulation.step())
            rows.take()
            whole.append(process_time() - begun)
    finally:
        loop.decide, loop.transmit = decide, transmit
    return median(scheduling[1:]) if axis == "K" else min(whole[1:])


def whole_run(rounds: int, policy: str) -> tuple[float, float]:
    """CPU seconds of a run, and the bytes that this process has held at most more than before it."""
    before = peak_bytes()
    begun = process_time()
    simulate(preset("million", overrides(policy, FEW, 2, rounds)), 0, threads=1)
    return process_time() - begun, peak_bytes() - before


def peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def apart(axis: str, value: int, policy: str, rounds: int) -> tuple[float, float]:
    """Seconds and bytes, in a process of its own: memory that was held once is not given back."""
    words = [sys.executable, __file__, "--one", axis, str(value), policy, str(rounds)]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return float(said[0]), float(said[1])


def one(axis: str, value: int, policy: str, rounds: int) -> tuple[float, float]:
    if axis == "T":
        return whole_run(value, policy)
    return round_s(axis, value, policy, rounds), peak_bytes()


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of log cost over log size by least squares.

    >>> round(exponent([10, 100, 1000], [3, 30, 300]), 6), round(exponent([10, 100, 1000], [5, 5, 5]), 6)
    (1.0, 0.0)
    """
    x, y = np.log(np.asarray(sizes, float)), np.log(np.maximum(np.asarray(costs, float), 1e-12))
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


Measure = Callable[[str, int, str, int], tuple[float, float]]


def by_devices(sizes: Sequence[int], policy: str, rounds: int, measure: Measure = apart) -> dict[str, Any]:
    """The row of a policy in docs/growth.csv: milliseconds at each size, exponent, megabytes at the largest."""
    found = {value: measure("K", value, policy, rounds) for value in sizes if value <= MOST.get(policy, value)}
    costs, held = zip(*found.values(), strict=True)
    last = -SLOPES["K"]
    slope = exponent(list(found)[last:], costs[last:]) if len(found) > 1 else None
    times = {f"ms_{value}": 1e3 * found[value][0] if value in found else None for value in sizes}
    return {"policy": policy, **times, "exponent": slope, "megabytes": held[-1] / 1e6}


def measured(axis: str, sizes: Sequence[int], policy: str, rounds: int, measure: Measure = apart) -> list[str]:
    """The row of a table: policy, axis, cost at each size, exponent, memory."""
    found = [measure(axis, value, policy, rounds) for value in sizes]
    costs, held = zip(*found, strict=True)
    last = -SLOPES[axis]
    slope = exponent(sizes[last:], costs[last:])
    each = [seconds / value if axis == "T" else seconds for seconds, value in zip(costs, sizes, strict=True)]
    shown = ", ".join(f"{value:,}: {seconds * 1e3:.3g}" for value, seconds in zip(sizes, each, strict=True))
    memory = f"{held[-1] / 1e6:.0f} MB"
    slopes = [slope]
    if axis == "T":  # what is kept of every round must not grow faster than they do either
        slopes.append(exponent(sizes[last:], held[last:]))
        memory += f" more than before, exponent {slopes[-1]:.2f}"
    over = "yes" if max(slopes) <= GOALS[axis] else "**no**"
    return [f"`{policy}`", f"{axis}, {WORDS[axis]}", shown, f"{slope:.2f}", over, memory]


def table(rows: Sequence[Sequence[str]]) -> str:
    titles = ["policy", "what grows", "ms of CPU a round", "exponent", "within its bound", "memory at the largest"]
    lines = [titles, ["---", "---", "---", "---:", "---", "---:"], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def written(page: str, said: str) -> str:
    """The page with this between its two marks."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{said}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    options = argparse.ArgumentParser(description="Exponents of the cost of a round.")
    options.add_argument("--smoke", action="store_true", help="small and short: does it run?")
    options.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options.add_argument("--axes", default="K,m,n,T")
    options.add_argument("--policies", default="lyapunov", help="names with commas between, or all")
    options.add_argument("--largest", type=int, default=10**6, help="sizes above this are left out")
    options.add_argument("--rounds", type=int, default=6, help="rounds of which the cheapest counts")
    options.add_argument("--page", action="store_true", help="write docs/growth.csv and docs/archive/growth.md")
    asked = options.parse_args()
    if asked.one:
        axis, value, policy, rounds = asked.one
        print(*one(axis, int(value), policy, int(rounds)))
        return
    from machine import described, machine

    names = [name for name in POLICIES.names() if not POLICIES.lookup(name)().probes]  # type: ignore[attr-defined]
    policies = names if asked.policies == "all" else asked.policies.split(",")
    about = f"{described(machine())}; load {os.getloadavg()[0]:.1f}"
    print(about)
    rows, devices = list[list[str]](), list[dict[str, Any]]()
    rounds, measure = (2, one) if asked.smoke else (asked.rounds, apart)
    for policy in policies:
        for axis in asked.axes.split(","):
            sizes = SMOKE[axis] if asked.smoke else [value for value in SIZES[axis] if value <= asked.largest]
            if axis == "K":
                devices.append(by_devices(sizes, policy, rounds, measure))
                print(devices[-1], flush=True)
            else:
                rows.append(measured(axis, sizes, policy, rounds, measure))
                print(" | ".join(rows[-1]), flush=True)
    if asked.page and rows:
        said = f"Measured on {about}.\n\n{table(rows)}"
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), said), encoding="utf-8")
    if asked.page and devices:
        facts = {
            "Command": "python benchmarks/growth.py --axes K --policies all --page",
            "Machine": about,
            "Without": "policies that ask devices for reports",
        }
        tables.write(TABLE, tables.Table(pl.DataFrame(devices), facts), digits=3)


if __name__ == "__main__":
    main()
