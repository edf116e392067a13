"""The most that any schedule of a recorded run could have gained, had all rounds been known beforehand.

With v_k(t) what scheduling device k in round t gains and e_k(t) the least that it costs:

    best = max Σ_t Σ_{k∈Π(t)} v_k(t)    over  Π(t) ⊆ allowed(t), |Π(t)| ≤ n,   Σ_t e_k(t) 1{k∈Π(t)} ≤ b_k for every k

For any prices μ ≥ 0 on the energy of each device, the Lagrangian dual bounds it from above:

    D(μ) = Σ_k μ_k b_k + Σ_t max over |Π| ≤ n of Σ_{k∈Π} (v_k(t) − μ_k e_k(t))  ≥  best

as every schedule within the budgets gains at most its own term of D. The prices come from the linear relaxation, and
the bound is D at these prices, added up here: were the solver wrong, the bound would be loose, never false.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from feelstream.arrays import Flags, Reals
from feelstream.columns import spent_j
from feelstream.errors import RunError
from feelstream.model.energy import Cubic
from feelstream.run import Run

MOST_PAIRS = 500_000  # devices × rounds; the linear program of more takes minutes


@dataclass(frozen=True)
class Instance:
    """value, energy_j, allowed: (T, K); most: n; budget_j: (K,) for the whole run."""

    value: Reals
    energy_j: Reals
    allowed: Flags
    most: int
    budget_j: Reals


@dataclass(frozen=True)
class Bound:
    """What a run gained, against the most that was possible.

    Attributes:
        gained: The amount of fresh data of all who were scheduled: each device's, over the mean of its round.
        within_budget: No schedule within the scenario's budgets gains more.
        with_its_energy: No schedule gains more in which each device spends what it spent in this run.
        devices_over_budget: How many spent more than their budget, so that `gained` may exceed `within_budget`.
        devices: How many there are.
    """

    gained: float
    within_budget: float
    with_its_energy: float
    devices_over_budget: int
    devices: int

    def __str__(self) -> str:
        rows = {
            "fresh data scheduled (sum of amounts)": f"{self.gained:.2f}",
            "at most, with the energy that each device spent here": f"{self.with_its_energy:.2f}",
            "gap": f"{100 * self.gap:.1f} %",
            "at most, within the budgets of the scenario": f"{self.within_budget:.2f}",
            "devices over their budget": f"{self.devices_over_budget} of {self.devices}",
        }
        return "\n".join(f"{what:52}  {value}" for what, value in rows.items())

    @property
    def gap(self) -> float:
        """1 − gained / (the most that is possible with the energy that each device spent); between 0 and 1."""
        return max(1 - self.gained / self.with_its_energy, 0.0) if self.with_its_energy > 0 else 0.0


def dual(instance: Instance, price: Reals) -> float:
    """D(μ) for prices (K,), 1/J."""
    worth = np.where(instance.allowed, instance.value - price * instance.energy_j, 0.0)
    gains = np.maximum(worth, 0.0)
    n = min(instance.most, gains.shape[1])
    best = -np.partition(-gains, n - 1, axis=1)[:, :n] if n else gains[:, :0]
    return float(price @ instance.budget_j + best.sum())


def upper_bound(instance: Instance) -> float:
    """The least D(μ) that the prices of the linear relaxation give; also tried: no prices at all."""
    free = np.zeros(instance.value.shape[1])
    return min(dual(instance, free), dual(instance, _prices(instance)))


def bound_of(run: Run) -> Bound:
    """For the amount of fresh data that a run schedules, which no decision changes where fresh means this round's."""
    instance = _instance(run)
    gained, spent_j, scheduled_cost_j = _spent(run, instance)
    everything = replace(instance, budget_j=np.maximum(spent_j, scheduled_cost_j))
    over = int(np.count_nonzero(spent_j > instance.budget_j * (1 + 1e-9)))
    return Bound(gained, upper_bound(instance), upper_bound(everything), over, len(instance.budget_j))


