"""Who delivers, a second time: what is learned of every device's turns, who rests, and that both were heeded.

A scheduled device whose update did not arrive stands in the trace with gain 0.
"""

from __future__ import annotations

import numpy as np

from feelstream.verification.findings import Array, Findings, Stage
from feelstream.verification.formulas import allowed
from feelstream.verification.reading import TURNS, Block
from feelstream.verification.stored import StoredSettings

GAMMA, LONGEST = 0.9, 32
RULE = "reliability = (1+d)/(1+d+f), d and f the turns that delivered and failed, those before weighted by 0.9"


def check_reliability(found: Findings, s: StoredSettings, block: Block) -> None:
    """Replays each device's turns. What the next block starts from is left in the block."""
    if "fallible" not in s.facts:
        return
    d, f, row, until = (block.last[name].copy() for name in TURNS)
    expected, rests = np.empty(block["scheduled"].shape), np.empty(block["scheduled"].shape, bool)
    for r, t in enumerate(block.rounds):
        expected[r], rests[r] = (1 + d) / (1 + d + f), until >= t
        turn = block["scheduled"][r] & ~block["cut"][r]
        failed = turn & (block["gain"][r] == 0)
        d = np.where(turn, GAMMA * d + (turn & ~failed), d)
        f = np.where(turn, GAMMA * f + failed, f)
        row = np.where(failed, row + 1, np.where(turn, 0, row))
        pause = np.minimum(2.0 ** (np.minimum(row, 60) - 1), LONGEST)
        until = np.where(failed, t + pause, np.where(turn, 0, until))
    for name, value in zip(TURNS, (d, f, row, until), strict=True):
        block.values[name] = value[None]
    check = found.at(Stage.INPUTS, block)
    heard = block["cut"] & (~block["scheduled"] | block["transmitted"] | (block["gain"] != 0))
    check.flag("cut", heard, ~block["cut"], "only a scheduled device whose update was not received is cut off")
    check.compare("reliability", expected, RULE)
    _check_rests(found, s, block, rests)


def _check_rests(found: Findings, s: StoredSettings, block: Block, rests: Array) -> None:
    """Nobody who rests is available, unless everybody would have to."""
    available, around = block["available"], s.around
    awake = (available & ~rests).any(axis=1, keepdims=True)
    wrong, expected = available & rests & awake, available & ~rests
    if not ("deployed" in s.facts or around.comes_and_goes or around.capacity_j is not None):  # nothing else decides
        may = allowed(s, block)
        expected = np.where((may & ~rests).any(axis=1, keepdims=True), may & ~rests, may)
        wrong = available != expected
    rule = "a device rests for 1, 2, 4, … rounds after failures in a row, unless nobody else can be scheduled"
    found.at(Stage.INPUTS, block).flag("available", wrong, expected, rule)
