"""Is what the round starts from plausible, and does it follow from the round before?"""

from __future__ import annotations

import numpy as np

from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.formulas import computing_energy_j, computing_time_s
from feelstream.verification.reading import (
    COUNTS,
    DEVICE_COLUMNS,
    MAY_BE_MISSING,
    REAL,
    ROUND_COLUMNS,
    Block,
    Table,
)
from feelstream.verification.settings import StoredSettings

IN = Stage.INPUTS


def check_inputs(found: Findings, s: StoredSettings, block: Block, most_power_w: Array) -> None:
    """most_power_w: what no device sends with more than; broadcasts against [R, K]."""
    _check_rows(found, s, block)
    check_present(found, block, DEVICE_COLUMNS)
    _check_radio_and_cpu(found, s, block)
    _check_data(found, s, block)
    _check_batteries(found, s, block, most_power_w)
    rule = "a queue starts at 0 and enters each round as it left the round before"
    found.compare(IN, "queue_j", block.rounds, block["queue_j"], block.before("queue_next_j"), rule)


def _check_batteries(found: Findings, s: StoredSettings, block: Block, most_power_w: Array) -> None:
    """b(t+1) = min(b − E + H, C), E ≤ b, and nobody is available whose charge does not cover the round's worst case."""
    if s.around.capacity_j is None:
        return
    spent = block["e_cmp_j"] + block["e_tr_j"]
    after = np.minimum(np.maximum(block["battery_j"] - spent, 0.0) + block["harvest_j"], s.around.capacity_j)
    before = np.concatenate([block.last["battery_next_j"][None], after[:-1]])
    block.values["battery_next_j"] = after
    rule = "a battery loses what was spent and gains what was harvested, up to its capacity"
    found.compare(IN, "battery_j", block.rounds, block["battery_j"], before, rule, scale=s.around.capacity_j)
    rule = "what is harvested is not negative"
    found.flag(IN, "harvest_j", block.rounds, block["harvest_j"] < 0, block["harvest_j"], np.array(0.0), rule)
    left_s = np.maximum(s.round_s - computing_time_s(s, block["f_hz"]), 0.0)
    worst = computing_energy_j(s, block["f_hz"]) + most_power_w * left_s
    bad = block["available"] & (worst > block["battery_j"] * (1 + RELATIVE))
    rule = "a device is available only if its charge covers λcf² + P_max(T_rd − c/f)"
    found.flag(IN, "available", block.rounds, bad, block["battery_j"], worst, rule)
    rule = "no device spends more than its battery holds"
    overdrawn = spent > block["battery_j"] * (1 + RELATIVE)
    found.flag(IN, "battery_j", block.rounds, overdrawn, block["battery_j"], spent, rule)


def check_round_inputs(found: Findings, table: Table) -> None:
    """The same for rounds.parquet: rows in order, nothing missing, nothing infinite."""
    found.flag(
        IN,
        "round",
        table.rounds,
        table["round"] != table.rounds,
        table["round"],
        table.rounds,
        "rounds are numbered 1, 2, … without a gap",
    )
    check_present(found, table, ROUND_COLUMNS)


def check_present(found: Findings, table: Table, columns: dict[str, str]) -> None:
    """No value is missing where none may be, and no number is NaN or infinite."""
    nothing = np.array(None)
    for name, kind in columns.items():
        if name not in MAY_BE_MISSING:
            rule = f"{name} is never missing"
            found.flag(IN, name, table.rounds, table.nulls[name], nothing, np.array("a value"), rule)
        if kind == REAL:
            bad = ~np.isfinite(table[name]) & ~table.nulls[name]
            found.flag(IN, name, table.rounds, bad, table[name], np.array("finite"), "every number is finite")


def _check_rows(found: Findings, s: StoredSettings, block: Block) -> None:
    rule = "rows are sorted by round and device, each device once a round"
    for name, expected in (("round", block.rounds[:, None]), ("device", np.arange(s.K)[None, :])):
        found.flag(IN, name, block.rounds, block[name] != expected, block[name], expected, rule)


