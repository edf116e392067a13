"""What the settings of a run come to, worked out a second time from the scenario's table alone, for plug-ins of ours.

Tests compare it with what runs state (`resolved` in run.json and constants.parquet). It shares no code with that.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

BY_SCORE = ("age", "best_channel", "proportional_fair", "greedy_energy", "importance_greedy")
FEWER = ("select_all", "fedcs", "balanced_joint")  # may plan for as few as one
OWN_SHARES = ("lyapunov_joint", "balanced_joint", "ocean")
ASKS = {"update_norm": True, "gradient_norm": False}  # whether devices train for their reports
PLACES = 20.0
# Columns of the population, and which end of which range a class gives for it.
COLUMNS: dict[str, tuple[str, int | None]] = {
    "cycles": ("cycles", None),
    "energy_budget_j": ("energy_budget_j", None),
    "frequency_low_hz": ("frequency_hz", 0),
    "frequency_high_hz": ("frequency_hz", 1),
    "gain_low_db": ("gain_db", 0),
    "gain_high_db": ("gain_db", 1),
    "priority": ("priority", None),
    "deadline_s": ("deadline_s", None),
    "power_max_w": ("power_max_w", None),
    "download_bit_per_s": ("download_bit_per_s", None),
}


def second(
    scenario: dict[str, Any], classes: int | None, changes: Any = (), cores: Any = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(resolved but for `alike` and the budgets of phases, the constants [K] by column of constants.parquet)."""
    system, radio, cpu, policy = (scenario[name] for name in ("system", "radio", "cpu", "policy"))
    data, costs, world = scenario["data"], scenario.get("costs", {}), scenario.get("world", {})
    K, name = system["devices"], policy["name"]
    slot_s = scenario["reports"]["slot_s"] if name in ASKS else 0.0
    names, which = _profiles(scenario.get("devices", {}), cpu.get("profile"), K)
    ends = _ends(names, which, cores)
    of = _population(scenario, ends, system["energy_budget_j"])
    harvest, mobility = world.get("harvest", {}), world.get("mobility", {})
    if mobility.get("kind") == "random_direction":
        low, high = (
            mobility["gain_1m_db"] - 10 * mobility["exponent"] * math.log10(metres)
            for metres in (mobility["radius_m"], min(mobility["nearest_m"], mobility["radius_m"]))
        )
        of |= {"gain_low_db": np.full(K, low), "gain_high_db": np.full(K, high)}
    download_s = costs.get("download_bits", 0.0) / of["download_bit_per_s"]
    per_sample = costs.get("cycles_per_sample", 0.0)
    voltage = cpu.get("energy", {}).get("kind") == "voltage"
    constants = {
        "cycles": np.full(K, per_sample) if per_sample else of["cycles"],
        "frequency_low_hz": of["frequency_low_hz"],
        "frequency_high_hz": of["frequency_high_hz"],
        "beta_low": 10 ** (of["gain_low_db"] / 10),
        "beta_high": 10 ** (of["gain_high_db"] / 10),
        "deadline_s": of["deadline_s"] - slot_s,
        "download_s": download_s,
        "download_j": costs.get("receive_power_w", 0.0) * download_s,
        "power_max_w": of["power_max_w"],
        "priority": of["priority"],
        "core": which if voltage else np.zeros(K),
    }
    phases = []
    budget, V, size = system["energy_budget_j"], policy.get("V"), policy["size"]
    for first in sorted({1, *(change["round"] for change in changes)}):
        for change in changes:
            if change["round"] == first:
                budget = change["value"] if change["field"] == "system.energy_budget_j" else budget
                V = change["value"] if change["field"] == "policy.V" else V
                size = change["value"] if change["field"] == "policy.size" else size
        constants["energy_budget_j" if first == 1 else f"energy_budget_j_from_{first}"] = budget_j = _population(
            scenario, ends, budget
        )["energy_budget_j"]
        weight = PLACES * (budget_j.sum() / size) ** 2 if V == "auto" else None if V is None else float(V)
        fewer = name in FEWER or policy.get("cardinality") == "free"
        phases.append(
            {"first": first, "V": weight, "auto": V == "auto", "size": size, "smallest_plan": 1 if fewer else size}
        )
    buffer, features = data.get("buffer", {}), data.get("features", {})
    keeps = buffer.get("kind", "keep") in ("keep", "use_once")
    kind, noise, every = features.get("kind", "labels"), features.get("noise", 0.0), features.get("every", 1)
    told = kind != "labels" or noise > 0 or every > 1
    size = features["cells"] if kind == "sketch" else classes or 1
    numbers = (name in ASKS) + (told and size * (1 if keeps and kind != "outputs" else 2))
    reports, slot = scenario.get("reports", {}), None
    if numbers:
        slot = {field: reports[field] for field in ("slot_s", "cycles", "least_fading")} | {
            "bits": reports["bits"] * numbers,
            "trains": ASKS.get(name, False),
            "slow": reports["pace"] == "slow",
            "every": 1 if name in ASKS else every,
        }
    limit = policy.get("power_max_w")
    return {
        "devices": K,
        "rounds": system["rounds"],
        "round_s": system["round_s"] - slot_s,
        "period_s": system["round_s"],
        "signed_queues": system.get("queue") == "signed",
        "cycles_per_sample": per_sample,
        "radio": {
            **{field: radio[field] for field in ("bandwidth_hz", "noise_w_per_hz", "fading", "rate_discount")},
            **{field: radio[field] for field in ("link_margin", "admission", "update_bits")},
            "received_power_w": 10 ** (radio["received_power_dbm"] / 10) / 1000,
            "block_bits": radio.get("block_bits", 0.0),
            "code_overhead": radio.get("code_overhead", 0.0),
        },
        "slot": slot,
        "law": {
            "kind": "voltage" if voltage else "cubic",
            "power_coefficient": cpu["power_coefficient"],
            "discrete": voltage and cpu["energy"]["points"] == "discrete",
            "cores": [_core(cores[each], cpu["energy"].get("leakage_w")) for each in names] if voltage else [],
        },
        "data": {
            "classes": classes,
            **{field: data[field] for field in ("eligible", "empty_used", "empty_fresh", "fresh")},
            "keeps": keeps,
            "empties_on_use": buffer.get("kind") == "use_once",
            "most_held": buffer.get("capacity") if buffer.get("kind") in ("fifo", "reservoir") else None,
            "passes": False,
        },
        "features": {"size": size, "reference": None, "noise": noise, "of_model": kind == "outputs"} if told else None,
        "world": {
            "comes_and_goes": world.get("availability", {}).get("kind", "always") != "always",
            "moves": mobility.get("kind", "static") != "static",
            "fails": world.get("faults", {}).get("kind", "none") != "none",
            "battery_j": harvest.get("capacity_j"),
            "charge_j": harvest.get("start", 0.0) * harvest.get("capacity_j", 0.0),
        },
        "policy": {
            "name": name,
            "equal_shares": name not in OWN_SHARES,
            "by_score": name in BY_SCORE or (name == "lyapunov" and policy.get("cardinality", "exact") == "exact"),
            "asks": name in ASKS,
            "metric": policy.get("metric", "combined"),
            **{field: policy.get(field) for field in ("cardinality", "gain", "power", "pace", "least_share")},
            "power_max_w": limit if limit and math.isfinite(limit) else None,
        },
        "learning": {
            "learns": scenario["learning"]["engine"] != "none",
            "eval_every": scenario["learning"]["eval_every"],
            "evaluators": list(scenario["learning"].get("evaluators", ["test"])),
        },
        "trace": scenario["trace"]["level"],
        "phases": phases,
        "own": ["policy"] if ":" in name else [],
    }, constants


