"""What single devices have and spend, read from run.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from feelstream.errors import RunError
from feelstream.verification.findings import Array
from feelstream.verification.promises import Promises
from feelstream.verification.section import Section
from feelstream.verification.stored import Costs, StoredSettings

POWER = "receive_power_w"


def usual_constants(scenario: Section, of_profiles: tuple[Array, Array]) -> dict[str, Array]:
    """The constants of the devices [K], as they are where neither a class nor a table says otherwise.

    of_profiles: the ends of the range of frequencies where it is that of the profile.
    """
    system, cpu, radio = scenario["system"], scenario["cpu"], scenario["radio"]
    K, costs = system["devices"].whole(), _costs(scenario)
    own_range = cpu["frequency_hz"].tree == "profile"
    low_hz, high_hz = of_profiles if own_range else (item.positive() for item in cpu["frequency_hz"].items(2))
    low_db, high_db = (item.decibels() for item in radio["gain_db"].items(2))
    return {
        "cycles": np.full(K, cpu["cycles"].positive()),
        "energy_budget_j": budget_of(system["energy_budget_j"], K),
        "frequency_low_hz": np.full(K, 1.0) * low_hz,
        "frequency_high_hz": np.full(K, 1.0) * high_hz,
        "gain_low_db": np.full(K, low_db),
        "gain_high_db": np.full(K, high_db),
        "priority": np.ones(K),
        "deadline_s": np.full(K, system["round_s"].positive()),
        "power_max_w": np.full(K, limit.positive() if (limit := radio.get("power_max_w")) else np.inf),
        "download_bit_per_s": np.full(K, rate.positive() if (rate := costs.get("download_bit_per_s")) else 1.0),
    }


def budget_of(budget: Section, K: int) -> Array:
    """E^avg [K]: one number for all, or one each."""
    many = isinstance(budget.tree, list)
    return np.array([item.number() for item in budget.items(K)] if many else [budget.number()] * K)


def _costs(scenario: Section) -> Section:
    """The table [costs]; runs from before there was one have none."""
    return scenario.get("costs") or Section({}, "costs")


def costs_of(scenario: Section, population: dict[str, Array], slot_s: float, promises: Any) -> Costs:
    """Of the population that classes and table leave; deadlines count from the end of the slot for reports."""
    table = _costs(scenario)
    bits, power_w = (field.number() if (field := table.get(name)) else 0.0 for name in ("download_bits", POWER))
    if bits < 0 or power_w < 0:
        raise RunError(f"run.json: costs.download_bits and costs.{POWER} must be at least 0.")
    download_s = bits / population["download_bit_per_s"]
    columns = (population["deadline_s"] - slot_s, download_s, power_w * download_s, population["power_max_w"])
    alike = (float(each[0]) if (each == each[0]).all() else each for each in columns)
    block_bits, overhead = (
        max(given.number(), 0.0) if (given := scenario["radio"].get(name)) else 0.0
        for name in ("block_bits", "code_overhead")
    )
    per_sample = max(cycles_per_sample(scenario), 0.0)
    own = "of_settings" not in Promises.of("cost_rules", table.plain("rule"), promises)
    return Costs(*alike, block_bits=block_bits, code_overhead=overhead, cycles_per_sample=per_sample, own=own)


def of_block(s: StoredSettings, block: Mapping[str, Array]) -> StoredSettings:
    """The settings with what the rounds of a block cost each device, [R, K], where that is no constant."""
    if s.costs.own:
        down_s, down_j = block["cost_down_s"], block["cost_down_j"]
        costs = replace(s.costs, download_s=down_s, download_j=down_j)
        return replace(s, cycles=block["cost_cycles"], update_bits=block["cost_bits"], costs=costs)
    if s.costs.cycles_per_sample:  # c = c_1·|S_k|, at least that of one sample
        return replace(s, cycles=s.costs.cycles_per_sample * np.maximum(block["stored"], 1))
    return s


def cycles_per_sample(scenario: Section) -> float:
    given = _costs(scenario).get("cycles_per_sample")
    return given.number() if given else 0.0
