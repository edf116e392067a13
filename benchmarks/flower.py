"""Time per round of ScheduledFedAvg against Flower's FedAvg: same app, SuperLink and SuperNodes, one after the other.

    python benchmarks/flower.py            8 rounds each, with 4 nodes
    python benchmarks/flower.py --smoke    1 round each, with 2 nodes: only that it works

Both train the same number of nodes per round. The clock starts when the first round does and stops with the last.
The scheduler asks every node once before its first round; that is shown apart, as it is paid once and not per round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from statistics import median

from feelstream.flower.loopback import Federation, federation

APP = Path(__file__).with_name("flower_overhead")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    nodes, trained, rounds = (2, 1, 1) if options.smoke else (4, 2, options.rounds)
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {nodes} nodes, {trained} train a round"
    )
    with federation() as flower:
        for node in range(nodes):
            flower.start_node(node, nodes)
        times = {name: measure(flower, name, nodes, trained, rounds) for name in ("fedavg", "scheduled")}
    for name, found in times.items():
        print(f"{name:<10} {found:6.2f} s per round (median of {max(rounds - 1, 1)}, the first left out)")
    print(f"ratio scheduled / fedavg: {times['scheduled'] / times['fedavg']:.3f}")


def measure(flower: Federation, name: str, nodes: int, trained: int, rounds: int) -> float:
    """Seconds of a round, the first left out, since it meets nodes that have just started."""
    out = flower.directory / f"{name}.json"
    config = {"strategy": name, "nodes": nodes, "trained": trained, "rounds": rounds, "out": str(out)}
    flower.submit(APP, config)
    flower.wait(out.exists, 300 + 60 * rounds)
    flower.processes.pop("run").wait(60)
    ends = json.loads(out.read_text())
    spent = [done - asked for asked, done in zip(ends["asked"], ends["done"], strict=True)]
    print(f"{name}: first round {spent[0]:.2f} s, of which before sending {ends['sent'][0] - ends['asked'][0]:.2f} s")
    return median(spent[1:] or spent)


if __name__ == "__main__":
    main()
