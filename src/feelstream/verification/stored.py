"""A run's settings, as far as a re-check needs them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from feelstream.verification.computing import Law
from feelstream.verification.findings import Array
from feelstream.verification.population import PAPERS_WORLD, Around
from feelstream.verification.promises import Promises

PLACES = 20.0  # energy of so many places that the fleet's queue starts at, under V = auto


class StoredChange(NamedTuple):
    """From this round on, one of the settings V, size and budget_j has another value."""

    round: int
    setting: str
    value: Any


class Reports(NamedTuple):
    """What reports take, where the policy asks for them."""

    slot_s: float
    cycles: float
    bits: float
    trains: bool  # devices train for them


class Rationed(NamedTuple):
    """Fields of balanced_joint, and the seed of its lots."""

    seed: int
    least: int
    memory: float
    spread: float
    price: float
    scarcity: float
    haste: float
    peak: float
    lead: float
    lead_part: float
    tolerance: float
    pace: str
    knows: str


@dataclass(frozen=True)
class Costs:
    """What single devices have or spend beside computing and sending; one number for all, or [K] each."""

    deadline_s: float | Array
    download_s: float | Array
    download_j: float | Array
    power_max_w: float | Array  # infinite: no limit
    block_bits: float = 0.0  # above 0: blocks may fail, and be sent again
    code_overhead: float = 0.0
    cycles_per_sample: float = 0.0  # above 0: c follows what a device holds
    own: bool = False  # by a user's own rule: what a round costs is taken as stored

    @property
    def downloads(self) -> bool:
        return self.own or bool(np.any(np.asarray(self.download_s) > 0))


@dataclass(frozen=True)
class StoredSettings:
    """A run's settings in SI units, under the model's symbols where it has them."""

    K: int
    T: int
    round_s: float  # less the slot for reports
    costs: Costs
    budget_j: Array  # [K]
    cycles: float | Array  # one for all, or [K]
    law: Law  # what computing costs
    frequency_hz: tuple[Array, Array]  # [K] each
    bandwidth_hz: float
    noise_w_per_hz: float
    received_power_w: float  # P0
    gain: tuple[Array, Array]  # range of β, linear; [K] each
    fading: str
    rate_discount: float
    link_margin: float
    admission: str
    update_bits: float | Array  # of all; [R, K] in a block whose costs are a user's own
    eligible: str
    fresh: str
    empty_used: str
    empty_fresh: str
    buffer: Promises
    classes: int | None
    policy: str
    equal_shares: bool  # who sends shares the band equally, at P0/β; for a user's own policy by its promise
    V: float | None  # the number that it stands for, where it is auto
    auto: bool  # V follows from budget and size, and the fleet has a queue of its own
    size: int | None
    cardinality: str | None
    metric: str  # "own": a user's function or policy, so importance is taken as stored
    power_max_w: float | None  # None: P0/min β
    fade_reserve: float
    least_share: float | None
    gain_known: str  # which gains the policy goes by: mean, last or oracle
    learns: bool
    local_training: str  # by name; one of ours, or a user's own
    server_update: str  # likewise; of one in another, the first that is not ours
    eval_every: int
    evaluators: tuple[str, ...]
    trace_level: str
    facts: frozenset[str]  # of columns.FACTS; where deployed, what is not heard of devices is not known
    priority: Array  # [K], factor on importance, as the scenario gives it
    reports: Reports | None = None
    rationed: Rationed | None = None  # where the policy is balanced_joint
    around: Around = PAPERS_WORLD
    passes: bool = False  # a deployment that may count static data as fresh again
    changes: tuple[StoredChange, ...] = ()  # by round
    backlog_j: Array | None = None  # [T], the fleet's queue where V is auto

    @property
    def time_s(self) -> float | Array:
        """T_k: what computing and sending may take together; one for all, or [K]."""
        return self.costs.deadline_s - self.costs.download_s

    @property
    def period_s(self) -> float:
        """From the beginning of one round to that of the next."""
        return self.round_s + (self.reports.slot_s if self.reports else 0.0)


def with_weight(s: StoredSettings) -> StoredSettings:
    """The same, with the number that V = auto stands for: PLACES·(ΣE^avg/size)²."""
    return replace(s, V=PLACES * place_j(s) ** 2) if s.auto else s


def place_j(s: StoredSettings) -> float:
    """What the budgets grant one of the places in a round."""
    return float(s.budget_j.sum()) / max(s.size or 0, 1)
