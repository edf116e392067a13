"""What Laplace noise on reported label counts does to the schedule: the paper's setting, by privacy parameter ε.

    python benchmarks/label_noise.py                              30 seeds
    python benchmarks/label_noise.py --policy balanced_joint      the policy within the budget
    python benchmarks/label_noise.py --smoke                      1 seed

For each ε: how much of the noise-free schedule is kept (of the devices scheduled in a round, averaged), energy and true
importance of what was scheduled against the noise-free run, the true class imbalance m‖p − 1/m‖² of what each round
trained on (0: all classes alike, m − 1: one class), and the largest energy of a device over its budget. The floor to
compare with is random scheduling; for `balanced_joint` also that the server knows sizes only.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import feelstream as fs
from feelstream.data.datasets import load as load_dataset
from feelstream.flower import DeviceReport, Scheduler
from feelstream.flower.device import NoisyCounts
from feelstream.loop.world import World
from feelstream.model import importance

SAMPLES, CLASSES, BALANCED = 60_000, 10, "balanced_joint"
OVERRIDES = ["data.dataset=synthetic", f"data.samples={SAMPLES}", "learning.engine=none", "data.fresh=since_use"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--preset", default="paper-3digit")
    parser.add_argument("--policy", default="lyapunov", choices=["lyapunov", BALANCED])
    parser.add_argument("--seeds", type=int, default=30)
    options = parser.parse_args()
    seeds = range(1 if options.smoke else options.seeds)
    overrides = [*OVERRIDES, f"policy.name={options.policy}"]
    if options.policy == BALANCED:
        overrides.append(f"policy.size={fs.preset(options.preset).system.devices}")
    scenario = fs.preset(options.preset, overrides)
    labels = load_dataset("synthetic", samples=SAMPLES).train_labels
    exact = [play(scenario, seed, labels, None) for seed in seeds]
    print(f"{options.preset}, {options.policy}, {len(seeds)} seeds")
    print("     ε  schedule kept  energy  importance  imbalance  worst device")
    show("  none", exact, exact)
    for epsilon in (10.0, 1.0, 0.3, 0.1, 0.03):
        show(f"{epsilon:6g}", exact, [play(scenario, seed, labels, epsilon) for seed in seeds])
    if options.policy == BALANCED:
        blind = fs.preset(options.preset, [*overrides, "policy.knows=sizes"])
        show(" sizes", exact, [play(blind, seed, labels, None) for seed in seeds])
    blind = fs.preset(options.preset, [*OVERRIDES, "policy.name=random"])
    show("random", exact, [play(blind, seed, labels, None) for seed in seeds])


class Played(NamedTuple):
    scheduled: NDArray[np.bool_]  # (rounds, K)
    energy_j: NDArray[np.float64]  # (K,), over the run
    worth: float  # true importance of the scheduled
    imbalance: float  # mean over the rounds in which somebody trained
    worst: float  # energy over budget of the device for which it is greatest


def show(name: str, exact: list[Played], other: list[Played]) -> None:
    pairs = list(zip(exact, other, strict=True))
    kept = np.mean([(a.scheduled & b.scheduled).sum() / a.scheduled.sum() for a, b in pairs])
    energy = sum(b.energy_j.sum() for b in other) / sum(a.energy_j.sum() for a in exact)
    worth = sum(b.worth for b in other) / sum(a.worth for a in exact)
    imbalance, worst = np.mean([b.imbalance for b in other]), max(b.worst for b in other)
    print(f"{name}  {kept:13.1%}  {energy:6.3f}  {worth:10.3f}  {imbalance:9.3f}  {worst:12.2f}", flush=True)


def play(scenario: fs.Scenario, seed: int, labels: NDArray[np.uint8], epsilon: float | None) -> Played:
    world, rng = World(scenario, seed, labels, CLASSES), np.random.default_rng([seed, 1])
    server = Scheduler(scenario, CLASSES, seed, max_report_age=0)
    devices, stream = scenario.system.devices, world.stream
    reported = [NoisyCounts.empty(CLASSES) for _ in range(devices)]
    scheduled = np.zeros((scenario.system.rounds, devices), bool)
    energy_j, worth, imbalances = np.zeros(devices), 0.0, []
    for row in range(scenario.system.rounds):
        t = server.begin()
        world.advance(t)
        reports = []
        for k in range(devices):
            counts = stream.stored_labels[k]
            # A device without data says so, whatever the noise, and reports no counts: it could not train.
            if epsilon is not None and stream.stored[k]:
                reported[k] = reported[k].tell(counts.astype(np.int64), epsilon, rng)
                counts = reported[k].released.astype(np.int32)
            reports.append(DeviceReport(counts, None, float(world.f_hz[k]), float(world.beta[k])))
            server.accept(k, reports[k])
        schedule = server.schedule(stream.stored > 0)
        scheduled[row, schedule] = True
        amount = importance.amount(stream.fresh, stream.stored > 0)
        unlike = importance.dissimilarity(stream.fresh_labels, stream.used_total)
        worth += float((amount + unlike)[schedule].sum())
        gain = world.gain
        record = server.settle({int(k): with_gain(reports[k], float(gain[k])) for k in schedule})
        energy_j += record.energy_j
        sent = schedule[record.transmission.sent]
        pooled = stream.stored_labels[sent].sum(axis=0, dtype=float)
        if pooled.any():
            imbalances.append(CLASSES * np.square(pooled / pooled.sum() - 1 / CLASSES).sum())
        stream.use(sent)
    granted_j = scenario.system.rounds * scenario.system.energy_budget_j
    return Played(scheduled, energy_j, worth, float(np.mean(imbalances)), float((energy_j / granted_j).max()))


def with_gain(report: DeviceReport, gain: float) -> DeviceReport:
    return DeviceReport(report.stored_labels, None, report.f_hz, report.beta, gain=gain)


if __name__ == "__main__":
    main()
