"""A tiny, slow, plain simulator: loops, the math module and brute force over subsets.

It stands in for the real one, so that the re-check is tested against a third way of writing down the rules.
"""

from __future__ import annotations

import copy
import json
import math
import random
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
from sealing import seal
from second_resolver import whole

CLASSES = 3
ROUND_TYPES = {
    **dict.fromkeys(("round", "planned", "feasible", "scheduled", "transmitted"), pl.Int32),
    **dict.fromkeys(("sim_time_s", "importance_sum", "energy_mean_j", "energy_mean_cum_j"), pl.Float64),
    **dict.fromkeys(("queue_mean_j", "queue_max_j", "accuracy", "loss"), pl.Float64),
}
DEVICE_TYPES = {
    **dict.fromkeys(("round", "device", "stored", "fresh"), pl.Int32),
    **dict.fromkeys(("fresh_labels", "used_labels"), pl.List(pl.Int32)),
    **dict.fromkeys(("available", "feasible", "scheduled", "transmitted"), pl.Boolean),
    **dict.fromkeys(("f_hz", "beta", "gain", "amount", "dissimilarity", "importance"), pl.Float64),
    **dict.fromkeys(("queue_j", "score", "bandwidth_share", "power_w", "t_cmp_s", "t_tr_s"), pl.Float64),
    **dict.fromkeys(("e_cmp_j", "e_tr_j", "queue_next_j"), pl.Float64),
}


