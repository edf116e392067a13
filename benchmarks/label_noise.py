"""What Laplace noise on reported label counts does to the schedule: the paper's setting, by privacy parameter ε.

    python benchmarks/label_noise.py            30 seeds
    python benchmarks/label_noise.py --smoke    1 seed

For each ε: how much of the noise-free schedule is kept (of the devices scheduled in a round, averaged), and energy and
true importance of what was scheduled against the noise-free run. The floor to compare with is random scheduling.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import feelstream as fs
from feelstream.data.datasets import load as load_dataset
from feelstream.flower import DeviceReport, Scheduler
from feelstream.flower.noise import NoisyCounts
from feelstream.model import importance
from feelstream.world import World

SAMPLES, CLASSES = 60_000, 10
OVERRIDES = ["data.dataset=synthetic", f"data.samples={SAMPLES}", "learning.engine=none", "data.fresh=since_use"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--preset", default="paper-3digit")
    options = parser.parse_args()
    seeds = range(1 if options.smoke else 30)
    scenario = fs.preset(options.preset, OVERRIDES)
    labels = load_dataset("synthetic", samples=SAMPLES).train_labels
    exact = [play(scenario, seed, labels, None) for seed in seeds]
    print(f"{options.preset}, {len(seeds)} seeds\n     ε  schedule kept  energy  importance")
    for epsilon in (10.0, 1.0, 0.3, 0.1, 0.03):
        noisy = [play(scenario, seed, labels, epsilon) for seed in seeds]
        show(f"{epsilon:6g}", exact, noisy)
    blind = fs.preset(options.preset, [*OVERRIDES, "policy.name=random"])
    show("random", exact, [play(blind, seed, labels, None) for seed in seeds])


Played = tuple[NDArray[np.bool_], float, float]


def show(name: str, exact: list[Played], other: list[Played]) -> None:
    kept = np.mean([(a & b).sum() / a.sum() for (a, _, _), (b, _, _) in zip(exact, other, strict=True)])
    energy = sum(b[1] for b in other) / sum(a[1] for a in exact)
    worth = sum(b[2] for b in other) / sum(a[2] for a in exact)
    print(f"{name}  {kept:13.1%}  {energy:6.3f}  {worth:10.3f}")


def play(scenario: fs.Scenario, seed: int, labels: NDArray[np.uint8], epsilon: float | None) -> Played:
    """(rounds, K) who was scheduled; total energy; total true importance of the scheduled."""
    world, rng = World(scenario, seed, labels, CLASSES), np.random.default_rng([seed, 1])
    server = Scheduler(scenario, CLASSES, seed, max_report_age=0)
    devices, stream = scenario.system.devices, world.stream
    reported = [NoisyCounts.empty(CLASSES) for _ in range(devices)]
    scheduled = np.zeros((scenario.system.rounds, devices), bool)
    energy = worth = 0.0
    for row in range(scenario.system.rounds):
        t, f_hz = server.begin(), world.frequency_hz(row + 1)
        stream.advance(t)
        reports = []
        for k in range(devices):
            counts = stream.stored_labels[k]
            if epsilon is not None:
                reported[k] = reported[k].tell(counts.astype(np.int64), epsilon, rng)
                counts = reported[k].released.astype(np.int32)
            # A device without data says so whatever the noise: it could not train.
            reports.append(DeviceReport(counts, None, float(f_hz[k]), float(world.beta[k])))
            server.accept(k, reports[k])
        schedule = server.schedule(stream.stored > 0)
        scheduled[row, schedule] = True
        amount = importance.amount(stream.fresh, stream.stored > 0)
        unlike = importance.dissimilarity(stream.fresh_labels, stream.used_total)
        worth += float((amount + unlike)[schedule].sum())
        gain = world.gain(t)
        record = server.settle({int(k): with_gain(reports[k], float(gain[k])) for k in schedule})
        energy += float(record.energy_j.sum())
        stream.use(schedule[record.transmission.sent])
    return scheduled, energy, worth


def with_gain(report: DeviceReport, gain: float) -> DeviceReport:
    return DeviceReport(report.stored_labels, None, report.f_hz, report.beta, gain=gain)


if __name__ == "__main__":
    main()
