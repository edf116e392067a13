"""How fast the native engine learns: against PyTorch, and against what the core can do at all.

All contenders take turns in one run and the best time of each counts; on one core that is the processor time, so
that other work on the machine disturbs nobody. Times do not depend on what the images show, so they are random.

"of peak" counts the multiply-adds of the plain formulas. Where the engine needs fewer (docs/archive/engine.md), its
share may pass 100 %.

FEELSTREAM_ISA=avx2 measures the engine on a lesser instruction set than the machine's, and holds PyTorch to it too.

    python benchmarks/learner.py            # a minute or two
    python benchmarks/learner.py --all      # every named model, as a table in docs/archive/engine.md; some minutes
    python benchmarks/learner.py --smoke    # seconds: does it still run?

`engine.py` beside it runs this for every instruction set, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import model_table
from feelstream import _native
from feelstream.data.datasets import assembled
from feelstream.learning import cores
from feelstream.learning.models import STACKS, Conv, Dense, Model, build
from feelstream.learning.native import ISA_VARIABLE, NativeLearner

# PyTorch, oneDNN and MKL read their limits when they are loaded.
LIMITS = {
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "baseline": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
}
os.environ.update(LIMITS.get(os.environ.get(ISA_VARIABLE, ""), {}))

try:
    import torch_contender
except ImportError:
    torch_contender = None  # the share of the peak can be measured without it

STEPS, SMOKE_STEPS = 20, 2
SHAPES = {"cifar-cnn": (3, 32, 32), "har-cnn": (6, 1, 128)}  # what they are made for; the others take MNIST's
MEAN, STD, LR = 0.1307, 0.3081, 0.01


def multiply_adds(model: Model) -> list[tuple[bool, int]]:
    """(is a convolution, multiply-adds a sample needs forward) of each layer with weights."""
    found, shape = [], model.input
    for layer, after in zip(model.layers, model.shapes(), strict=True):
        if isinstance(layer, Conv):
            found.append((True, prod(after) * shape[0] * layer.rows * layer.columns))
        elif isinstance(layer, Dense):
            found.append((False, prod(shape) * layer.units))
        shape = after
    return found


def best_times(
    contenders: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """The shortest of `repeats` times of each, in seconds, taken in turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, run in contenders.items():
            start = clock()
            run()
            best[name] = min(best[name], clock() - start)
    return best


