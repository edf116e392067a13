"""Sending updates: admission against brute force and the paper's loop; packet errors, and what repeats cost."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import devices_of, found_in, small, system, verified
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nbinom, norm

import feelstream as fs
from feelstream.model.system import System
from feelstream.model.transmission import (
    admit_largest,
    admit_paper,
    block_error,
    blocks,
    failures,
    sent_in_blocks,
    transmit,
)  # fmt: skip

# An update takes between 4 ms and seconds, depending on who shares the band: the deadline cuts everywhere.
RATIOS = st.sampled_from([0.0, 1e-7, 8e-5, 1e-4, 1e-2, 0.3, 1.0, 4.0])
LEFT = st.sampled_from([-1.0, 0.0, 0.002, 0.004, 0.02, 0.1, 2.0])
DEVICES = st.lists(st.tuples(RATIOS, LEFT), min_size=0, max_size=7)
SYSTEMS = st.sampled_from([{}, {"link_margin": 1.0}, {"bandwidth_hz": 1e6, "received_power_w": 2.5e-7}])


def late(n: int, ratio: float, left_s: float, of: System) -> bool:
    """The rule as the model states it, for one device."""
    if left_s <= 0:
        return True
    snr = n * of.received_power_w * ratio / of.link_margin / (of.bandwidth_hz * of.noise_w_per_hz)
    rate = of.bandwidth_hz / n * math.log2(1 + snr)
    return rate == 0 or of.update_bits / rate > left_s


def paper_loop(devices: list[tuple[float, float]], of: System) -> list[int]:
    kept = list(range(len(devices)))
    while any(late(len(kept), *devices[k], of) for k in kept):
        tardy = [k for k in kept if late(len(kept), *devices[k], of)]
        kept.remove(min(tardy, key=lambda k: devices[k]))  # least |g|²/β, then least time left
    return kept


def admitted(rule: Any, devices: list[tuple[float, float]], of: System) -> np.ndarray:
    ratio, left_s = np.array(devices, float).reshape(-1, 2).T
    return rule(ratio, left_s, of, np.full(len(devices), of.update_bits))


@given(DEVICES, SYSTEMS)
def test_paper_follows_the_loop(devices: list[tuple[float, float]], changes: dict[str, Any]) -> None:
    of = system(**changes)
    found = [devices[k] for k in np.flatnonzero(admitted(admit_paper, devices, of))]
    assert sorted(found) == sorted(devices[k] for k in paper_loop(devices, of))


@given(DEVICES, SYSTEMS)
def test_largest_against_all_subsets(devices: list[tuple[float, float]], changes: dict[str, Any]) -> None:
    of = system(**changes)
    kept = np.flatnonzero(admitted(admit_largest, devices, of))
    assert not any(late(len(kept), *devices[k], of) for k in kept)
    larger = combinations(devices, len(kept) + 1)
    assert all(any(late(len(chosen), *device, of) for device in chosen) for chosen in larger)


def test_the_case_in_which_paper_keeps_one_and_largest_two() -> None:
    devices = [(8e-5, 0.02), (1e-4, 0.004), (1.0, 2.0)]
    assert admitted(admit_paper, devices, system()).tolist() == [False, False, True]
    assert admitted(admit_largest, devices, system()).tolist() == [True, False, True]


def test_of_equally_large_sets_the_strongest_channels_are_kept() -> None:
    of = system(bandwidth_hz=1e6, received_power_w=2.5e-7)
    ratio = np.array([3.0, 9.0, 5.0, 7.0])
    kept = admitted(admit_largest, [(each, 0.6) for each in ratio], of)
    assert 0 < kept.sum() < 4
    assert ratio[kept].min() > ratio[~kept].max()


@given(
    st.lists(st.tuples(st.floats(2e7, 2e9), st.floats(0.3, 2), st.floats(0, 5)), max_size=6),
    st.sampled_from(["paper", "largest"]),
    SYSTEMS,
)
def test_what_a_transmission_costs(
    devices: list[tuple[float, float, float]], rule: str, changes: dict[str, Any]
) -> None:
    of = system(admission=rule, **changes)
    f_hz, beta, fade = (np.array([device[i] for device in devices], float) for i in range(3))
    spent = transmit(of, np.arange(len(devices)), f_hz, beta, gain=beta * fade)
    n = int(spent.sent.sum())
    assert spent.bandwidth_share.sum() == pytest.approx(1 if n else 0)
    for k, (f, b, r) in enumerate(devices):
        assert spent.e_cmp_j[k] == pytest.approx(of.power_coefficient * of.cycles[k] * f * f)
        if not spent.sent[k]:
            assert spent.e_tr_j[k] == spent.t_tr_s[k] == spent.power_w[k] == 0
            continue
        power = of.received_power_w / b
        rate = of.bandwidth_hz / n * math.log2(1 + n * power * b * r / (of.bandwidth_hz * of.noise_w_per_hz))
        assert spent.e_tr_j[k] == pytest.approx(power * of.update_bits / rate)
        assert spent.t_cmp_s[k] + spent.t_tr_s[k] <= of.round_s * (1 + 1e-9)  # the true deadline


@pytest.mark.parametrize("n", [2, 4])
def test_the_papers_table_drops_about_one_device_in_a_hundred_thousand(n: int) -> None:
    """P(late) = 1 − exp(−r*), r* the least ratio that is on time, averaged over the feasible CPU frequencies."""
    of = system()

    def least_ratio(f_hz: Any) -> Any:
        left_s = of.round_s - of.cycles[0] / f_hz
        noise = of.bandwidth_hz * of.noise_w_per_hz / (n * of.received_power_w)
        return of.link_margin * (2 ** (of.update_bits * n / (of.bandwidth_hz * left_s)) - 1) * noise

    slowest, fastest = of.cycles[0] / (of.round_s - of.surrogate_time_s(n)), of.frequency_hz[1]
    late_share = -np.expm1(-least_ratio(np.linspace(slowest, fastest, 10**6))).mean()
    assert 3e-6 < late_share < 3e-5


def test_the_stress_setting_is_bound_by_the_radio() -> None:
    of = fs.preset("stress").known_system(10)
    assert 4 * of.received_power_w / (of.bandwidth_hz * of.noise_w_per_hz) == pytest.approx(10, rel=1e-3)  # 10 dB
    assert of.surrogate_time_s(4) == pytest.approx(0.8, rel=0.02)


# Sending takes most of a round of 1 s, and admission leaves no margin: little time to repeat anything.
NARROW = (
    "radio.bandwidth_hz=1e6", "radio.received_power_dbm=-36.0", "radio.link_margin=1.0", "system.round_s=1.0",
    "system.energy_budget_j=0.2", "radio.block_bits=2e4",
)  # fmt: skip


def test_a_block_fails_by_the_normal_approximation() -> None:
    """At γ = 3: C = 2 bits, V = (15/16)/ln²2 per use; more redundancy, or longer blocks at one rate, fail less."""
    uses, bits = np.array([500.0]), 950.0
    margin = 500 * 2 - bits + 0.5 * np.log2(500)
    expected = norm.sf(margin / np.sqrt(500 * 15 / 16 / np.log(2) ** 2))
    assert block_error(uses, bits, np.array([3.0]))[0] == pytest.approx(expected)
    assert block_error(4 * uses, 4 * bits, np.array([3.0]))[0] < expected
    assert block_error(uses, 1000.0, np.array([3.0]))[0] == pytest.approx(0.45, abs=0.05)  # at capacity: nearly half
    assert block_error(uses, bits, np.array([0.0]))[0] == 1.0


def test_failures_are_the_quantile_of_the_negative_binomial_law() -> None:
    lot, error = np.linspace(0.001, 0.999, 41), 0.2
    found = failures(lot, 30, np.full(41, error), np.full(41, 1000))
    assert found.tolist() == nbinom.ppf(lot, 30, 1 - error).astype(int).tolist()
    assert failures(lot, 30, np.full(41, error), np.full(41, 3)).max() == 4  # more than there is time for
    assert failures(lot, 30, np.ones(41), np.full(41, 5)).tolist() == [6] * 41
    assert not failures(lot, 30, np.zeros(41), np.zeros(41, int)).any()


def test_repeats_take_whole_blocks_of_time_and_energy_until_the_deadline() -> None:
    of = system(4, block_bits=1e4, code_overhead=0.02, round_s=0.5)
    ids, ones = np.arange(4), np.ones(4)
    once = transmit(of, ids, 1e9 * ones, ones, np.array([1.0, 0.2, 3.0, 1e-4]))
    lots = np.array([1e-9, 0.5, 1 - 1e-9, 0.5])
    found = sent_in_blocks(of, ids, np.array([1.0, 0.2, 3.0, 1e-4]), once, lots)
    m = blocks(of.update_bits, 1e4, 0.02)
    assert m == 69
    sent = once.sent
    repeats = (found.t_tr_s - once.t_tr_s)[sent] / (once.t_tr_s[sent] / m)
    assert repeats == pytest.approx(np.rint(repeats))
    assert found.t_tr_s[0] == once.t_tr_s[0]  # the luckiest of all lots
    assert (found.t_cmp_s + found.t_tr_s <= 0.5 * (1 + 1e-9)).all()
    assert found.e_tr_j == pytest.approx(found.power_w * found.t_tr_s)
    assert found.arrived.tolist() == (found.sent & ~found.lost).tolist()  # type: ignore[operator]


def run_of(policy: str, *more: str) -> fs.Run:
    return fs.simulate(small(*NARROW, "radio.code_overhead=0.0", f"policy.name={policy}", *more), seed=2)


@pytest.mark.parametrize("policy", ["lyapunov", "ocean", "fedcs", "representative"])
def test_lost_updates_are_paid_for_and_not_used(policy: str) -> None:
    run = run_of(policy)
    table = devices_of(run)
    lost = table.filter("lost")
    assert lost.height
    assert not lost["transmitted"].any()
    assert (lost["e_tr_j"] > 0).all()
    assert run.rounds["transmitted"].sum() == table["transmitted"].sum()
    after = table.join(lost.select("device", round=pl.col("round") + 1, before="used_labels"), on=["device", "round"])
    assert after["used_labels"].to_list() == after["before"].to_list()
    verified(run)


def test_a_changed_loss_is_found() -> None:
    half_a_block = pl.col("t_tr_s") * (1 + 0.5 / 100)
    for changed in (half_a_block.alias("t_tr_s"), (pl.col("lost") | pl.col("transmitted")).alias("lost")):
        assert found_in(run_of("lyapunov"), changed).field in ("t_tr_s", "lost")


def test_more_overhead_loses_less() -> None:
    few, many = (devices_of(run_of("random", f"radio.code_overhead={o}")) for o in (0.001, 0.5))
    assert few["lost"].sum() > many["lost"].sum()
