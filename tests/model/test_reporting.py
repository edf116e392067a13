"""What the server asks and remembers: the slot for reports by hand; who delivers, by turns that came or did not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import system

from feelstream.model.energy import Core, Voltage
from feelstream.model.reporting import LONGEST_REST, Reliability, reporting, worst_case_j
from feelstream.resolved import Slot

# B = K bit/s·Hz at an SNR of 1: each of 4 devices has 1 Hz, and K P0 g/β / (B N0) = 1 gives log2(2) = 1 bit a second.
SYSTEM = system(
    4, bandwidth_hz=4.0, noise_w_per_hz=0.5, received_power_w=0.5, cycles=100.0, power_coefficient=1e-3, round_s=5.0
)
F_HZ, BETA = np.array([10.0, 20.0, 2.0, 10.0]), np.array([1.0, 2.0, 1.0, 4.0])
EVERYONE = np.ones(4, bool)


def slot_of(slot_s: float, cycles: float = 10.0, trains: bool = False) -> Slot:
    return Slot(slot_s=slot_s, cycles=cycles, bits=2.0, trains=trains, slow=False, least_fading=0.0, every=1)


def test_a_report_takes_and_costs_what_the_formulas_say() -> None:
    slot = slot_of(3.0)
    found = reporting(slot, SYSTEM, F_HZ, BETA, BETA, EVERYONE)
    assert found.answered.tolist() == [True, True, False, True]  # device 2: 10/2 s of computing
    sending_j = 0.5 / BETA * 2.0  # P0/β for 2 s
    computing_j = 1e-3 * 10.0 * F_HZ**2
    np.testing.assert_allclose(found.own_j, np.where(found.answered, computing_j + sending_j, 0.0))
    assert not found.training_j.any()
    np.testing.assert_array_equal(found.energy_j(np.array([0, 1])), found.own_j)


def test_who_is_not_asked_or_has_a_dead_channel_pays_nothing() -> None:
    gain = np.array([1.0, 0.0, 1.0, 4.0])
    asked = np.array([True, True, True, False])
    found = reporting(slot_of(3.0), SYSTEM, F_HZ, BETA, gain, asked)
    assert found.answered.tolist() == [True, False, False, False]
    assert (found.own_j > 0).tolist() == [True, False, False, False]


def test_the_gain_of_the_round_decides_about_time() -> None:
    """3 times the gain: log2(1 + 3) = 2 bits a second, so 1 s in place of 2 s."""
    slot = slot_of(2.5)
    assert not reporting(slot, SYSTEM, F_HZ, BETA, BETA, EVERYONE).answered[0]
    found = reporting(slot, SYSTEM, F_HZ, BETA, 3 * BETA, EVERYONE)
    assert found.answered[0]
    assert found.own_j[0] == pytest.approx(1e-3 * 10 * 100 + 0.5 * 1.0)


def test_training_is_charged_once() -> None:
    slot = slot_of(20.0, cycles=0.0, trains=True)
    found = reporting(slot, SYSTEM, F_HZ, BETA, BETA, EVERYONE)
    assert found.answered.tolist() == [True, True, False, True]  # device 2: 100/2 s
    trained_j = np.where(found.answered, 1e-3 * 100.0 * F_HZ**2, 0.0)
    np.testing.assert_allclose(found.energy_j(np.zeros(0, np.int64)), found.own_j + trained_j)
    trained_j[0] = 0.0  # scheduled: its training is in e_cmp_j
    np.testing.assert_allclose(found.energy_j(np.array([0])), found.own_j + trained_j)


def test_a_slow_report_leaves_time_for_the_training_it_takes() -> None:
    """Of 20 s, sending takes 2 and training 100/f: 8, 13 and 8 s are left for 10 cycles."""
    slow = slot_of(20.0, trains=True).model_copy(update={"slow": True})
    found = reporting(slow, replace(SYSTEM, frequency_hz=(0.1, 20.0)), F_HZ, BETA, BETA, EVERYONE)
    at_hz = 10.0 / np.array([8.0, 13.0, np.inf, 8.0])
    np.testing.assert_allclose(found.own_j, np.where(found.answered, 1e-3 * 10.0 * at_hz**2 + 0.5 / BETA * 2.0, 0.0))


@pytest.mark.parametrize("slow", [False, True])
def test_no_report_costs_more_than_the_worst_case_even_where_a_core_leaks(slow: bool) -> None:
    """With leakage, computing takes the most energy at the lowest frequency, not at the highest."""
    core = Core(dynamic_power_coefficient=1e9, frequency_hz=(4.0, 20.0), voltage_v=(0.5, 1.0))
    leaking = replace(SYSTEM, energy=Voltage(leakage_w=2.0), cores=(core,), frequency_hz=(4.0, 20.0))
    slot, rng = slot_of(9.0).model_copy(update={"slow": slow, "least_fading": 0.2}), np.random.default_rng(3)
    ahead_j = worst_case_j(slot, leaking, np.full(4, 20.0), BETA, 4.0)
    costs_j = []
    for _ in range(500):
        f_hz, gain = rng.uniform(4.0, 20.0, 4), BETA * rng.exponential(1.0, 4)
        own_j = reporting(slot, leaking, f_hz, BETA, gain, EVERYONE).own_j
        assert (own_j <= worst_case_j(slot, leaking, f_hz, BETA) * (1 + 1e-12)).all()
        costs_j.append(own_j / ahead_j)
    assert 0.7 < np.max(costs_j) <= 1 + 1e-12


ONE, ALL = np.array([0]), np.ones(2, bool)


def turns(*arrived: bool) -> Reliability:
    """Device 0 has these turns, in rounds 1, 2, …; device 1 has none."""
    found = Reliability.first(2)
    for round, came in enumerate(arrived, start=1):
        found = found.after(round, ONE, np.array([came]))
    return found


@pytest.mark.parametrize(
    ("arrived", "expected"),
    [
        ((True, True), 1.0),
        ((False,), 1 / 2),
        ((False, False), 1 / 2.9),
        ((True, False), 1.9 / 2.9),
        ((False, True), 2 / 2.9),
    ],
)
def test_the_posterior_forgets(arrived: tuple[bool, ...], expected: float) -> None:
    assert turns(*arrived).expected[0] == pytest.approx(expected)
    assert turns(*arrived).expected[1] == 1.0


def test_rests_double_and_end_with_a_probe_or_a_success() -> None:
    rests = [int(turns(*[False] * n).rests_until[0]) - n for n in range(1, 9)]
    assert rests == [1, 2, 4, 8, 16, 32, LONGEST_REST, LONGEST_REST]
    assert turns(False, False, True).rests_until[0] == 0
    failed_once = turns(False)
    assert [failed_once.ready(ALL, t).tolist() for t in (2, 3)] == [[False, True], [True, True]]


def test_nobody_rests_where_nobody_else_is_left() -> None:
    alone = np.array([True, False])
    assert turns(False).ready(alone, 2).tolist() == alone.tolist()


def test_one_who_failed_often_is_trusted_again_after_a_while() -> None:
    assert turns(*[False] * 10, *[True] * 20).expected[0] > 0.9
