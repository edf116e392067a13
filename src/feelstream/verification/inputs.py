"""Is what the round starts from plausible, and does it follow from the round before?"""

from __future__ import annotations

import numpy as np

from feelstream.columns import DEVICE_COLUMNS, REAL, ROUND_COLUMNS, Column, columns_of
from feelstream.verification.computing import most_j
from feelstream.verification.findings import RELATIVE, Array, Checker, Findings, Stage
from feelstream.verification.formulas import allowed, computing_time_s
from feelstream.verification.reading import Block, Table
from feelstream.verification.reports import worst_report_j
from feelstream.verification.stored import StoredSettings


def check_inputs(found: Findings, s: StoredSettings, block: Block, most_power_w: Array) -> None:
    """most_power_w: what no device sends with more than; broadcasts against [R, K]."""
    check = found.at(Stage.INPUTS, block)
    rule = "rows are sorted by round and device, each device once a round"
    for name, expected in (("round", block.rounds[:, None]), ("device", np.arange(s.K)[None, :])):
        check.flag(name, block[name] != expected, expected, rule)
    _check_present(check, columns_of(DEVICE_COLUMNS, s.facts))
    _check_costs(check, s, block)
    _check_radio_and_cpu(check, s, block)
    _check_data(check, s, block)
    _check_batteries(check, s, block, most_power_w)
    rule = "a queue starts at 0 and enters each round as it left the round before"
    check.compare("queue_j", block.before("queue_next_j"), rule)


def _check_costs(check: Checker, s: StoredSettings, block: Block) -> None:
    """What a user's own rule says is in its range."""
    if "own_costs" not in s.facts:
        return
    for name in (name for name, column in DEVICE_COLUMNS.items() if column.when == "own_costs"):
        low = block[name] < 0 if "down" in name else block[name] <= 0
        check.flag(name, low, 0.0, f"{name} is {'not negative' if 'down' in name else 'greater than 0'}")


def _check_batteries(check: Checker, s: StoredSettings, block: Block, most_power_w: Array) -> None:
    """b(t+1) = min(b − E + H, C), E ≤ b, and nobody is available whose charge does not cover the round's worst case."""
    if "batteries" not in s.facts or s.around.capacity_j is None:
        return
    spent = block.energy_j
    after = np.minimum(np.maximum(block["battery_j"] - spent, 0.0) + block["harvest_j"], s.around.capacity_j)
    before = np.concatenate([block.last["battery_next_j"][None], after[:-1]])
    block.values["battery_next_j"] = after
    rule = "a battery loses what was spent and gains what was harvested, up to its capacity"
    check.compare("battery_j", before, rule, scale=s.around.capacity_j)
    check.flag("harvest_j", block["harvest_j"] < 0, 0.0, "what is harvested is not negative")
    left_s = np.maximum(s.time_s - computing_time_s(s, block["f_hz"]), 0.0)
    # By a law of the user's own it is not known, and no comparison holds.
    slowest_hz = s.cycles / np.where(s.time_s > 0, s.time_s, s.round_s)  # who has no time left is not available
    worst = most_j(s.law, s.cycles, slowest_hz, block["f_hz"]) + most_power_w * left_s + s.costs.download_j
    worst = worst + worst_report_j(s, block)
    bad = block["available"] & (worst > block["battery_j"] * (1 + RELATIVE))
    rule = "a device is available only if its charge covers E_cmp + P_max(T_k − c/f) + E_down, and its report, if any"
    check.flag("available", bad, worst, rule, stored=block["battery_j"])
    overdrawn = spent > block["battery_j"] * (1 + RELATIVE)
    check.flag("battery_j", overdrawn, spent, "no device spends more than its battery holds")


def check_round_inputs(found: Findings, table: Table) -> None:
    """The same for rounds.parquet: rows in order, nothing missing, nothing infinite."""
    check = found.at(Stage.INPUTS, table)
    check.flag("round", table["round"] != table.rounds, table.rounds, "rounds are numbered 1, 2, … without a gap")
    _check_present(check, columns_of(ROUND_COLUMNS, ()))


def _check_present(check: Checker, columns: dict[str, Column]) -> None:
    """No value is missing where none may be, and no number is NaN or infinite."""
    table = check.table
    for name, column in columns.items():
        if not column.may_be_null:
            check.flag(name, table.nulls[name], np.array("a value"), f"{name} is never missing")
        if column.kind == REAL:
            bad = ~np.isfinite(table[name]) & ~table.nulls[name]
            check.flag(name, bad, np.array("finite"), "every number is finite")


def _check_radio_and_cpu(check: Checker, s: StoredSettings, block: Block) -> None:
    if "deployed" in s.facts:  # elsewhere it is not stored
        check.flag("priority", ~(block["priority"] > 0), np.array("above 0"), "a priority is greater than 0")
    for name, column, (low, high) in (("frequency_hz", "f_hz", s.frequency_hz), ("gain_db", "beta", s.gain)):
        rule = f"{column} lies in the range that {name} allows, {low.min():.12g} to {high.max():.12g}"
        check.within(column, low, high, rule)
    known = block.before("report_age") >= 0
    if not s.around.moves:
        check.compare("beta", block.before("beta"), "a device's mean gain β is fixed for the run", where=known)
    gain = block["gain"]
    check.flag("gain", ~(gain >= 0), 0.0, "a channel power gain is not negative")
    if s.fading == "none" and "deployed" not in s.facts:  # there a device states the gain that it found
        silent = (gain == 0) & s.around.fails
        check.compare("gain", block["beta"], "without fading the gain equals β", where=~silent)