def _check_radio_and_cpu(found: Findings, s: StoredSettings, block: Block) -> None:
    if s.deployed:  # elsewhere it is not stored
        value, rule = block["priority"], "a priority is greater than 0"
        found.flag(IN, "priority", block.rounds, ~(value > 0), value, np.array("above 0"), rule)
    for name, column, (low, high) in (
        ("frequency_hz", "f_hz", s.frequency_hz),
        ("gain_db", "beta", s.gain),
    ):
        value = block[column]
        inside = (value >= low * (1 - RELATIVE)) & (value <= high * (1 + RELATIVE))
        rule = f"{column} lies in the range that {name} allows, {low.min():.12g} to {high.max():.12g}"
        found.flag(IN, column, block.rounds, ~inside, value, np.clip(value, low, high), rule)
    rule = "a device's mean gain β is fixed for the run"
    known = block.before("report_age") >= 0
    if not s.around.moves:
        found.compare(IN, "beta", block.rounds, block["beta"], block.before("beta"), rule, where=known)
    gain = block["gain"]
    found.flag(IN, "gain", block.rounds, ~(gain >= 0), gain, np.array(0.0), "a channel power gain is not negative")
    if s.fading == "none":
        # A device that did not reply in time stands in the trace with a dead channel.
        silent = block["scheduled"] & ~block["transmitted"] & (gain == 0) & s.deployed
        found.compare(IN, "gain", block.rounds, gain, block["beta"], "without fading the gain equals β", where=~silent)


def _check_data(found: Findings, s: StoredSettings, block: Block) -> None:
    stored, fresh, labels, used = (block[c] for c in ("stored", "fresh", "fresh_labels", "used_labels"))

    def flag(name: str, bad: Array, value: Array, expected: Array, rule: str) -> None:
        found.flag(IN, name, block.rounds, bad, value, expected, rule)

    for name in (name for name, kind in DEVICE_COLUMNS.items() if kind == COUNTS):
        counts = np.maximum(block[name], 0)
        flag(name, _differ(block[name], counts), block[name], counts, "label counts are not negative")
    flag("fresh", fresh != labels.sum(axis=-1), fresh, labels.sum(axis=-1), "fresh_labels add up to fresh")
    flag("stored", stored < fresh, stored, fresh, "fresh samples are among the stored ones")

    sent, used_before = block.before("transmitted"), block.before("used_labels")
    moved = _differ(used, used_before) & ~sent
    flag(
        "used_labels",
        moved,
        used,
        used_before,
        "used labels start at 0 and change only when a device transmits",
    )
    count = used.sum(axis=-1)
    rule = "a device that transmits has used all that it stored"
    # A device scheduled by an old report has more to use than was known of it.
    up_to_date = block.before("report_age") == 0
    wrong = sent & up_to_date & (count != block.before("stored"))
    flag("used_labels", wrong, count, block.before("stored"), rule)

    may = stored >= 1 if s.eligible == "with_data" else np.ones_like(stored, bool)
    # Real devices may be out of reach or not known; nobody else is kept out.
    inputs_decide = s.deployed or s.around.comes_and_goes or s.around.capacity_j is not None
    wrong = block["available"] & ~may if inputs_decide else block["available"] != may
    flag("available", wrong, block["available"], may, f"who may be scheduled with eligible = {s.eligible}")
    if s.buffer == "keep" and s.fresh == "since_use":
        grown = used_before + np.where(sent[..., None], block.before("fresh_labels"), 0)
        rule = "with buffer keep, a transmitter's fresh labels join its used ones"
        flag("used_labels", _differ(used, grown) & (up_to_date | ~sent), used, grown, rule)
        flag(
            "stored",
            stored != count + fresh,
            stored,
            count + fresh,
            "with buffer keep, stored = used + fresh",
        )
    if s.buffer == "keep" and s.fresh == "per_round":
        grown = block.before("stored") + fresh
        flag(
            "stored",
            (stored != grown) & up_to_date & (block["report_age"] == 0),
            stored,
            grown,
            "with buffer keep, stored grows by what arrived in the round",
        )
    if s.buffer == "use_once" and s.fresh == "since_use":
        flag("stored", stored != fresh, stored, fresh, "with buffer use_once, nothing stored was used before")
    if s.buffer_capacity is not None:
        capacity = np.array(s.buffer_capacity)
        flag("stored", stored > capacity, stored, capacity, "a buffer never holds more than its capacity")


def _differ(left: Array, right: Array) -> Array:
    """Where two lists of label counts [R, K, m] are not the same, [R, K]."""
    return np.asarray(np.any(left != right, axis=-1))
