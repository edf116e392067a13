"""How the cost of a round grows with the number of devices, against the floor of reading what is known once.

    python benchmarks/scale.py            K = 10², …, 10⁶, and lyapunov_joint up to 2·10⁴
    python benchmarks/scale.py --smoke    K = 10², 10³, two rounds each

The scenario is the preset `million` with K devices, K/1000 of them scheduled and as much band for each. The floor is
the time to read every array of the observation once through memory; the decision is the policy's `select`, with
nothing cached; the round is all of it: arrivals, decision, channel, queues and the row of the trace. All three are CPU
time on one core, the least of several takes in one run, since other programs only ever add to it. Memory is the most
that the process has held; per device it is what a size needs more than the one before it, divided by the difference.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
from dataclasses import fields, replace
from itertools import pairwise
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy starts its threads

import numpy as np

from feelstream import preset
from feelstream.data.datasets import load
from feelstream.loop.simulation import Simulation
from feelstream.policies.base import Observation
from feelstream.run import trace

GOAL_DECISION, GOAL_ROUND_S, GOAL_BYTES = 15.0, 0.5, 2e9
GOAL_JOINT_S, JOINT_SIZE = 0.2, 20_000


def build(devices: int, rounds: int, policy: str = "lyapunov") -> Simulation:
    size = max(devices // 1000, 1)
    scenario = preset(
        "million",
        [
            f"system.devices={devices}",
            f"system.rounds={rounds}",
            f"policy.name={policy}",
            f"policy.size={size}",
            f"radio.bandwidth_hz={size * 1e7}",
            f"data.samples={10 * devices}",
        ],
    )
    data = load("synthetic", samples=scenario.data.samples)
    return Simulation(scenario, 0, data, None)


def known_arrays(observation: Observation) -> list[np.ndarray]:
    values = (getattr(observation, field.name) for field in fields(observation))
    return [value for value in values if isinstance(value, np.ndarray) and value.ndim and len(value) > 10]


def measure(devices: int, rounds: int, takes: int, policy: str = "lyapunov") -> dict[str, Any]:
    start = process_time()
    simulation = build(devices, rounds, policy)
    prepared = process_time() - start
    round_s, decision_s, floor_s, arrays = [], [], [], []
    for _ in range(rounds):
        start = process_time()
        record = simulation.step()
        rows = trace.Rows(False, ())
        rows.add(record)
        rows.take()
        round_s.append(process_time() - start)
        arrays = known_arrays(record.observation)
        for _ in range(takes):
            start = process_time()
            for array in arrays:
                array.max()
            floor_s.append(process_time() - start)
            uncached, rng = replace(record.observation), np.random.default_rng(0)
            start = process_time()
            simulation.policy.select({}, uncached, rng)
            decision_s.append(process_time() - start)
    known = sum(array.nbytes for array in arrays)
    # The first round has no used data to compare with and is cheaper than the rest.
    return {
        "devices": devices,
        "prepare_s": prepared,
        "round_s": min(round_s[1:]),
        "decision_s": min(decision_s[takes:]),
        "floor_s": min(floor_s),
        "known_bytes": known / devices,
    }


def peak_bytes() -> float:
    """Most memory this process has held; kilobytes on Linux, bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of a round against the number of devices.")
    parser.add_argument("--smoke", action="store_true", help="small and short: does it run?")
    smoke = parser.parse_args().smoke
    sizes, rounds, takes = ([100, 1000], 2, 2) if smoke else ([10**e for e in range(2, 7)], 8, 5)
    base = peak_bytes()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(
        "  devices   prepare     round  decision     floor  decision/floor  round, ns/device  known, B/device  peak, MB"
    )
    measured: dict[int, dict[str, Any]] = {}
    for devices in sizes:
        m = measured[devices] = {**measure(devices, rounds, takes), "peak_bytes": peak_bytes()}
        print(row(m))
    joint = measure(sizes[-1] if smoke else JOINT_SIZE, rounds, takes, "lyapunov_joint")
    print(row({**joint, "peak_bytes": peak_bytes()}) + "  lyapunov_joint")
    if smoke:
        return
    print("\nmemory per device:")
    for few, many in pairwise(sizes[2:]):
        more = (measured[many]["peak_bytes"] - measured[few]["peak_bytes"]) / (many - few)
        print(f"  from {few:,} to {many:,}: {more:.0f} bytes")
    last = measured[sizes[-1]]
    print(f"  {sizes[-1]:,}: {(last['peak_bytes'] - base) / sizes[-1]:.0f} bytes beyond the program itself\n")
    goals = [
        (f"decision over floor, K = {K:,}", measured[K]["decision_s"] / measured[K]["floor_s"], GOAL_DECISION)
        for K in sizes[2:]
    ]
    goals += [
        ("seconds per round", last["round_s"], GOAL_ROUND_S),
        ("peak memory in GB", last["peak_bytes"] / 1e9, GOAL_BYTES / 1e9),
        (f"seconds per round of lyapunov_joint, K = {JOINT_SIZE:,}", joint["round_s"], GOAL_JOINT_S),
    ]
    for what, value, goal in goals:
        print(f"goal: {what} {value:.2f} ≤ {goal:g}: {'met' if value <= goal else 'MISSED'}")


def row(m: dict[str, Any]) -> str:
    over, each_ns = m["decision_s"] / m["floor_s"], m["round_s"] / m["devices"] * 1e9
    return (
        f"{m['devices']:9,} {m['prepare_s']:7.2f} s {m['round_s'] * 1e3:6.2f} ms {m['decision_s'] * 1e3:6.2f} ms "
        f"{m['floor_s'] * 1e3:6.3f} ms {over:15.1f} {each_ns:17.0f} "
        f"{m['known_bytes']:16.0f} {m['peak_bytes'] / 1e6:9.0f}"
    )


if __name__ == "__main__":
    main()
