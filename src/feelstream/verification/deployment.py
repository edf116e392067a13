"""What a server learns of its devices, a second time: who delivers, and what their own clocks and meters said.

Both are replayed from what the trace holds of every round, and rounds must have been planned by just that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from feelstream.verification.findings import RELATIVE, Array, Stage, close
from feelstream.verification.rounds import Rounds
from feelstream.verification.rules import holds, only, same

INPUTS = Stage.INPUTS
GAMMA, LONGEST = 0.9, 32  # weight of what came before; rounds that a device rests at most
NU, NU0, STALE = 0.3, np.log(10.0), 32


class Delivered(NamedTuple):
    """What turns of every device taught before each round, and who rests in it. [R, K] each"""

    expected: Array
    rests: Array


def delivered(r: Rounds) -> Delivered:
    """A scheduled device whose update did not arrive stands in the trace with gain 0; it rests 1, 2, 4, … rounds."""
    d, f, row, until = r.memory.get("turns") or (np.zeros(r.K) for _ in range(4))
    expected, rests = np.empty(r.scheduled.shape), np.empty(r.scheduled.shape, bool)
    for i, t in enumerate(r.rounds):
        expected[i], rests[i] = (1 + d) / (1 + d + f), until >= t
        turn = r.scheduled[i] & ~r.cut[i]
        failed = turn & (r.gain[i] == 0)
        d = np.where(turn, GAMMA * d + (turn & ~failed), d)
        f = np.where(turn, GAMMA * f + failed, f)
        row = np.where(failed, row + 1, np.where(turn, 0, row))
        pause = np.minimum(2.0 ** (np.minimum(row, 60) - 1), LONGEST)
        until = np.where(failed, t + pause, np.where(turn, 0, until))
    r.memory["turns"] = d, f, row, until
    return Delivered(expected, rests)


def _rested(r: Rounds) -> Array:
    """Nobody who rests is available, unless everybody would have to. Where nothing else decides, all others are."""
    rests = r.found(delivered).rests
    if r.has("deployed") or r.run.world.comes_and_goes or r.run.world.battery_j is not None:
        return ~(r.available & rests & (r.available & ~rests).any(axis=1, keepdims=True))
    awake = r.allowed & ~rests
    return r.available == np.where(awake.any(axis=1, keepdims=True), awake, r.allowed)


class Estimates(NamedTuple):
    """Before each round [R, K]: x and σ of ln(reading/model), and whose last reading is old, or waits for another."""

    x: Array
    sd: Array
    open_to: Array


def _replayed(r: Rounds, name: str, reading: Array, modelled: Array, measured: Array) -> Estimates:
    """The logarithm of reading/model is averaged with weights 1, 0.9, 0.81, … from the last turn back, and with the
    weight (0.3/τ)² for the middle of all devices; τ² is the mean square of how far devices are from that middle, ln 10
    at most each, with one device more that is just so far. A reading three standard deviations away waits for a second
    one like it.
    """
    total, weight, waiting, last = r.memory.get(name) or (
        np.zeros(r.K), np.zeros(r.K), np.full(r.K, np.nan), np.full(r.K, -np.inf),
    )  # fmt: skip
    x, sd, open_to = np.empty(reading.shape), np.empty(reading.shape), np.empty(reading.shape, bool)
    for i, t in enumerate(r.rounds):
        seen = weight > 0
        means = np.sort(total[seen] / weight[seen])
        middle = means[(means.size - 1) // 2] if means.size else 0.0
        kappa = NU**2 / np.mean(np.minimum(np.abs(np.append(means - middle, NU0)), NU0) ** 2)
        open_to[i] = (t - last > STALE) | np.isfinite(waiting)
        x[i], sd[i] = (total + kappa * middle) / (weight + kappa), NU / np.sqrt(weight + kappa)
        read = measured[i] & (modelled[i] > 0)
        y = np.log(np.maximum(np.where(read, reading[i], 1.0) / np.where(read, modelled[i], 1.0), 1e-12))
        near = read & (np.abs(y - x[i]) <= 3 * np.sqrt(sd[i] ** 2 + NU**2))
        twice = read & ~near & (np.abs(y - waiting) <= 3 * np.sqrt(2) * NU)
        total = np.where(near, GAMMA * total + y, np.where(twice, y + waiting, total))
        weight = np.where(near, GAMMA * weight + 1, np.where(twice, 2.0, weight))
        waiting = np.where(near | twice, np.nan, np.where(read, y, waiting))
        last = np.where(read, t, last)
    r.memory[name] = total, weight, waiting, last
    return Estimates(x, sd, open_to)


def _trained_hz(r: Rounds) -> Array:
    return np.where(r.scheduled, r.trained_hz, 1.0)


def times(r: Rounds) -> Estimates:
    return _replayed(r, "times", r.t_cmp_s, r.model_cycles / _trained_hz(r), r.t_cmp_s_measured)


def energies(r: Rounds) -> Estimates:
    return _replayed(r, "energies", r.e_cmp_read_j, r.law_j(r.model_cycles, _trained_hz(r)), _read(r))


def _read(r: Rounds) -> Array:
    return ~r.nulls["e_cmp_read_j"]


def _planned_j(r: Rounds) -> Array:
    """The prior times exp of the mean logarithm; whoever was never scheduled counts with the prior at most."""
    tried = np.concatenate([r.memory.get("tried", np.zeros(r.K, bool))[None], r.scheduled]).cumsum(axis=0) > 0
    r.memory["tried"] = tried[-1]
    factor = np.exp(r.found(energies).x)
    return np.where(tried[:-1], factor, np.minimum(factor, 1.0)) * r.law_j(r.model_cycles, r.f_hz)


def _planned_s(r: Rounds) -> tuple[Array, Array]:
    """The estimate, and where `t_cmp_planned_s` is it: the model's figure only where the estimate is too late, and is
    old or would leave nobody.
    """
    estimated, prior = r.found(times), r.model_cycles / r.f_hz
    estimate = np.maximum(np.exp(estimated.x), np.minimum(1e-6 * r.run.round_s / prior, 1.0)) * prior
    needed_s = estimate + r.surrogate_s(max(r.phase.smallest_plan, 1))
    late = needed_s > r.time_s
    again = late & estimated.open_to
    nobody = ~(r.available & (~late | again)).any(axis=1, keepdims=True)
    expected = np.where(again | (late & nobody), prior, estimate)
    unsure = close(needed_s, np.broadcast_to(r.time_s, late.shape))
    doubt = unsure | unsure.any(axis=1, keepdims=True) | (not r.has("ours"))
    stored = r.t_cmp_planned_s
    either = close(stored, estimate) | close(stored, prior)
    return expected, close(stored, expected) | (doubt & either)


SPREAD = "σ = 0.3/√(W + κ), W the readings so far, those before weighted by 0.9"
RULES = (
    only(INPUTS, "cut", "only a scheduled device whose update was not received is cut off",
         lambda r: r.scheduled & ~r.transmitted & (r.gain == 0), "fallible"),
    same(INPUTS, "reliability",
         "reliability = (1+d)/(1+d+f), d and f the turns that delivered and failed, those before weighted by 0.9",
         lambda r: r.found(delivered).expected, "fallible"),
    holds(INPUTS, "available",
          "a device rests for 1, 2, 4, … rounds after failures in a row, unless nobody else can be scheduled",
          _rested, lambda r: ~r.available, "fallible"),
    same(INPUTS, "t_cmp_prior_s", "the prior of computing time is c/f", lambda r: r.model_cycles / r.f_hz,
         "plans_measured"),
    same(INPUTS, "e_cmp_prior_j", "the prior of computing energy is E_cmp at f",
         lambda r: r.law_j(r.model_cycles, r.f_hz), "plans_measured, law"),
    holds(INPUTS, "trained_hz", "a scheduled device trains at a frequency up to its own, others at none",
          lambda r: np.where(r.scheduled, (r.trained_hz > 0) & (r.trained_hz <= r.f_hz * (1 + RELATIVE)),
                             r.trained_hz == 0), lambda r: np.where(r.scheduled, r.f_hz, 0.0), "plans_measured"),
    same(INPUTS, "t_cmp_s", "what a device did not measure takes the planned time, at the frequency of training",
         lambda r: r.t_cmp_planned_s * r.f_hz / _trained_hz(r), "plans_measured, ours"),
    holds(INPUTS, "e_cmp_read_j", "only scheduled devices measure, and e_cmp_j is then said to be measured",
          lambda r: ~_read(r) | (r.scheduled & r.e_cmp_j_measured), None, "plans_measured"),
    holds(INPUTS, "e_cmp_j", "no more is charged than the meter read",
          lambda r: ~_read(r) | (r.e_cmp_j <= r.e_cmp_read_j * (1 + RELATIVE)), lambda r: r.e_cmp_read_j,
          "plans_measured"),
    same(INPUTS, "t_cmp_spread", SPREAD, lambda r: r.found(times).sd, "plans_measured"),
    same(INPUTS, "e_cmp_spread", SPREAD, lambda r: r.found(energies).sd, "plans_measured, law"),
    holds(INPUTS, "t_cmp_planned_s",
          "t_cmp_planned_s = c/f times exp of the mean logarithm of reading/model; c/f where that is too late, and "
          "there was no reading for 32 rounds, or the last one waits for another, or nobody else is in time",
          lambda r: r.found(_planned_s)[1], lambda r: r.found(_planned_s)[0], "plans_measured"),
    same(INPUTS, "e_cmp_planned_j",
         "e_cmp_planned_j = the prior times exp of the mean logarithm of reading/model, untried at most the prior",
         _planned_j, "plans_measured, law"),
)  # fmt: skip
