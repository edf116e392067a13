"""Reports before scheduling: who may have answered, and what each answer cost."""

from __future__ import annotations

import numpy as np

from feelstream.constants import Slot
from feelstream.verification.findings import Array, Stage, close
from feelstream.verification.rounds import Rounds
from feelstream.verification.rules import holds, same

ENERGY = Stage.ENERGY


def _slot(r: Rounds) -> Slot:
    assert r.run.slot is not None
    return r.run.slot


def answered(r: Rounds) -> Array:
    """Who paid for a report. [R, K]"""
    return r.e_report_j > 0


def _sending_s(r: Rounds) -> Array:
    """b/R(K, |g|²): everyone has the K-th part of the band."""
    return r.sending_s(r.K, r.gain / r.beta, _slot(r).bits)


def _may(r: Rounds, edge: bool) -> Array:
    """Available devices that hold data and are in time for the slot; those at its edge count if `edge`."""
    asked = _slot(r)
    needed = (asked.cycles + (r.cycles if asked.trains else 0.0)) / r.f_hz + _sending_s(r)
    unsure = close(needed, np.full_like(needed, asked.slot_s))
    return r.available & (r.stored > 0) & np.where(unsure, edge, needed <= asked.slot_s)


def _report_j(r: Rounds) -> Array:
    """E_cmp(c_r) + (P0/β)·b/R; with E_cmp of training where it took that and the device was not scheduled; else 0."""
    asked = _slot(r)
    own = r.law_j(asked.cycles, r.f_hz) * r.factor if asked.cycles else 0.0
    trained = np.where(r.scheduled, 0.0, r.computing_j(r.f_hz)) if asked.trains else 0.0
    return np.where(answered(r), own + r.equal_power_w * _sending_s(r) + trained, 0.0)


def worst_report_j(r: Rounds) -> Array | float:
    """What no report exceeds: sending through the whole slot, and training where it takes that."""
    if r.run.slot is None:
        return 0.0
    asked = r.run.slot
    own = r.law_j(asked.cycles, r.f_hz) * r.factor if asked.cycles else 0.0
    return own + (r.computing_j(r.f_hz) if asked.trains else 0.0) + r.equal_power_w * asked.slot_s


RULES = (
    holds(ENERGY, "e_report_j",
          "only an available device that holds data and is in time for the slot pays for a report",
          lambda r: ~answered(r) | _may(r, edge=True), 0.0, "asks"),
    holds(ENERGY, "e_report_j", "the energy of a report is not negative", lambda r: r.e_report_j >= 0, 0.0, "asks"),
    holds(ENERGY, "e_report_j", "every device that may report does", lambda r: answered(r) | ~_may(r, edge=False),
          "above 0", "asks everyone"),
    same(ENERGY, "e_report_j", "E_report = E_cmp of the report's cycles + (P0/β)·b/R on the K-th part of the band",
         _report_j, "asks, law"),
)  # fmt: skip
