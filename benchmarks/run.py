"""A whole `paper-iid` run on MNIST: the native engine against PyTorch, one core, and what the cores can do at all.

All play the same run (40 rounds of 20 steps × batch 32 or 10, all 10,000 test images after every round) in turns, and
the best time of each counts. "floor" is the time the run's multiply-adds would take at the measured peak of the cores
used. PyTorch plays the runs of batch 32 only, and is held to the instruction set of FEELSTREAM_ISA like the engine.

    python benchmarks/run.py                # a few minutes, most of them PyTorch's
    python benchmarks/run.py --smoke        # seconds, synthetic data

`engine.py` beside it runs this for every instruction set, in turns.
"""

from __future__ import annotations

import argparse
import json
import platform

import feelstream as fs
from feelstream.learning import cores
from feelstream.learning.models import build
from feelstream.learning.native import chosen_instruction_set, compile_engine
from learner import multiply_adds  # which limits PyTorch's instruction set

PHASES = ("train_s", "evaluate_s", "schedule_s", "arrivals_s", "transmit_s")


def work(run: fs.Run, tests: int) -> float:
    """Multiply-adds of a run: three passes per trained sample (less the first layer's input), one per test image."""
    layers = [count for _, count in multiply_adds(build(run.scenario.learning.model, (1, 28, 28), 10))]
    steps, batch = run.scenario.learning.local.shape or (0, 0)
    trained = int(run.rounds["scheduled"].sum()) * steps * batch
    evaluated = int(run.rounds["accuracy"].count()) * tests
    return trained * (3 * sum(layers) - layers[0]) + evaluated * sum(layers)


def seconds(run: fs.Run) -> float:
    return run.about["timings"]["total_s"]


def best_runs(contenders: dict[str, tuple[str, int]], overrides: list[str], repeats: int) -> dict[str, fs.Run]:
    """The fastest run of each contender (engine, threads), taken in turns."""
    best: dict[str, fs.Run] = {}
    for _ in range(repeats):
        for name, (engine, threads) in contenders.items():
            scenario = fs.preset("paper-iid", [*overrides, f"learning.engine={engine}"])
            run = fs.simulate(scenario, seed=0, threads=threads)
            if name not in best or seconds(run) < seconds(best[name]):
                best[name] = run
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few rounds on synthetic data")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each engine (default 3)")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    parser.add_argument("--json", action="store_true", help="end with a line of JSON that engine.py reads")
    arguments = parser.parse_args()
    tests, repeats, small = 10_000, arguments.repeats, []
    if arguments.smoke:
        tests, repeats, small = (
            1000,
            1,
            ["data.dataset=synthetic", "data.samples=4000", "system.rounds=2", "learning.steps=2"],
        )
    threads, isa = cores(), chosen_instruction_set()
    kernel = compile_engine(build("paper-cnn", (1, 28, 28), 10), isa)
    peak = max(kernel.peak(0.2) for _ in range(1 if arguments.smoke else 5)) * threads
    print(f"{platform.machine()}, {isa}, {threads} threads, peak {2 * peak / 1e9:.0f} GFLOP/s together\n")
    found: dict[str, dict[str, float]] = {}
    for size, batch in ((2, 32), (4, 32), (2, 10), (4, 10)):
        contenders = {"native": ("native", threads), "one core": ("native", 1), "PyTorch": ("torch", threads)}
        if arguments.no_torch or batch != 32:
            del contenders["PyTorch"]
        best = best_runs(contenders, [f"policy.size={size}", f"learning.batch={batch}", *small], repeats)
        native, floor = seconds(best["native"]), work(best["native"], tests) / peak
        times = {"native_s": native, "one_s": seconds(best["one core"]), "floor_s": floor}
        line = f"n = {size}, batch {batch}: {native / floor:.2f}× its floor, {times['one_s'] / native:.2f}× one core"
        if "PyTorch" in best:
            times["torch_s"] = seconds(best["PyTorch"])
            line += f", {times['torch_s'] / native:.1f}× as fast as PyTorch"
        found[f"n = {size}, batch {batch}"] = times
        print(line)
        for name, run in best.items():
            split = "  ".join(f"{phase.removesuffix('_s')} {run.about['timings'][phase]:.2f}" for phase in PHASES)
            store = seconds(run) - sum(run.about["timings"][phase] for phase in PHASES)
            accuracy = run.rounds["accuracy"][-1]
            print(f"  {name:9}{seconds(run):7.2f} s: {split}  store {store:.2f}   final accuracy {accuracy:.2%}")
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