def _check_data(check: Checker, s: StoredSettings, block: Block) -> None:
    stored, fresh, labels, used = (block[c] for c in ("stored", "fresh", "fresh_labels", "used_labels"))
    for name in ("fresh_labels", "used_labels"):
        counts = np.maximum(block[name], 0)
        check.flag(name, _differ(block[name], counts), counts, "label counts are not negative")
    check.flag("fresh", fresh != labels.sum(axis=-1), labels.sum(axis=-1), "fresh_labels add up to fresh")
    check.flag("stored", stored < fresh, fresh, "fresh samples are among the stored ones")

    if "labels" in s.facts:
        _check_stored_labels(check, s, block)
    sent, used_before = block.before("transmitted"), block.before("used_labels")
    rule = "used labels start at 0 and change only when a device transmits"
    again = _new_pass(s, block) if s.passes else np.zeros((len(stored), 1), bool)
    check.flag("used_labels", _differ(used, used_before) & ~sent & ~again, used_before, rule)
    count = used.sum(axis=-1)
    rule = "a device that transmits has used all that it stored"
    # A device scheduled by an old report has more to use than was known of it.
    up_to_date = block.before("report_age") == 0
    wrong = sent & up_to_date & ~again & (count != block.before("stored"))
    check.flag("used_labels", wrong, block.before("stored"), rule, stored=count)

    may = allowed(s, block)
    # Real devices may be out of reach or not known; nobody else is kept out.
    inputs_decide = s.around.comes_and_goes or s.around.capacity_j is not None
    inputs_decide |= not s.facts.isdisjoint(("deployed", "fallible"))
    wrong = block["available"] & ~may if inputs_decide else block["available"] != may
    check.flag("available", wrong, may, f"who may be scheduled with eligible = {s.eligible} and P0/β ≤ P_max")
    keeps = "keeps" in s.buffer and "empties_on_use" not in s.buffer
    if keeps and s.fresh == "since_use":
        grown = used_before + np.where(sent[..., None], block.before("fresh_labels"), 0)
        rule = "where nothing is deleted, a transmitter's fresh labels join its used ones"
        check.flag("used_labels", _differ(used, grown) & (up_to_date | ~sent) & ~again, grown, rule)
        rule = "where nothing is deleted, stored = used + fresh"
        check.flag("stored", stored != count + fresh, count + fresh, rule)
    if keeps and s.fresh == "per_round":
        grown = block.before("stored") + fresh
        bad = (stored != grown) & up_to_date & (block["report_age"] == 0)
        check.flag("stored", bad, grown, "where nothing is deleted, stored grows by what arrived in the round")
    if "empties_on_use" in s.buffer and s.fresh == "since_use":
        check.flag("stored", stored != fresh, fresh, "where use empties a buffer, nothing stored was used before")
    if (most := s.buffer.number("most_held")) is not None:
        check.flag("stored", stored > most, most, "a buffer never holds more than its capacity")


def _new_pass(s: StoredSettings, block: Block) -> Array:
    """Where a deployment on static data may begin a new pass over it: then nothing counts as used of any device. [R, 1]

    No device has received anything since the round before, and of those that can be scheduled all data was used.
    """
    stored, known = block["stored"], block.before("report_age") >= 0
    static = ((stored == block.before("stored")) | ~known).all(axis=1, keepdims=True)
    used = block.before("used_labels").sum(axis=-1) + np.where(block.before("transmitted"), block.before("fresh"), 0)
    prior_s = block["t_cmp_prior_s"] if "plans_measured" in s.facts else computing_time_s(s, block["f_hz"])
    left = (block["available"] & (prior_s < s.time_s) & (stored > used)).any(axis=1, keepdims=True)
    return (block["used_labels"] == 0).all(axis=(1, 2))[:, None] & static & ~left


def _check_stored_labels(check: Checker, s: StoredSettings, block: Block) -> None:
    held, fresh = block["stored_labels"], block["fresh_labels"]
    check.flag(
        "stored_labels", np.asarray((held < 0).any(axis=-1)), np.maximum(held, 0), "label counts are not negative"
    )
    total = held.sum(axis=-1)
    check.flag("stored", block["stored"] != total, total, "stored_labels add up to stored")
    least = np.maximum(held, fresh)
    check.flag("stored_labels", _differ(held, least), least, "the labels of fresh samples are among the stored ones")
    if s.buffer == "keep" and s.fresh == "since_use":
        both, rule = block["used_labels"] + fresh, "with buffer keep, stored labels = used labels + fresh labels"
        check.flag("stored_labels", _differ(held, both), both, rule)


def _differ(left: Array, right: Array) -> Array:
    """Where two lists of label counts [R, K, m] are not the same, [R, K]."""
    return np.asarray(np.any(left != right, axis=-1))
