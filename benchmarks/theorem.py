"""The drift-plus-penalty theorem in numbers: importance against 1/V and queues against V, with their bounds.

    python benchmarks/theorem.py                 the preset `theorem`, T = 60000, V = 0.001 … 0.02: some minutes
    python benchmarks/theorem.py --rounds 6000   shorter
    python benchmarks/theorem.py --smoke         does it run?

The best long-run mean importance I* of any policy that keeps the budgets is found by Monte Carlo from the dual,

    I* = min over q ≥ 0 of  E[max over Π ⊆ Π_f, |Π| ≤ n, of Σ_{k∈Π} (I_k − q_k E~_k)] + Σ_k q_k E_k^avg,

over sampled rounds of the same world (mean gains β_k of the seed). In a run of finite length the queues let devices
spend more than their budgets, by Q(T+1)/T, and where fewer than n share the band, devices spend less than planned. So
the gap is also given to the I* of budgets equal to the planned energies of the schedule that was really taken: what is
left is the loss of deciding round by round. docs/derivation.md has the theorem and its proof.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from feelstream import preset, simulate
from feelstream.loop.simulation import RoundRecord
from feelstream.loop.world import World
from feelstream.model.system import System
from feelstream.scenario import Scenario

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Rounds:
    """Sampled rounds; (M, K) arrays over rounds and devices."""

    importance: Reals  # −∞ where a device is not feasible
    energy_j: Reals  # planned, 0 where a device is not feasible
    n: int


def sample_rounds(scenario: Scenario, system: System, beta: Reals, count: int, seed: int) -> Rounds:
    """Independent rounds as the scenario draws them: Poisson arrivals, uniform frequencies, metric `amount`.

    Written with the formulas, not with the simulator: it is what the simulator is compared with.
    """
    rng = np.random.default_rng(seed)
    n, rate = scenario.policy.size, scenario.data.arrivals.model_dump()["rate"]
    f_hz = rng.uniform(*system.frequency_hz, (count, system.devices))
    fresh = rng.poisson(rate, (count, system.devices))
    sending_s = system.surrogate_time_s(n)
    feasible = system.cycles / f_hz + sending_s <= system.round_s
    total = np.maximum(np.where(feasible, fresh, 0).sum(axis=1, keepdims=True), 1)
    importance = np.where(feasible, feasible.sum(axis=1, keepdims=True) * fresh / total, -np.inf)
    energy = system.power_coefficient * system.cycles * f_hz**2 + system.received_power_w / beta * sending_s
    return Rounds(importance, np.where(feasible, energy, 0.0), n)


def best_importance(rounds: Rounds, budget_j: Reals) -> tuple[float, Reals]:
    """I* and the prices q (per J) that attain it, by minimising the dual, which is convex.

    The mean over many rounds is smooth enough for a quasi-Newton method; q is scaled to be of order 1.
    """
    count = len(rounds.importance)
    unit = 1.0 / budget_j.mean() / len(budget_j)

    def dual(scaled: Reals) -> tuple[float, Reals]:
        price = scaled * unit
        value = rounds.importance - price * rounds.energy_j
        top = np.argpartition(-value, rounds.n - 1, axis=1)[:, : rounds.n]
        gained = np.take_along_axis(value, top, axis=1)
        taken = gained > 0
        used = np.take_along_axis(rounds.energy_j, top, axis=1) * taken
        spent = np.bincount(top.ravel(), used.ravel(), minlength=len(price)) / count
        return float(np.where(taken, gained, 0).sum() / count + price @ budget_j), (budget_j - spent) * unit

    bounds = [(0, None)] * len(budget_j)
    found = minimize(dual, np.ones(len(budget_j)), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500})
    return float(found.fun), found.x * unit


@dataclass(frozen=True)
class Measured:
    """One run: its weight V, and what the theorem speaks of."""

    V: float
    importance: float  # mean per round
    queue_j: float  # mean over devices, over the last half of the run
    queue_max_j: float
    energy_j: Reals  # (K,) spent, mean per round
    planned_j: Reals  # (K,) planned for those scheduled, mean per round
    drift: float  # C: mean of ½ Σ_k (E_k − E_k^avg)²


def play(V: float, rounds: int, seed: int) -> Measured:
    scenario = preset("theorem", [f"policy.V={V}", f"system.rounds={rounds}"])
    budget = scenario.known_system(1).energy_budget_j
    drifts, queues, spent, planned = [], [], np.zeros(len(budget)), np.zeros(len(budget))

    def note(record: RoundRecord) -> None:
        energy = record.energy_j
        np.add(spent, energy, out=spent)
        ids = record.decision.schedule
        planned[ids] += record.decision.plan.energy_j[ids]
        drifts.append(0.5 * np.square(energy - budget).sum())
        queues.append(record.queue_next_j.max())

    run = simulate(scenario, seed, progress=note)
    settled = run.rounds["queue_mean_j"].to_numpy()[rounds // 2 :]
    return Measured(
        V,
        float(run.rounds["importance_sum"].to_numpy().mean()),
        float(settled.mean()),
        float(np.max(queues)),
        spent / rounds,
        planned / rounds,
        float(np.mean(drifts)),
    )


def queue_bound_j(V: float, system: System, beta: Reals, n: int) -> float:
    """V·I_max/E~_min + E_max − E^avg with I_max = K for the metric `amount`; the largest over devices."""
    sending_s = system.surrogate_time_s(n)
    slowest = np.maximum(system.frequency_hz[0], system.cycles / (system.round_s - sending_s))
    power = system.received_power_w / beta
    least = system.power_coefficient * system.cycles * slowest**2 + power * sending_s
    most = system.power_coefficient * system.cycles * system.frequency_hz[1] ** 2 + power * sending_s
    return float((V * system.devices / least + most - system.energy_budget_j).max())


def draw(path: Path, best: float, gaps: list[float], measured: list[Measured], bounds: list[float]) -> None:
    V = np.array([m.V for m in measured])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.loglog(1 / V, np.maximum(gaps, 1e-6), "o-", label="measured gap, at equal planned energy")
    left.loglog(1 / V, [m.drift / m.V for m in measured], "k--", label="bound C/V, C measured")
    left.set(xlabel="1/V (1/J²)", ylabel="importance per round", title=f"gap to I* = {best:.3f}")
    right.loglog(V, [m.queue_j for m in measured], "o-", label="measured: mean queue")
    right.loglog(V, [m.queue_max_j for m in measured], "s-", label="measured: longest queue")
    right.loglog(V, bounds, "k--", label="bound V·K/E~min + Emax − budget")
    right.set(xlabel="V (J²)", ylabel="queue (J)", title="queues")
    for axis in (left, right):
        axis.grid(True, which="both", alpha=0.3)
        axis.legend(fontsize=8)
    for suffix in (".png", ".pdf"):
        figure.savefig(path.with_suffix(suffix), dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="The drift-plus-penalty theorem in numbers.")
    parser.add_argument("--smoke", action="store_true", help="small and short: does it run?")
    parser.add_argument("--rounds", type=int, default=60000, help="T")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--V", type=float, nargs="+", default=[0.001, 0.002, 0.005, 0.01, 0.02])
    parser.add_argument("--out", type=Path, default=Path("results/theorem"), help="figure, without its ending")
    options = parser.parse_args()
    rounds, samples, weights = options.rounds, 40_000, options.V
    if options.smoke:
        rounds, samples, weights = 60, 500, weights[:2]

    scenario = preset("theorem", [f"system.rounds={rounds}"])
    system = scenario.known_system(1)
    world = World(scenario, options.seed, np.zeros(system.devices, np.uint8), 1)
    world.advance(1)
    beta = world.beta
    budget = system.energy_budget_j
    sampled = sample_rounds(scenario, system, beta, samples, 1)
    best, price = best_importance(sampled, budget)
    print(f"K = {system.devices}, at most {scenario.policy.size} a round, T = {rounds}, seed {options.seed}")
    print(f"I* = {best:.4f} ({samples} sampled rounds), mean price q* = {price.mean():.2f} per J")
    print("       V  importance  I*−mean  gap at equal energy    C/V  mean queue/V  longest  bound  energy over budget")
    measured, bounds, gaps = [], [], []
    for V in weights:
        m, bound = play(V, rounds, options.seed), queue_bound_j(V, system, beta, scenario.policy.size)
        measured.append(m)
        bounds.append(bound)
        gaps.append(best_importance(sampled, m.planned_j)[0] - m.importance)
        print(
            f"{V:8g} {m.importance:11.4f} {best - m.importance:8.4f} {gaps[-1]:20.4f} {m.drift / V:6.4f} "
            f"{m.queue_j / V:13.2f} {m.queue_max_j:6.2f} J {bound:4.1f} J "
            f"{m.energy_j.mean() / budget.mean() - 1:19.2%}",
            flush=True,
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    draw(options.out, best, gaps, measured, bounds)
    print(f"figure: {options.out.with_suffix('.png')} and .pdf")


if __name__ == "__main__":
    main()
