"""Packet errors: the probability of a block, the number of repeats, what they cost, and that runs are re-checked."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from builders import devices_of, found_in, small, system, verified
from scipy.stats import nbinom, norm

import feelstream as fs
from feelstream.model import transmission
from feelstream.model.transmission import block_error, blocks, failures, sent_in_blocks

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
    once = transmission.transmit(of, ids, 1e9 * ones, ones, np.array([1.0, 0.2, 3.0, 1e-4]))
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