def _prices(instance: Instance) -> Reals:
    """(K,) what one more joule would be worth to each device if turns could be taken in parts."""
    from scipy.optimize import linprog  # here: it is slow to import
    from scipy.sparse import csr_array

    T, K = instance.value.shape
    t, k = np.nonzero(instance.allowed & (instance.value > 0))
    pairs = np.arange(len(t))
    if not len(t):
        return np.zeros(K)
    rows, columns = np.concatenate([k, K + t]), np.concatenate([pairs, pairs])
    # Energies in units of the largest, so that the solver's tolerances mean something.
    unit = max(float(instance.energy_j[t, k].max()), 1e-300)
    cells = np.concatenate([instance.energy_j[t, k] / unit, np.ones(len(t))])
    limits = np.concatenate([instance.budget_j / unit, np.full(T, instance.most)])
    spending = csr_array((cells, (rows, columns)), shape=(K + T, len(t)))
    found = linprog(-instance.value[t, k], A_ub=spending, b_ub=limits, bounds=(0, 1))
    if found.status != 0:  # no prices are prices too
        return np.zeros(K)
    return np.maximum(-found.ineqlin.marginals[:K], 0.0) / unit


def _instance(run: Run) -> Instance:
    scenario, devices = run.scenario, run.devices
    if devices is None:
        raise RunError("a bound needs the table of devices: run with trace.level = full")
    K, T, data = scenario.system.devices, scenario.system.rounds, scenario.data
    costs, harvest = scenario.costs, scenario.world.harvest
    emptied = data.eligible == "with_data" and data.buffer.empties_on_use
    for depends, needed in (
        (data.fresh != "per_round", "data.fresh = per_round: what is fresh since the last use depends on the schedule"),
        (harvest.battery_j is not None, "a world without batteries: what they hold depends on the schedule"),
        (costs.cycles_per_sample, "costs.cycles_per_sample = 0: what devices hold may depend on the schedule"),
        (not costs.rule.of_settings, "costs.rule.kind = settings: what another rule says may depend on the schedule"),
        (emptied, "data.eligible = any, or a buffer that use does not empty"),
        (run.manifest.changes, "a run whose settings did not change on the way"),
    ):
        if depends:
            raise RunError(f"a bound needs {needed}")
    if K * T > MOST_PAIRS:
        raise RunError(f"a bound of {K * T:,} devices × rounds takes too long; at most {MOST_PAIRS:,} are possible")
    system, policy = scenario.known_system(1), scenario.policy
    f_hz, fresh, available = (devices[name].to_numpy().reshape(T, K) for name in ("f_hz", "fresh", "available"))
    compute_s = system.cycles / f_hz

    def in_time(n: int) -> Flags:
        return available & (compute_s + system.surrogate_time_s(n) <= system.time_s)

    # The amount as policies of the set size see it; whoever is in time if alone on the band may be scheduled.
    usual = in_time(max(policy.size, 1))
    total = (fresh * usual).sum(axis=1, keepdims=True)
    value = fresh * np.where(total > 0, usual.sum(axis=1, keepdims=True) / np.maximum(total, 1), 0.0)
    most = max(int(run.rounds["scheduled"].to_numpy().max()), policy.size)
    return Instance(value, _least_energy_j(run, f_hz), in_time(1), most, T * system.energy_budget_j)


def _least_energy_j(run: Run, f_hz: Reals) -> Reals:
    """(T, K) what computing and receiving cost; where a policy chooses frequencies, at the lowest that is in time."""
    system = run.scenario.known_system(1)
    slowest = system.cycles / system.time_s
    chosen = f_hz if run.scenario.policy.equal_shares else np.minimum(f_hz, slowest)
    if chosen is not f_hz and not isinstance(system.energy, Cubic):  # under another law slower may cost more
        raise RunError("a bound for a policy that chooses frequencies needs the energy law cubic")
    return np.stack([system.compute_energy_j(row) + system.download_j for row in chosen])


def _spent(run: Run, instance: Instance) -> tuple[float, Reals, Reals]:
    """What the run gained, and what each device spent: really, and by the costs of the instance."""
    assert run.devices is not None
    shape = instance.value.shape
    scheduled = run.devices["scheduled"].to_numpy().reshape(shape)
    energy_j = spent_j(run.devices).to_numpy().reshape(shape)
    cost_j = np.where(scheduled, instance.energy_j, 0.0).sum(axis=0)
    return float(instance.value[scheduled].sum()), energy_j.sum(axis=0), cost_j
