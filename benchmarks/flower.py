"""Time per round of ScheduledFedAvg against Flower's FedAvg: same app, SuperLink and SuperNodes, rounds taken in turn.

    python benchmarks/flower.py            10 rounds each, with 4 nodes
    python benchmarks/flower.py --smoke    1 round each, with 2 nodes: only that it works

Both send the same number of messages per round, to nodes that answer with the same model, and both get them all back,
or the benchmark fails. The CPU time is that of the server's process, all threads, over the whole round: deciding,
sending, polling, averaging, settling; what else the machine does hardly touches it. The scheduler asks every node once
before its first round; that round is left out and shown apart, as it is paid once and not per round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from statistics import mean, median

from feelstream.flower.loopback import federation

APP = Path(__file__).with_name("flower_overhead")


def own_work(laps: list[dict[str, float]]) -> list[float]:
    return [lap["before"] + lap["after"] for lap in laps]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    nodes, trained, rounds = (2, 1, 1) if options.smoke else (4, 2, options.rounds)
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores; {nodes} nodes, {trained} train in a round, {rounds} rounds each")
    with federation() as flower:
        flower.warm()
        flower.wait_for_superlink()
        for node in range(nodes):
            flower.start_node(node, nodes)
        out = flower.directory / "seconds.json"
        flower.submit(APP, {"nodes": nodes, "trained": trained, "rounds": rounds, "out": str(out)})
        flower.wait(out.exists, 300 + 120 * rounds)
        seconds = json.loads(out.read_text())
    for name, found in seconds.items():
        later = found[1:]
        spent = [lap["round"] for lap in later]
        own_ms, cpu_ms = (1e3 * mean(values) for values in (own_work(later), [lap["cpu"] for lap in later]))
        print(f"{name:<10} median {median(spent):6.2f} s, mean {mean(spent):6.2f} s per round; ", end="")
        print(
            f"before and after the waiting {own_ms:.1f} ms of it; CPU of the server's process {cpu_ms:.1f} ms; ", end=""
        )
        print(f"the first round took {found[0]['round']:.2f} s and {1e3 * found[0]['cpu']:.0f} ms of CPU")
    for quantity, name in {"round": "time", "cpu": "CPU time of the server"}.items():
        total = {who: sum(lap[quantity] for lap in found[1:]) for who, found in seconds.items()}
        print(f"{name}, ratio scheduled / fedavg, all rounds: {total['scheduled'] / total['fedavg']:.3f}")
    extra = sum(lap["cpu"] for lap in seconds["scheduled"][1:]) - sum(lap["cpu"] for lap in seconds["fedavg"][1:])
    share = extra / sum(lap["round"] for lap in seconds["fedavg"][1:])
    print(f"CPU time that the scheduler adds, as a share of FedAvg's round: {100 * share:+.2f} %")


if __name__ == "__main__":
    main()
