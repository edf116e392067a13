"""A whole `paper-iid` run on MNIST: the native engine against PyTorch, and against what the cores can do at all.

Both engines play the same run (40 rounds of 20 steps × batch 32, all 10,000 test images after every round) in turns on
all cores, and the best time of each counts. "floor" is the time the run's multiply-adds would take at the measured peak
of the cores used.

    python benchmarks/run.py                # a few minutes, most of them PyTorch's
    python benchmarks/run.py --smoke        # seconds, synthetic data
"""

from __future__ import annotations

import argparse
import platform

import feelstream as fs
from feelstream.learning import cores
from feelstream.learning.models import build
from feelstream.learning.native import chosen_instruction_set, compile_engine
from learner import multiply_adds

PHASES = ("train_s", "evaluate_s", "schedule_s", "arrivals_s", "transmit_s")


def work(run: fs.Run, tests: int) -> float:
    """Multiply-adds of a run: three passes per trained sample (less the first layer's input), one per test image."""
    layers = [count for _, count in multiply_adds(build(run.scenario.learning.model, (1, 28, 28), 10))]
    learning = run.scenario.learning
    trained = int(run.rounds["scheduled"].sum()) * learning.steps * learning.batch
    evaluated = int(run.rounds["accuracy"].count()) * tests
    return trained * (3 * sum(layers) - layers[0]) + evaluated * sum(layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few rounds on synthetic data")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each engine (default 3)")
    arguments = parser.parse_args()
    tests, repeats, small = 10_000, arguments.repeats, []
    if arguments.smoke:
        tests, repeats, small = 1000, 1, ["data.dataset=synthetic", "system.rounds=2"]
    threads, isa = cores(), chosen_instruction_set()
    kernel = compile_engine(build("paper-cnn", (1, 28, 28), 10), isa)
    peak = max(kernel.peak(0.2) for _ in range(5)) * threads
    print(f"{platform.machine()}, {isa}, {threads} threads, peak {2 * peak / 1e9:.0f} GFLOP/s together\n")
    for size in (2, 4):
        best: dict[str, fs.Run] = {}
        for _ in range(repeats):
            for engine in ("native", "torch"):
                overrides = [f"policy.size={size}", f"learning.engine={engine}", *small]
                run = fs.simulate(fs.preset("paper-iid", overrides), seed=0, threads=threads)
                if engine not in best or seconds(run) < seconds(best[engine]):
                    best[engine] = run
        floor = work(best["native"], tests) / peak
        ratio = seconds(best["torch"]) / seconds(best["native"])
        above = seconds(best["native"]) / floor
        print(f"n = {size}: native is {ratio:.1f}× as fast as PyTorch and takes {above:.2f}× its floor")
        for engine, run in best.items():
            split = "  ".join(f"{phase.removesuffix('_s')} {run.about['timings'][phase]:.2f}" for phase in PHASES)
            store = seconds(run) - sum(run.about["timings"][phase] for phase in PHASES)
            accuracy = run.rounds["accuracy"][-1]
            print(f"  {engine:7}{seconds(run):7.2f} s: {split}  store {store:.2f}   final accuracy {accuracy:.2%}")


def seconds(run: fs.Run) -> float:
    return run.about["timings"]["total_s"]


if __name__ == "__main__":
    main()
