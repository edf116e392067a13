"""Time per round of ScheduledFedAvg against Flower's FedAvg: same app, SuperLink and SuperNodes, rounds taken in turn.

    python benchmarks/flower.py            10 rounds each, with 4 nodes
    python benchmarks/flower.py --smoke    1 round each, with 2 nodes: only that it works

Both send the same number of messages per round, to nodes that answer with the same model, and both get them all back,
or the benchmark fails. The CPU time is that of the server's process, all threads, over the whole round: deciding,
sending, polling, averaging, settling; what else the machine does hardly touches it. The scheduler asks every node once
before its first round; that round is left out and shown apart, as it is paid once and not per round.

Flower looks for replies every 3 s, the scheduler sooner and then ever less often: "polling" is FedAvg with the
scheduler's way of waiting, so that what scheduling itself costs can be seen apart.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from statistics import mean, median

from feelstream.flower.federation import federation

APP = Path(__file__).with_name("flower_overhead")


def total(laps: list[dict[str, float]], what: str) -> float:
    """Over all rounds but the first."""
    return sum(lap[what] for lap in laps[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    nodes, trained, rounds = (2, 1, 1) if options.smoke else (4, 2, options.rounds)
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores; {nodes} nodes, {trained} train in a round, {rounds} rounds each")
    with federation() as flower:
        flower.wait_for_superlink()
        for node in range(nodes):
            flower.start_node(node, nodes)
        out = flower.directory / "seconds.json"
        flower.submit(APP, {"nodes": nodes, "trained": trained, "rounds": rounds, "out": str(out)})
        flower.wait(out.exists, 300 + 120 * rounds)
        seconds = json.loads(out.read_text())
    for name, found in seconds.items():
        later = found[1:]
        spent, cpu_ms = [lap["round"] for lap in later], 1e3 * mean(lap["cpu"] for lap in later)
        own_ms = 1e3 * mean(lap["before"] + lap["after"] for lap in later)
        print(f"{name:<10} median {median(spent):6.2f} s, mean {mean(spent):6.2f} s per round; ", end="")
        print(f"before and after the waiting {own_ms:.1f} ms; CPU of the server's process {cpu_ms:.1f} ms; ", end="")
        print(f"the first round took {found[0]['round']:.2f} s and {1e3 * found[0]['cpu']:.0f} ms of CPU")
    time_s, cpu_s = ({name: total(laps, what) for name, laps in seconds.items()} for what in ("round", "cpu"))
    for other in ("fedavg", "polling"):
        print(f"scheduled / {other}: time {time_s['scheduled'] / time_s[other]:.3f}, ", end="")
        extra_s = cpu_s["scheduled"] - cpu_s[other]
        print(f"CPU time of the server {cpu_s['scheduled'] / cpu_s[other]:.3f}; ", end="")
        print(f"what CPU time it adds is {100 * extra_s / time_s[other]:+.2f} % of the other's rounds")


if __name__ == "__main__":
    main()
