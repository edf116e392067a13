"""The paper's table in numbers, formulas against plain Python; energy laws by hand, profiles of the package."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import small, system
from hypothesis import given
from hypothesis import strategies as st

from feelstream.errors import ScenarioError
from feelstream.model import physics
from feelstream.model.energy import Core, Cpus, Voltage
from feelstream.scenario.profiles import core, our_cores


def test_the_slowest_cpu_that_can_meet_the_papers_deadline() -> None:
    of = system()
    assert physics.compute_time_s(float(of.cycles[0]), 0.1048e9) == pytest.approx(of.round_s, rel=1e-3)


@pytest.mark.parametrize(("n", "time_s", "energy_j"), [(2, 3.6e-3, 2.3e-3), (4, 6.9e-3, 4.4e-3)])
def test_the_papers_surrogate_time_and_energy(n: int, time_s: float, energy_j: float) -> None:
    of = system()
    assert of.surrogate_time_s(n) == pytest.approx(time_s, rel=0.01)
    assert of.received_power_w * of.surrogate_time_s(n) == pytest.approx(energy_j, rel=0.02)  # β = 1


def test_computing_dominates_energy_a_hundred_to_one() -> None:
    of = system()
    low, high = of.frequency_hz
    computing = of.power_coefficient * of.cycles[0] * (high**3 - low**3) / (3 * (high - low))  # mean of λ c f²
    assert 50 < computing / (of.received_power_w * of.surrogate_time_s(2)) < 200


@given(
    n=st.integers(1, 1000),
    power=st.floats(1e-9, 1e3),
    bandwidth=st.floats(1e3, 1e9),
    noise=st.floats(1e-20, 1e-8),
    discount=st.floats(0.1, 2),
    bits=st.floats(1, 1e9),
)
def test_rates_and_times(n: int, power: float, bandwidth: float, noise: float, discount: float, bits: float) -> None:
    snr = n * power / (bandwidth * noise)
    rate = bandwidth / n * math.log1p(snr) / math.log(2)
    assert physics.rate_bit_per_s(n, np.array([power]), bandwidth, noise)[0] == pytest.approx(rate)
    of = replace(
        system(), received_power_w=power, bandwidth_hz=bandwidth, noise_w_per_hz=noise, rate_discount=discount,
        update_bits=bits,
    )  # fmt: skip
    assert of.surrogate_time_s(n) == pytest.approx(bits / (discount * rate))


def test_a_rate_of_nothing_takes_for_ever() -> None:
    assert replace(system(), received_power_w=1e-300, noise_w_per_hz=1e100).surrogate_time_s(1) == math.inf


MADE_UP = Core(dynamic_power_coefficient=100.0, frequency_hz=(1e9, 2e9), voltage_v=(0.5, 1.0), leakage_w=0.2)
CPUS = Cpus(1e-27, (MADE_UP,), None)
CYCLES = np.full(6, 1e9)
AT_HZ = np.array([5e8, 1e9, 1.5e9, 1.5e9, 2e9, 3e9])


def test_voltage_by_hand() -> None:
    """10⁹ cycles at 100 pF take 0.1 J/V²; leakage goes on for 1e9/f seconds."""
    volts = np.array([0.5, 0.5, 0.75, 0.75, 1.0, 1.0])
    leaking = 0.2 * 1e9 / AT_HZ
    assert Voltage().energy_j(CPUS, CYCLES, AT_HZ) == pytest.approx(0.1 * volts**2 + leaking)
    assert Voltage(leakage_w=0.0).energy_j(CPUS, CYCLES, AT_HZ) == pytest.approx(0.1 * volts**2)
    next_higher = np.array([0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
    assert Voltage(points="discrete").energy_j(CPUS, CYCLES, AT_HZ) == pytest.approx(0.1 * next_higher**2 + leaking)


def test_profiles_are_those_of_real_cores() -> None:
    """At least eight, each with its source, and with powers that a core of a phone or a small board can have."""
    assert len(our_cores()) >= 8
    for name, each in our_cores().items():
        assert each.core, name
        assert each.source, name
        assert all(
            ": " in line and line.startswith(("arch/arm/boot/dts/", "arch/arm64/boot/dts/")) for line in each.source
        )
        highest_w = each.capacitance_f * each.frequency_hz[-1] * each.voltage_v[-1] ** 2
        assert 0.05 < highest_w < 5, name
        assert 1.3 < (each.voltage_v[-1] / each.voltage_v[0]) ** 2 < 5, name


def test_a_profile_in_numbers() -> None:
    """rk3399.dtsi, cluster1_opp: 408 MHz at 825 mV, 1.8 GHz at 1.2 V; rk3399-base.dtsi: 436 µW/(MHz·V²)."""
    a72 = core("rk3399-a72")
    assert (a72.frequency_hz[0], a72.voltage_v[0]) == (408e6, 0.825)
    assert (a72.frequency_hz[-1], a72.voltage_v[-1]) == (1800e6, 1.2)
    assert a72.capacitance_f == pytest.approx(436e-12)


def test_a_core_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("dynamic_power_coefficient = 200\nfrequency_hz = [4e8, 1.6e9]\nvoltage_v = [0.8, 1.1]\n")
    scenario = small("cpu.energy.kind=voltage", f"cpu.profile={file}")
    energy = scenario.known_system(10).compute_energy_j(np.full(scenario.system.devices, 4e8))
    assert energy == pytest.approx(float(scenario.population.cycles[0]) * 200e-12 * 0.64)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("frequency_hz = [1e9]\nvoltage_v = [1.0, 1.1]", "must be as many as the 1 frequencies, not 2"),
        ("frequency_hz = [2e9, 1e9]\nvoltage_v = [1.0, 1.1]", "each must be above the one before"),
        ("frequency_hz = [1e9, 2e9]\nvoltage_v = [1.1, 1.0]", "none may be below the one before"),
        ("frequency_hz = ", "is not a TOML file"),
    ],
)
def test_what_a_file_may_not_say(table: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"dynamic_power_coefficient = 200\n{table}\n")
    with pytest.raises(ScenarioError, match=sentence):
        small("cpu.energy.kind=voltage", f"cpu.profile={file}")
