"""The paper's table in numbers, and the formulas against plain Python."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from builders import system
from hypothesis import given
from hypothesis import strategies as st

from feelstream.model import physics
from feelstream.scenario import Scenario


def test_the_papers_model_and_update() -> None:
    scenario = Scenario()
    assert scenario.radio.update_bits == 32 * 21840
    assert scenario.cpu.cycles == 600 * 32 * 21840


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
