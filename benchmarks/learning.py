"""What local training, server updates and evaluators cost: whole `paper-iid` runs with each, against plain, one core.

All play the same schedule in turns, and the best time of each counts; the numbers are times of a run over those of the
plain one.

    python benchmarks/learning.py           # a minute or two, on MNIST
    python benchmarks/learning.py --smoke   # seconds, synthetic data
"""

from __future__ import annotations

import argparse

import feelstream as fs

EVALUATORS = 'learning.evaluators=["test", "stream", "devices", "classes"]'
WAYS = {
    "plain": [],
    "momentum 0.5": ["learning.local.momentum=0.5"],
    "weight decay": ["learning.local.weight_decay=0.001"],
    "FedProx": ["learning.local.prox=0.01"],
    "SCAFFOLD": ["learning.local.keep=scaffold"],
    "FedAdam": ["learning.server.kind=fedadam", "learning.server.eta=0.01"],
    "top_k": ["learning.server.kind=top_k"],
    "momentum, weight decay and FedAdam": [
        "learning.local.momentum=0.5", "learning.local.weight_decay=0.001", "learning.server.kind=fedadam",
        "learning.server.eta=0.01",
    ],
    "all evaluators": [EVALUATORS],
    "these four together": [
        "learning.local.momentum=0.5", "learning.local.weight_decay=0.001", "learning.server.kind=fedadam",
        "learning.server.eta=0.01", EVALUATORS,
    ],
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few rounds on synthetic data, one turn")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each (default 5)")
    arguments = parser.parse_args()
    common = ["learning.engine=native"]
    if arguments.smoke:
        common += ["data.dataset=synthetic", "data.samples=600", "system.rounds=3", "learning.steps=2"]
    best: dict[str, float] = {}
    for _ in range(1 if arguments.smoke else arguments.repeats):
        for name, overrides in WAYS.items():
            run = fs.simulate(fs.preset("paper-iid", [*common, *overrides]), seed=0, threads=1)
            best[name] = min(best.get(name, float("inf")), run.about["timings"]["total_s"])
    for name, seconds in best.items():
        print(f"{name:36} {seconds:8.3f} s  {seconds / best['plain']:6.3f}")


if __name__ == "__main__":
    main()
