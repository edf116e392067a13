"""What devices measure, a second time: the estimates are replayed from the readings in the trace, and rounds that were
planned by them must have been planned by just those.

The logarithm of reading/model is averaged with weights 1, 0.9, 0.81, … from the last turn back, and with the weight
(0.3/τ)² for the middle of all devices; τ² is the mean square of how far devices are from that middle, each ln 10 at
most, with one device more that is just so far. A reading three standard deviations away waits for a second one like it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feelstream.verification.computing import energy_j
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage, close
from feelstream.verification.formulas import surrogate_time_s
from feelstream.verification.reading import ESTIMATES, Block
from feelstream.verification.settings import OUR_POLICIES, StoredSettings

NU, NU0, GAMMA, STALE = 0.3, np.log(10.0), 0.9, 32
FROM_ONE = ("select_all", "fedcs", "balanced_joint")  # these plan for as few devices as there are


def check_estimates(found: Findings, s: StoredSettings, block: Block) -> StoredSettings:
    """The settings with which these rounds were planned: cycles and law [R, K], as the stored plans have them."""
    if "plans_measured" not in s.facts:
        return s
    check, f_hz = found.at(Stage.INPUTS, block), block["f_hz"]
    prior_s, prior_j = s.cycles / f_hz, energy_j(s.law, s.cycles, f_hz)
    check.compare("t_cmp_prior_s", prior_s, "the prior of computing time is c/f")
    if s.law.known:
        check.compare("e_cmp_prior_j", prior_j, f"the prior of computing energy is {s.law.formula}")
    _check_trained(found, s, block)
    trained = np.where(block["scheduled"], block["trained_hz"], 1.0)
    time_x, time_sd, open_to = _replayed(block, "t", block["t_cmp_s"], s.cycles / trained, block["t_cmp_s_measured"])
    read = ~block.nulls["e_cmp_read_j"]
    energy_x, energy_sd, _ = _replayed(block, "e", block["e_cmp_read_j"], energy_j(s.law, s.cycles, trained), read)
    _check_readings(found, block, read)
    rule = "σ = 0.3/√(W + κ), W the readings so far, those before weighted by 0.9"
    check.compare("t_cmp_spread", time_sd, rule)
    factor = np.maximum(np.exp(time_x), np.minimum(1e-6 * s.round_s / prior_s, 1.0))
    _check_times(found, s, block, factor * prior_s, prior_s, open_to)
    if s.law.known:
        check.compare("e_cmp_spread", energy_sd, rule)
        rule = "e_cmp_planned_j = the prior times exp of the mean logarithm of reading/model, untried at most the prior"
        tried = np.concatenate([block.last["tried"][None], block["scheduled"]]).cumsum(axis=0) > 0
        block.values["tried"] = tried[1:].astype(float)
        factor = np.exp(energy_x)
        check.compare("e_cmp_planned_j", np.where(tried[:-1], factor, np.minimum(factor, 1.0)) * prior_j, rule)
    cycles = block["t_cmp_planned_s"] * f_hz
    by_law = energy_j(s.law, cycles, f_hz) if s.law.known else np.ones_like(cycles)
    return replace(s, cycles=cycles, law=replace(s.law, factor=block["e_cmp_planned_j"] / by_law))


def _replayed(block: Block, name: str, reading: Array, modelled: Array, measured: Array) -> tuple[Array, Array, Array]:
    """x, σ, and who may be tried again because the last reading is old, or waits for another; before each round [R, K].

    What the next block starts from is left in the block.
    """
    total, weight, waiting, last = (block.last[f"{name}_{part}"].copy() for part in ESTIMATES)
    x, sd, open_to = np.empty(reading.shape), np.empty(reading.shape), np.empty(reading.shape, bool)
    for r, t in enumerate(block.rounds):
        seen = weight > 0
        means = np.sort(total[seen] / weight[seen])
        middle = means[(means.size - 1) // 2] if means.size else 0.0
        kappa = NU**2 / np.mean(np.minimum(np.abs(np.append(means - middle, NU0)), NU0) ** 2)
        open_to[r] = (t - last > STALE) | np.isfinite(waiting)
        x[r], sd[r] = (total + kappa * middle) / (weight + kappa), NU / np.sqrt(weight + kappa)
        read = measured[r] & (modelled[r] > 0)
        y = np.log(np.maximum(np.where(read, reading[r], 1.0) / np.where(read, modelled[r], 1.0), 1e-12))
        near = read & (np.abs(y - x[r]) <= 3 * np.sqrt(sd[r] ** 2 + NU**2))
        twice = read & ~near & (np.abs(y - waiting) <= 3 * np.sqrt(2) * NU)
        total = np.where(near, GAMMA * total + y, np.where(twice, y + waiting, total))
        weight = np.where(near, GAMMA * weight + 1, np.where(twice, 2.0, weight))
        waiting = np.where(near | twice, np.nan, np.where(read, y, waiting))
        last = np.where(read, t, last)
    for part, value in zip(ESTIMATES, (total, weight, waiting, last), strict=True):
        block.values[f"{name}_{part}"] = value[None]
    return x, sd, open_to


def _check_trained(found: Findings, s: StoredSettings, block: Block) -> None:
    check, scheduled, trained = found.at(Stage.INPUTS, block), block["scheduled"], block["trained_hz"]
    rule = "a scheduled device trains at a frequency up to its own, others at none"
    wrong = np.where(scheduled, ~((trained > 0) & (trained <= block["f_hz"] * (1 + RELATIVE))), trained != 0)
    check.flag("trained_hz", wrong, np.where(scheduled, block["f_hz"], 0.0), rule)
    if s.policy in OUR_POLICIES:
        taken = block["t_cmp_planned_s"] * block["f_hz"] / np.where(scheduled, trained, 1.0)
        rule = "what a device did not measure takes the planned time, at the frequency of training"
        check.compare("t_cmp_s", taken, rule, where=scheduled & ~block["t_cmp_s_measured"])


def _check_readings(found: Findings, block: Block, read: Array) -> None:
    check = found.at(Stage.INPUTS, block)
    check.flag("e_cmp_read_j", read & ~block["scheduled"], np.array(None), "only scheduled devices measure")
    check.flag("e_cmp_read_j", read & ~block["e_cmp_j_measured"], np.array(None), "e_cmp_j is then said to be measured")
    over = read & ~(block["e_cmp_j"] <= block["e_cmp_read_j"] * (1 + RELATIVE))
    check.flag("e_cmp_j", over, block["e_cmp_read_j"], "no more is charged than the meter read")


def _check_times(
    found: Findings, s: StoredSettings, block: Block, estimate: Array, prior: Array, open_to: Array
) -> None:
    """The estimate; the model's figure only where the estimate is too late, and is old or would leave nobody."""
    planned, sending = block["t_cmp_planned_s"], surrogate_time_s(s, _fewest(s))
    late = estimate + sending > s.time_s
    unsure = close(estimate + sending, np.broadcast_to(s.time_s, estimate.shape))
    again = late & open_to
    nobody = ~(block["available"] & (~late | again)).any(axis=1, keepdims=True)
    expected = np.where(again | (late & nobody), prior, estimate)
    either = close(planned, estimate) | close(planned, prior)
    open_ = unsure | unsure.any(axis=1, keepdims=True) if s.policy in OUR_POLICIES else np.ones_like(late)
    wrong = ~close(planned, expected) & ~(open_ & either)
    rule = (
        "t_cmp_planned_s = c/f times exp of the mean logarithm of reading/model; c/f where that is too late, and there "
        "was no reading for 32 rounds, or the last one waits for another, or nobody else is in time"
    )
    found.at(Stage.INPUTS, block).flag("t_cmp_planned_s", wrong, expected, rule)


def _fewest(s: StoredSettings) -> int:
    return 1 if s.cardinality == "free" or s.policy in FROM_ONE else max(s.size or 1, 1)