@dataclass
class Stored:
    """A run as it lies on disk; what its settings come to is stated anew whenever it is saved."""

    run: dict[str, Any]
    rounds: pl.DataFrame
    devices: pl.DataFrame

    def save(self, directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        came_to = whole(self.run["scenario"], CLASSES)
        budgets = self.run["scenario"]["system"]["energy_budget_j"]
        if came_to["phases"][0]["energy_budget_j"] is None:
            devices = pl.DataFrame({"device": range(len(budgets)), "energy_budget_j": budgets})
            devices.write_parquet(directory / "constants.parquet")
        (directory / "run.json").write_text(json.dumps(self.run | {"resolved": came_to}))
        self.rounds.write_parquet(directory / "rounds.parquet")
        if self.run["scenario"]["trace"]["level"] == "full":
            self.devices.write_parquet(directory / "devices.parquet")
        return seal(directory)


def scenario(**changes: Any) -> dict[str, Any]:
    """A busy scenario: tight round, poor channel, so that devices are infeasible, late and dropped.

    `changes` are dotted names with `__` for the dot.
    """
    tree: dict[str, Any] = {
        "system": {"devices": 5, "rounds": 8, "round_s": 1.5, "energy_budget_j": 0.02},
        "cpu": {"cycles": 1e8, "power_coefficient": 1e-27, "frequency_hz": [6e7, 1e9]},
        "radio": {
            "bandwidth_hz": 1e6,
            "noise_w_per_hz": 6.3e-8,
            "received_power_dbm": 28,
            "gain_db": [-5, 3],
            "fading": "rayleigh",
            "rate_discount": 0.9,
            "link_margin": 3.0,
            "admission": "paper",
            "update_bits": 698880,
        },
        "data": {
            "dataset": "synthetic",
            "eligible": "any",
            "fresh": "since_use",
            "empty_used": "zero",
            "empty_fresh": "zero",
            "partition": {"kind": "iid"},
            "arrivals": {"kind": "poisson", "order": "shuffled"},
            "buffer": {"kind": "keep"},
        },
        "policy": {"name": "lyapunov", "V": 0.05, "size": 3, "cardinality": "exact", "metric": "combined"},
        "learning": {"engine": "torch", "eval_every": 3},
        "trace": {"level": "full"},
    }
    for name, value in changes.items():
        *sections, field = name.split("__")
        part = tree
        for section in sections:
            part = part[section]
        part[field] = value
    return tree


def simulate(tree: dict[str, Any], seed: int = 0) -> Stored:
    """Run the scenario round by round; rows as they are stored."""
    rng = random.Random(seed)
    K, T = tree["system"]["devices"], tree["system"]["rounds"]
    budget = tree["system"]["energy_budget_j"]
    budget = budget if isinstance(budget, list) else [budget] * K
    radio, learning = tree["radio"], tree["learning"]
    beta = [10 ** (rng.uniform(*radio["gain_db"]) / 10) for _ in range(K)]
    held: list[list[tuple[int, int]]] = [[] for _ in range(K)]  # (round of arrival, label)
    last_use, used, queue = [0] * K, [[0] * CLASSES for _ in range(K)], [0.0] * K
    round_rows, device_rows, energy_so_far = [], [], 0.0
    for t in range(1, T + 1):
        f = [rng.uniform(*tree["cpu"]["frequency_hz"]) for _ in range(K)]
        gain = [b if radio["fading"] == "none" else b * rng.expovariate(1.0) for b in beta]
        for k in range(K):
            arrive(held[k], t, tree["data"]["buffer"], rng)
        since = [last_use[k] if tree["data"]["fresh"] == "since_use" else t - 1 for k in range(K)]
        fresh = [count([label for when, label in held[k] if when > since[k]]) for k in range(K)]
        view = {
            "f": f,
            "beta": beta,
            "stored": [len(h) for h in held],
            "fresh": fresh,
            "used": used,
            "Q": queue,
            "t": t,
        }
        there = [may_be_scheduled(tree, view, k) for k in range(K)]

        planned, chosen = decide(tree, view, rng)
        feasible, amount, dissimilarity, importance = importances(tree, view, max(planned, 1))
        scored = tree["policy"]["name"] == "lyapunov"
        sent = admit(tree, f, [g / b for g, b in zip(gain, beta, strict=True)], chosen)
        n = len(sent)
        energy, queue_next = [0.0] * K, [0.0] * K
        for k in range(K):
            row = {"round": t, "device": k, "f_hz": f[k], "beta": beta[k], "gain": gain[k]}
            row |= {"stored": len(held[k]), "fresh": sum(fresh[k])}
            row |= {"fresh_labels": list(fresh[k]), "used_labels": list(used[k])}
            row |= {"available": there[k], "feasible": k in feasible}
            row |= {
                "amount": amount.get(k),
                "dissimilarity": dissimilarity.get(k),
                "importance": importance.get(k),
            }
            row |= {"queue_j": queue[k], "scheduled": k in chosen, "transmitted": k in sent}
            row["score"] = score(tree, view, k, max(planned, 1), importance[k]) if scored and k in feasible else None
            computes, sends = k in chosen, k in sent
            power = received_w(tree) / beta[k]
            sending = transmission_s(tree, n, power * gain[k]) if sends else 0.0
            row |= {"bandwidth_share": 1 / n if sends else 0.0, "power_w": power if sends else 0.0}
            row |= {"t_cmp_s": tree["cpu"]["cycles"] / f[k] if computes else 0.0, "t_tr_s": sending}
            row["e_cmp_j"] = tree["cpu"]["power_coefficient"] * tree["cpu"]["cycles"] * f[k] ** 2 if computes else 0.0
            row["e_tr_j"] = power * sending if sends else 0.0
            energy[k] = row["e_cmp_j"] + row["e_tr_j"]
            row["queue_next_j"] = queue_next[k] = max(queue[k] + energy[k] - budget[k], 0.0)
            device_rows.append(row)
        queue = queue_next
        for k in sent:
            used[k], last_use[k] = count([label for _, label in held[k]]), t
            if tree["data"]["buffer"]["kind"] == "use_once":
                held[k].clear()

        energy_so_far += sum(energy) / K
        evaluated = learning["engine"] != "none" and (t % learning["eval_every"] == 0 or t == T)
        round_rows.append(
            {
                "round": t,
                "sim_time_s": t * tree["system"]["round_s"],
                "planned": planned,
                "feasible": len(feasible),
                "scheduled": len(chosen),
                "transmitted": n,
                "importance_sum": sum(importance[k] for k in chosen),
                "energy_mean_j": sum(energy) / K,
                "energy_mean_cum_j": energy_so_far / t,
                "queue_mean_j": sum(queue) / K,
                "queue_max_j": max(queue),
                "accuracy": rng.random() if evaluated else None,
                "loss": rng.expovariate(1.0) if evaluated else None,
            }
        )
    run = {"format": 5, "feelstream": "0.1.0", "status": "complete", "seed": seed, "scenario": copy.deepcopy(tree)}
    run |= {"engine": {}, "data": {"name": "synthetic", "digest": "", "classes": CLASSES}}
    run |= {"versions": {}, "timings": {}, "facts": []}
    return Stored(run, pl.DataFrame(round_rows, ROUND_TYPES), pl.DataFrame(device_rows, DEVICE_TYPES))


def arrive(held: list[tuple[int, int]], t: int, buffer: dict[str, Any], rng: random.Random) -> None:
    """Up to four samples arrive (often none); then the buffer deletes by its rule."""
    for _ in range(rng.choice([0, 0, 1, 2, 4])):
        sample = (t, rng.randrange(CLASSES))
        if buffer["kind"] == "reservoir" and len(held) >= buffer["capacity"]:
            held[rng.randrange(len(held))] = sample
        else:
            held.append(sample)
    if buffer["kind"] == "window":
        held[:] = [sample for sample in held if sample[0] > t - buffer["rounds"]]
    if buffer["kind"] == "fifo":
        held[:] = held[-buffer["capacity"] :]


def count(labels: list[int]) -> list[int]:
    return [labels.count(c) for c in range(CLASSES)]


def received_w(tree: dict[str, Any]) -> float:
    return 10 ** (tree["radio"]["received_power_dbm"] / 10 - 3)


def transmission_s(tree: dict[str, Any], n: int, received_w: float) -> float:
    radio = tree["radio"]
    B = radio["bandwidth_hz"]
    rate = B / n * math.log2(1 + n * received_w / (B * radio["noise_w_per_hz"]))
    return radio["update_bits"] / rate if rate > 0 else math.inf


def surrogate_s(tree: dict[str, Any], n: int) -> float:
    at_mean_gain = transmission_s(tree, n, received_w(tree))
    return at_mean_gain / tree["radio"]["rate_discount"]


def surrogate_j(tree: dict[str, Any], view: dict[str, Any], k: int, n: int) -> float:
    cpu = tree["cpu"]
    power = received_w(tree) / view["beta"][k]
    computing = cpu["power_coefficient"] * cpu["cycles"] * view["f"][k] ** 2
    return computing + power * surrogate_s(tree, n)


def centred(counts: list[int]) -> list[float]:
    mean = sum(counts) / len(counts)
    return [(c - mean) / mean for c in counts]


def may_be_scheduled(tree: dict[str, Any], view: dict[str, Any], k: int) -> bool:
    return tree["data"]["eligible"] == "any" or view["stored"][k] >= 1


def distance(tree: dict[str, Any], t: int, used: list[int], fresh: list[int]) -> float:
    """Dissimilarity with every edge rule spelled out."""
    if t == 1:
        return 0.0
    if not sum(used) and tree["data"]["empty_used"] == "zero":
        return 0.0
    if not sum(fresh) and tree["data"]["empty_fresh"] == "zero":
        return 0.0
    x = centred(used) if sum(used) else [0.0] * CLASSES
    y = centred(fresh) if sum(fresh) else [0.0] * CLASSES
    below = sum(a * a for a in x) + sum(b * b for b in y)
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / below if below > 0 else 0.0


def importances(tree: dict[str, Any], view: dict[str, Any], n: int) -> tuple[list[int], dict, dict, dict]:
    """The feasible set at n, and amount, dissimilarity, importance of its members."""
    round_s, cycles = tree["system"]["round_s"], tree["cpu"]["cycles"]
    feasible = [
        k
        for k in range(len(view["f"]))
        if may_be_scheduled(tree, view, k) and cycles / view["f"][k] + surrogate_s(tree, n) <= round_s
    ]
    total = sum(sum(view["fresh"][k]) for k in feasible)
    everything = [sum(part[c] for part in view["used"]) for c in range(CLASSES)]
    amount, dissimilarity, importance = {}, {}, {}
    metric = tree["policy"].get("metric", "combined")
    for k in feasible:
        mine = view["fresh"][k]
        amount[k] = len(feasible) * sum(mine) / total if total else 0.0
        dissimilarity[k] = distance(tree, view["t"], everything, mine)
        both = {"amount": amount[k], "dissimilarity": dissimilarity[k]}
        importance[k] = both[metric] if metric in both else amount[k] + dissimilarity[k]
    return feasible, amount, dissimilarity, importance


def score(tree: dict[str, Any], view: dict[str, Any], k: int, n: int, importance: float) -> float:
    V = tree["policy"]["V"]
    return -importance if math.isinf(V) else view["Q"][k] * surrogate_j(tree, view, k, n) - V * importance


def decide(tree: dict[str, Any], view: dict[str, Any], rng: random.Random) -> tuple[int, list[int]]:
    """The planned size and the schedule, by trying every allowed subset."""
    policy = tree["policy"]
    size = policy["size"]
    if policy["name"] != "lyapunov":
        feasible = importances(tree, view, size)[0]
        return size, rng.sample(feasible, min(size, len(feasible)))
    if policy["cardinality"] != "free":
        feasible, _, _, importance = importances(tree, view, size)
        most = min(size, len(feasible))
        least = most if policy["cardinality"] == "exact" else 0
        return size, list(best_subset(tree, view, size, feasible, importance, least, most, rng)[1])
    options: list[tuple[float, int, tuple[int, ...]]] = [(0.0, 0, ())]
    for n in range(1, size + 1):
        feasible, _, _, importance = importances(tree, view, n)
        if len(feasible) >= n:
            total, subset = best_subset(tree, view, n, feasible, importance, n, n, rng)
            options.append((total, n, subset))
    _, n, subset = min(options)
    return n, list(subset)


def best_subset(
    tree: dict[str, Any],
    view: dict[str, Any],
    n: int,
    feasible: list[int],
    importance: dict[int, float],
    least: int,
    most: int,
    rng: random.Random,
) -> tuple[float, tuple[int, ...]]:
    """Of all subsets of least..most devices one with the smallest total; of equal totals a smallest set."""
    feasible = rng.sample(feasible, len(feasible))
    scores = {k: score(tree, view, k, n, importance[k]) for k in feasible}
    options = [s for size in range(least, most + 1) for s in combinations(feasible, size)]
    chosen = min(options, key=lambda s: (math.fsum(scores[k] for k in s), len(s)))
    return math.fsum(scores[k] for k in chosen), chosen


def admit(tree: dict[str, Any], f: list[float], ratio: list[float], chosen: list[int]) -> list[int]:
    """`paper`: drop the weakest late device until nobody is late. `largest`: try every subset."""
    P0 = received_w(tree)

    def late(k: int, n: int) -> bool:
        left = tree["system"]["round_s"] - tree["cpu"]["cycles"] / f[k]
        return left <= 0 or transmission_s(tree, n, P0 * ratio[k] / tree["radio"]["link_margin"]) > left

    if tree["radio"]["admission"] == "largest":
        subsets = [s for n in range(len(chosen) + 1) for s in combinations(chosen, n)]
        allowed = [s for s in subsets if not any(late(k, len(s)) for k in s)]
        return list(max(allowed, key=lambda s: (len(s), sorted((ratio[k] for k in s), reverse=True))))
    kept = list(chosen)
    while any(late(k, len(kept)) for k in kept):
        too_late = [k for k in kept if late(k, len(kept))]
        kept.remove(min(too_late, key=lambda k: (ratio[k], f[k])))
    return kept
