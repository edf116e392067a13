"""What a scenario says of each device and of the system, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from feelstream.arrays import Reals
from feelstream.model import physics
from feelstream.model.system import System
from feelstream.scenario.population import Population, known_number
from feelstream.scenario.profiles import check_ranges, range_hz, with_numbers

if TYPE_CHECKING:
    from feelstream.scenario.settings import Scenario


def population_of(scenario: Scenario) -> Population:
    """The constants of every device."""

    def everyone(value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, float), scenario.system.devices)

    cpu = scenario.cpu
    low_hz, high_hz = range_hz(cpu.frequency_hz, cpu.profile)
    population = with_numbers(scenario.devices, cpu.frequency_hz, cpu.profile).applied_to(
        Population(
            cycles=everyone(known_number("cpu.cycles", scenario.cpu.cycles)),
            energy_budget_j=everyone(scenario.system.energy_budget_j),
            frequency_low_hz=everyone(low_hz),
            frequency_high_hz=everyone(high_hz),
            gain_low_db=everyone(scenario.radio.gain_db[0]),
            gain_high_db=everyone(scenario.radio.gain_db[1]),
            arrivals=everyone(1.0),
            priority=everyone(1.0),
            deadline_s=everyone(scenario.system.round_s),
            power_max_w=everyone(np.inf if scenario.radio.power_max_w is None else scenario.radio.power_max_w),
            download_bit_per_s=everyone(scenario.costs.download_bit_per_s),
        )
    )
    check_ranges(population)
    return population


def system_of(scenario: Scenario, classes: int) -> System:
    """The constants that a server knows, as plain numbers and arrays."""
    population, slot = scenario.population, scenario.reports.slot(scenario.policy)
    before_s = slot.slot_s if slot else 0.0
    download_s = scenario.costs.download_bits / _one_if_alike(population.download_bit_per_s)
    return System(
        devices=scenario.system.devices,
        rounds=scenario.system.rounds,
        classes=classes,
        round_s=scenario.system.round_s - before_s,
        energy_budget_j=population.energy_budget_j,
        cycles=scenario.costs.cycles_per_sample or _one_if_alike(population.cycles),
        power_coefficient=scenario.cpu.power_coefficient,
        frequency_hz=(float(population.frequency_low_hz.min()), float(population.frequency_high_hz.max())),
        bandwidth_hz=scenario.radio.bandwidth_hz,
        noise_w_per_hz=scenario.radio.noise_w_per_hz,
        received_power_w=physics.watts(scenario.radio.received_power_dbm),
        rate_discount=scenario.radio.rate_discount,
        link_margin=scenario.radio.link_margin,
        admission=scenario.radio.admission,
        update_bits=known_number("radio.update_bits", scenario.radio.update_bits),
        eligible=scenario.data.eligible,
        empty_used=scenario.data.empty_used,
        empty_fresh=scenario.data.empty_fresh,
        priority=_one_if_alike(population.priority),
        energy=scenario.cpu.energy,
        cores=scenario.profiles.cores,
        core=scenario.profiles.which if scenario.profiles.cores else None,
        deadline_s=_one_if_alike(population.deadline_s) - before_s,
        download_s=_one_if_alike(download_s),
        download_j=_one_if_alike(scenario.costs.receive_power_w * download_s),
        power_max_w=_one_if_alike(population.power_max_w),
        cycles_per_sample=scenario.costs.cycles_per_sample,
        reports=slot,
        block_bits=scenario.radio.block_bits,
        code_overhead=scenario.radio.code_overhead,
    )


def _one_if_alike(values: float | Reals) -> float | Reals:
    """The number that all devices share, or (K,); one that was spread over all of them is not compared again."""
    if not isinstance(values, np.ndarray):
        return values
    return float(values[0]) if values.strides == (0,) or (values == values[0]).all() else values