def whole(scenario: dict[str, Any], classes: int | None) -> dict[str, Any]:
    """All of it as in run.json, of a scenario whose devices are alike, but for their budgets: and those [K], if so."""
    found, constants = second(scenario, classes)
    found["alike"] = {name: float(each[0]) for name, each in constants.items() if name != "energy_budget_j"}
    budget_j = constants["energy_budget_j"]
    found["phases"][0]["energy_budget_j"] = float(budget_j[0]) if (budget_j == budget_j[0]).all() else None
    return found


def _population(scenario: dict[str, Any], ends: tuple[np.ndarray, np.ndarray], budget: Any) -> dict[str, np.ndarray]:
    """[K] each: what all have, then what classes say, then the table."""
    system, radio, cpu, costs = scenario["system"], scenario["radio"], scenario["cpu"], scenario.get("costs", {})
    K, devices = system["devices"], scenario.get("devices", {})
    low_hz, high_hz = ends if cpu["frequency_hz"] == "profile" else cpu["frequency_hz"]
    usual = {
        "cycles": cpu["cycles"],
        "energy_budget_j": budget,
        "frequency_low_hz": low_hz,
        "frequency_high_hz": high_hz,
        "gain_low_db": radio["gain_db"][0],
        "gain_high_db": radio["gain_db"][1],
        "priority": 1.0,
        "deadline_s": system["round_s"],
        "power_max_w": radio.get("power_max_w") or math.inf,
        "download_bit_per_s": costs.get("download_bit_per_s") or 1.0,
    }
    found = {name: np.array(np.broadcast_to(np.asarray(value, float), K)) for name, value in usual.items()}
    first, total = 0, 0.0
    for each in devices.get("classes") or []:
        total += each["share"]
        end = round(total * K)
        for name, (field, which) in COLUMNS.items():
            value = each.get(field)
            if value == "profile" and which is not None:
                found[name][first:end] = ends[which][first:end]
            elif value is not None:
                found[name][first:end] = value if which is None else value[which]
        first = end
    if devices.get("table"):
        path = Path(devices["table"])
        table = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
        for name in COLUMNS.keys() & set(table.columns):
            found[name][table["device"].to_numpy()] = table[name].to_numpy()
    return found


def _profiles(devices: dict[str, Any], usual: str | None, K: int) -> tuple[list[str], np.ndarray]:
    """The profiles of CPU cores that occur, "" for none, and which of them each device has [K]."""
    names, which, first, total = [usual or ""], np.zeros(K, int), 0, 0.0
    for each in devices.get("classes") or []:
        total += each["share"]
        name, end = each.get("profile") or names[0], round(total * K)
        if name not in names:
            names.append(name)
        which[first:end] = names.index(name)
        first = end
    used, which = np.unique(which, return_inverse=True)
    return [names[number] for number in used], which


def _ends(names: list[str], which: np.ndarray, cores: Any) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest operating point of every device, [K] each; NaN without a profile."""
    points = [cores[name]["frequency_hz"] if name else (np.nan,) for name in names]
    low, high = np.array([(each[0], each[-1]) for each in points], float).T
    return low[which], high[which]


def _core(core: dict[str, Any], leakage_w: float | None) -> dict[str, Any]:
    return {
        "frequency_hz": list(core["frequency_hz"]),
        "voltage_v": list(core["voltage_v"]),
        "capacitance_f": core["dynamic_power_coefficient"] * 1e-12,
        "leakage_w": core["leakage_w"] if leakage_w is None else leakage_w,
    }