class Bench:
    """One model on random images, and everything that is timed on it."""

    def __init__(self, name: str, tests: int, repeats: int, steps: int) -> None:
        rng = np.random.default_rng(0)
        shape = SHAPES.get(name, (1, 28, 28))
        self.model = build(name, shape, 10)
        self.repeats = repeats
        self.images = rng.integers(0, 256, (tests, *shape), dtype=np.uint8)
        self.labels = rng.integers(0, 10, tests)
        self.batches = rng.integers(0, tests, (4, steps, 32))
        self.steps = steps
        self.learner = self.with_threads(1)
        self.theta = self.learner.init(0)
        layers = multiply_adds(self.model)
        self.evaluation_work = tests * sum(work for _, work in layers)
        # Forward, weight gradient and input gradient cost the same; the first layer's input needs none.
        self.sample_work = 3 * sum(work for _, work in layers) - layers[0][1]
        self.layers = layers
        self.peak = 0.0
        self.found: dict[str, dict[str, dict[str, float]]] = {"tasks": {}, "two cores": {}}

    def with_threads(self, threads: int) -> NativeLearner:
        arrays = {"x_train": self.images, "y_train": self.labels, "x_test": self.images, "y_test": self.labels}
        return NativeLearner(self.model, assembled("random", arrays, "auto", (MEAN, STD)), threads)

    def measure_peak(self) -> None:
        """Best rate of a loop of multiply-adds in registers; called between the others, like them."""
        self.peak = max(self.peak, self.learner._engine.peak(0.05))

    def against_torch(self, torch: bool) -> None:
        print(f"{'':22}{'native':>12}{'PyTorch':>12}{'ratio':>8}{'of peak':>9}   best PyTorch variant")
        tasks = [(f"training step, {size}", size) for size in (32, 10)] + [("evaluation", 0)]
        for title, size in tasks:
            batches = self.batches[:1, :, :size].copy()
            ours: dict[str, Callable[[], object]] = {"peak": self.measure_peak}
            if size:
                ours["native"] = lambda batches=batches: self.learner.train(self.theta, batches, LR)
            else:
                ours["native"] = lambda: self.learner.evaluate(self.theta)
            theirs = {}
            if torch and torch_contender is not None:
                task = torch_contender.Contender(self.model, self.theta, self.images, self.labels, MEAN, STD)
                theirs = task.training(batches[0], LR) if size else task.evaluation()
            times = best_times({**ours, **theirs}, self.repeats)
            count = self.steps if size else 1
            native = times["native"] / count
            work = size * self.sample_work if size else self.evaluation_work
            line = f"{title:22}{native * 1e3:9.2f} ms"
            self.found["tasks"][title] = {"native_s": native, "peak_s": work / self.peak}
            if theirs:
                variant = min(theirs, key=lambda name: times[name])
                torch_time = times[variant] / count
                self.found["tasks"][title]["torch_s"] = torch_time
                line += f"{torch_time * 1e3:9.2f} ms{torch_time / native:7.1f}×"
            else:
                line += f"{'-':>12}{'-':>8}"
                variant = "not asked for" if torch_contender else "not installed"
            print(f"{line}{work / native / self.peak:9.0%}   {variant}")

    def row(self, torch: Any) -> dict[str, Any]:
        """This model's line of the table of all: training steps with batches of 32, and evaluation."""
        rival = torch.Contender(self.model, self.theta, self.images, self.labels, MEAN, STD)
        batches = self.batches[:1]
        tasks = {
            "training": (
                lambda: self.learner.train(self.theta, batches, LR),
                rival.training(batches[0], LR),
                self.steps,
            ),
            "evaluation": (lambda: self.learner.evaluate(self.theta), rival.evaluation(), 1),
        }
        found = {}
        for name, (native, theirs, count) in tasks.items():
            best, ratio, variant = model_table.in_turns(native, theirs, self.measure_peak, self.repeats)
            work = batches.size * self.sample_work if name == "training" else self.evaluation_work
            found[name] = {"native_s": best / count, "ratio": ratio, "share": work / best / self.peak, "torch": variant}
        return found

    def by_layer(self) -> None:
        """Each layer's share of the peak, forward and backward, in training with batches of 32."""
        learner, engine = self.learner, self.learner._engine
        batches = self.batches[:1]
        updates = np.empty((1, learner.parameters), np.float32)
        losses = np.empty(batches.shape, np.float32)
        data = learner._data("train")
        plain = _native.LocalSgd([LR] * self.steps)
        best = np.full((len(engine.stages), 3), np.inf)
        for _ in range(self.repeats):
            self.measure_peak()
            spent = engine.train(*data, self.theta, batches, plain, None, None, 1, updates, losses, True)
            best = np.minimum(best, np.reshape(spent, best.shape))
        print(f"\n{'share of peak by layer':32}{'forward':>9}{'weights':>9}{'input':>9}")
        weighted = [number for number, name in enumerate(engine.stages) if name.startswith(("conv", "dense"))]
        conv_work = conv_time = 0.0
        for position, (number, (conv, work)) in enumerate(zip(weighted, self.layers, strict=True)):
            work *= batches.size
            phases = 3 if position else 2
            # Where both gradients are computed together, the time of the second is in the first.
            together = phases == 3 and best[number, 2] == 0
            done = [work, 2 * work] if together else [work] * phases
            shares = [one / best[number, phase] / self.peak for phase, one in enumerate(done)]
            print(f"{engine.stages[number]:32}" + "".join(f"{share:9.0%}" for share in shares))
            conv_work += conv * phases * work
            conv_time += conv * best[number, :phases].sum()
        if conv_time:
            print(f"{'all convolutions':32}{conv_work / conv_time / self.peak:9.0%}")

    def two_cores(self) -> None:
        """Two threads against one, by the wall clock: an idle machine is wanted."""
        one, two = self.with_threads(1), self.with_threads(2)
        print("\ntwo cores against one (best time of each)")
        for size, batch in ((2, 32), (4, 32), (2, 10), (4, 10), (0, 0)):
            batches = self.batches[:size, :, :batch].copy()

            def work(learner: NativeLearner, batches: NDArray[np.int64] = batches) -> Callable[[], object]:
                if batches.size:
                    return lambda: learner.train(self.theta, batches, LR)
                return lambda: learner.evaluate(self.theta)

            times = best_times({"one_s": work(one), "two_s": work(two)}, self.repeats, time.perf_counter)
            title = f"training, n = {size}, {batch}" if size else "evaluation"
            self.found["two cores"][title] = times
            print(f"{title:22}{times['one_s'] / times['two_s']:7.2f}×")


def every_model(arguments: argparse.Namespace) -> None:
    turns = 1 if arguments.smoke else arguments.repeats
    if not arguments.json:
        smoke = ["--smoke"] if arguments.smoke else []
        text = model_table.section(model_table.on_every_set(["--repeats", str(turns), *smoke]), turns)
        print(text)
        if not arguments.smoke:
            model_table.write(text)
        return
    if torch_contender is None:
        sys.exit("the table compares with PyTorch, which is not installed: pip install 'feelstream[torch]'")
    size = (100, 1, SMOKE_STEPS) if arguments.smoke else (1000, turns, STEPS)
    print(json.dumps([{"model": name, **Bench(name, *size).row(torch_contender)} for name in STACKS]))


def one_model(arguments: argparse.Namespace) -> None:
    bench = Bench(arguments.model, *((200, 1, SMOKE_STEPS) if arguments.smoke else (10_000, arguments.repeats, STEPS)))
    bench.measure_peak()
    print(
        f"{arguments.model}, {bench.learner.details['isa']}, one thread, {platform.machine()};"
        f" the core's peak is {2 * bench.peak / 1e9:.0f} GFLOP/s\n"
    )
    bench.against_torch(not arguments.no_torch)
    bench.by_layer()
    if cores() > 1:
        bench.two_cores()
    if arguments.json:
        report: dict[str, Any] = {"peak_gflops": 2 * bench.peak / 1e9, **bench.found}
        print(json.dumps(report))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one repeat")
    parser.add_argument("--model", default="paper-cnn", choices=STACKS)
    parser.add_argument("--repeats", type=int, default=15, help="turns of each contender (default 15)")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    parser.add_argument("--json", action="store_true", help="end with a line of JSON that engine.py reads")
    parser.add_argument(
        "--all", action="store_true", help="every named model; writes a table into docs/archive/engine.md"
    )
    arguments = parser.parse_args()
    (every_model if arguments.all else one_model)(arguments)


if __name__ == "__main__":
    main()
