"""What a rule looks at: rounds of a run with their columns, the constants in force, and what follows from both.

Arrays are [R, K], [R, 1] or [K], so that they broadcast; the last axis is devices. n devices share the band.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from feelstream.columns import DEVICE_COLUMNS, MEASURED, TRUTH, budget_column, spent_j
from feelstream.resolved import Phase
from feelstream.verification.files import Stored
from feelstream.verification.findings import RELATIVE, Array, close

T = TypeVar("T")
Columns = dict[str, Array]

AT_A_POINT = 1e-9  # a frequency is an operating point if it is above it by no more than this
OF_OTHERS = 2e-6  # relative, within which a user's own allocation must agree with physics
METRICS: dict[str, Callable[[Array, Array], Array]] = {  # of amount and dissimilarity
    "combined": lambda amount, dissimilarity: amount + dissimilarity,
    "amount": lambda amount, dissimilarity: amount,
    "dissimilarity": lambda amount, dissimilarity: dissimilarity,
}


class Table:
    """Columns of some rounds of one phase as attributes: values, and where they are null (then NaN, 0 or False)."""

    def __init__(
        self, source: Stored, traits: frozenset[str], phase: Phase, first: int, values: Columns, nulls: Columns
    ) -> None:
        self.source, self.run, self.traits, self.phase = source, source.run, traits, phase
        self.values, self.nulls = values, nulls
        self.rounds = first + np.arange(len(values["round"]))  # [R], what the round numbers must be

    def __getattr__(self, name: str) -> Array:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    def has(self, when: str) -> bool:
        """Whether all of these traits hold, separated by commas; with `not` in front, whether one does not."""
        wanted = (each.strip() for each in when.split(",") if each)
        return all((each.removeprefix("not ") in self.traits) != each.startswith("not ") for each in wanted)

    def filled(self, name: str, value: Array) -> tuple[Array, Array | bool]:
        """What a column must hold where `value` is of those for whom it is filled, and where that can be said."""
        return value, True


class Totals(Table):
    """Some rounds of rounds.parquet; `devices` are the same rounds of devices.parquet, where there is such a table."""

    devices: Rounds | None = None

    def of_rounds(self, wanted: Array, phase: Phase | None = None) -> Totals:
        """Some of them alone, in order."""
        there = np.isin(self.rounds, wanted)
        values, nulls = ({name: column[there] for name, column in of.items()} for of in (self.values, self.nulls))
        found = Totals(self.source, self.traits, phase or self.phase, 1, values, nulls)
        found.rounds = self.rounds[there]
        return found


class Rounds(Table):
    """Successive rounds of devices.parquet; `memory` goes on from block to block."""

    def __init__(self, totals: Totals, values: Columns, nulls: Columns, memory: dict[str, Any]) -> None:
        source, shape = totals.source, values["round"].shape
        usual = {name: False if column.kind == TRUTH else 0.0 for name, column in DEVICE_COLUMNS.items()}
        usual |= {"priority": source.constants["priority"], "reliability": 1.0}  # what stands for columns it has not
        values = {name: np.broadcast_to(value, shape) for name, value in usual.items()} | values
        super().__init__(source, totals.traits, totals.phase, totals.rounds[0], values, nulls)
        self.totals, self.memory, self._found = totals, memory, dict[Any, Any]()
        self.K, self.constants, self.t = source.run.devices, source.constants, self.rounds[:, None]
        self.planned = np.clip(totals.planned, 0, self.K)  # [R]
        self.n = np.maximum(self.planned, 1)[:, None]
        self.sent = self.transmitted | self.lost  # who used the band, whether the update arrived or not
        self.n_sent = self.sent.sum(axis=1, keepdims=True)
        own, constants = self.has("own_costs"), self.constants
        self.budget_j = constants[budget_column(self.phase.first)]
        self.update_bits: Array | float = self.cost_bits if own else self.run.radio.update_bits
        self.download_s = self.cost_down_s if own else constants["download_s"]
        self.download_j = self.cost_down_j if own else constants["download_j"]
        self.time_s = constants["deadline_s"] - self.download_s  # T_k: what computing and sending may take together

    def before(self, column: str, at_first: Array | float | None = None) -> Array:
        """The column one round earlier; before the first round all is 0, or at_first."""
        last = self.memory["last"].get(column)
        if last is None:
            own = np.zeros_like(self.values[column][0])
            last = own if at_first is None else np.broadcast_to(np.asarray(at_first, own.dtype), own.shape)
        return np.concatenate([last[None], self.values[column][:-1]])

    def filled(self, name: str, value: Array) -> tuple[Array, Array | bool]:
        """0 for those for whom it is not filled; nothing can be said of what was measured, or is null."""
        by, own = DEVICE_COLUMNS[name].filled, self.values.get(f"{name}_measured") if name in MEASURED else None
        if by == "feasible":
            return value, self.feasible
        if by:
            who = self.scheduled if by == "scheduled" else self.sent
            value = np.where(who, value, 0.0)
            return value, True if own is None else ~(own & who)
        return value, True

    def found(self, what: Callable[[Rounds], T]) -> T:
        """what(self), worked out once: a replay leaves in `memory` where the next block goes on."""
        if what not in self._found:
            self._found[what] = what(self)
        return self._found[what]

    # Constants in force

    @cached_property
    def model_cycles(self) -> Array:
        """c by the scenario: constants, by what each holds, or as a user's own rule said."""
        if self.has("own_costs"):
            return self.cost_cycles
        cycles, of_a_sample = self.constants["cycles"], self.run.cycles_per_sample
        return of_a_sample * np.maximum(self.stored, 1) if of_a_sample else cycles

    @cached_property
    def cycles(self) -> Array:
        """c as the round was planned: in a deployment what was measured counts."""
        return self.t_cmp_planned_s * self.f_hz if self.has("plans_measured") else self.model_cycles

    @cached_property
    def factor(self) -> Array | float:
        """On all of E_cmp: what was measured against the law."""
        if not self.has("plans_measured"):
            return 1.0
        return self.e_cmp_planned_j / (self.law_j(self.cycles, self.f_hz) if self.has("law") else 1.0)

    @cached_property
    def equal_power_w(self) -> Array:
        """P0/β: all are received with the same power."""
        return self.run.radio.received_power_w / self.beta

    @cached_property
    def most_power_w(self) -> Array:
        """What no device sends with more than; ours that choose power have P0/min β, or a limit of their own."""
        policy = self.run.policy
        if self.has("equal") or policy.power == "fixed":
            return self.equal_power_w
        if not self.has("ours"):
            return np.broadcast_to(self.constants["power_max_w"], self.beta.shape)
        common = policy.power_max_w or self.equal_power_w.max(axis=1, keepdims=True)
        return np.minimum(common, self.constants["power_max_w"])

    # Computing

    def law_j(self, cycles: Array | float, f_hz: Array, leaking_hz: Array | None = None) -> Array:
        """E by the law, without the factor: λcf², or c·C·V(f)² + P_leak·c/f; NaN where the law is a user's own.

        leaking_hz: of the second term, if it is another: no frequency in between takes more, or less.
        """
        law = self.run.law
        if law.kind == "own":
            return np.full(np.shape(f_hz), np.nan)
        if law.kind == "cubic":
            return law.power_coefficient * cycles * np.square(f_hz)
        core = self.constants["core"].astype(int)
        farad, leakage = (
            np.array([getattr(each, name) for each in law.cores])[core] for name in ("capacitance_f", "leakage_w")
        )
        return cycles * farad * np.square(self._volts(core, f_hz)) + leakage * cycles / (
            f_hz if leaking_hz is None else leaking_hz
        )

    def _volts(self, core: Array, f_hz: Array) -> Array:
        """V(f): on the straight line between operating points; discrete: of the first point that is not below f."""
        found = np.empty(np.broadcast_shapes(np.shape(f_hz), core.shape))
        f_hz = np.broadcast_to(f_hz, found.shape)
        for number, each in enumerate(self.run.law.cores):
            mine, points_hz, volts = core == number, np.array(each.frequency_hz), np.array(each.voltage_v)
            if self.run.law.discrete:
                at = np.searchsorted(points_hz * (1 + AT_A_POINT), f_hz[..., mine])
                found[..., mine] = volts[np.minimum(at, len(volts) - 1)]
            else:
                found[..., mine] = np.interp(f_hz[..., mine], points_hz, volts)
        return found

    def computing_j(self, f_hz: Array) -> Array:
        return self.factor * self.law_j(self.cycles, f_hz)

    @cached_property
    def used_hz(self) -> Array:
        """The frequency of computing: c/t_cmp of those who may choose it, f of all others."""
        if self.has("ours, equal"):
            return self.f_hz
        chose = self.scheduled & (self.t_cmp_s > 0)
        chosen = self.cycles / np.where(chose, self.t_cmp_s, 1.0)
        if self.has("ours"):  # where its own clock says how long it took, within the frequencies that it has
            within = np.clip(chosen, self.constants["frequency_low_hz"].min(), self.f_hz)
            return np.where(chose, np.where(self.t_cmp_s_measured, within, chosen), self.f_hz)
        return np.where(chose & ~self.t_cmp_s_measured, chosen, self.f_hz)

    # Sending

    def sending_s(self, n: Array | float, gain_ratio: Array | float, bits: Array | float | None = None) -> Array:
        """S/R with R = (B/n) log2(1 + n P0 (|g|²/β) / (B N0)), as P_k = P0/β_k; infinite at zero gain."""
        radio = self.run.radio
        share_hz = radio.bandwidth_hz / np.asarray(n, dtype=np.float64)
        snr = radio.received_power_w * np.asarray(gain_ratio, dtype=np.float64) / (share_hz * radio.noise_w_per_hz)
        return (self.update_bits if bits is None else bits) * np.log(2.0) / (share_hz * np.log1p(snr))

    def surrogate_s(self, n: Array | float) -> Array:
        """T~(n) = S/(γ R at |g|² = β)."""
        return self.sending_s(n, 1.0) / self.run.radio.rate_discount

    def planned_j(self, n: Array | float) -> Array:
        """E~(n) = E_cmp + p (P0/β) T~(n) + E_down."""
        sending = self.reliability * self.equal_power_w * self.surrogate_s(n)
        return self.computing_j(self.f_hz) + sending + self.download_j

    @cached_property
    def energy_j(self) -> Array:
        """What each device spent in the round."""
        return spent_j(self.values)

    # Who may be scheduled, and how important its data is

    @cached_property
    def allowed(self) -> Array:
        """Who may be scheduled by what it holds, by T_k > 0 and by P0/β ≤ P_max, but for rounding."""
        holds = (self.stored >= 1) | (self.run.data.eligible == "any")
        limit_w = np.broadcast_to(self.constants["power_max_w"], self.beta.shape)
        within = np.where(close(self.equal_power_w, limit_w), self.available, self.equal_power_w <= limit_w)
        return holds & (self.time_s > 0) & within

    def feasible_at(self, n: Array | float) -> tuple[Array, Array]:
        """Π_f(n) = {k : available and c/f + T~(n) ≤ T_k}, and where rounding alone decides."""
        needed_s = self.cycles / self.f_hz + self.surrogate_s(n)
        edge = close(needed_s, np.broadcast_to(self.time_s, needed_s.shape))
        return self.available & (needed_s <= self.time_s), self.available & edge

    def amount_at(self, feasible: Array) -> Array:
        """|Π_f| |B_k| / Σ_{j∈Π_f} |B_j|, 0 where that sum is 0."""
        total = np.where(feasible, self.fresh, 0).sum(axis=-1, keepdims=True)
        members = feasible.sum(axis=-1, keepdims=True)
        return np.where(total > 0, members * self.fresh / np.maximum(total, 1), 0.0)

    @cached_property
    def unlike(self) -> tuple[Array, Array]:
        """‖x − y‖² / (‖x‖² + ‖y‖²), and where an edge rule fixes it.

        x and y are m·p − 1 for label proportions p of what was used and what is fresh, so the factor m² cancels and
        p − 1/m serves as well. Edge rules: 0 in round 1, and where both are zero vectors (evenly spread, or empty and
        read as the vector). Nothing used yet, or nothing fresh: 0 where the setting says zero; where it says vector, 1
        unless the other is zero too.
        """
        told = self.has("features")
        used, fresh = (self.used_features, self.fresh_features) if told else (self.used_labels, self.fresh_labels)
        x, x_empty, x_even = _centred(used.sum(axis=1, keepdims=True))
        y, y_empty, y_even = _centred(fresh)
        x, y = np.where(x_empty[..., None], 0.0, x), np.where(y_empty[..., None], 0.0, y)
        zero = (self.t == 1) | ((x_even | x_empty) & (y_even | y_empty))
        if self.run.data.empty_used == "zero":
            zero = zero | x_empty
        if self.run.data.empty_fresh == "zero":
            zero = zero | y_empty
        norms = np.square(x).sum(axis=-1) + np.square(y).sum(axis=-1)
        fixed = zero | x_empty | y_empty
        return np.where(zero, 0.0, np.square(x - y).sum(axis=-1) / np.where(zero, 1.0, norms)), fixed

    @property
    def known_to_hold(self) -> Array:
        """Who holds data, as far as the policy knows: it may go by vectors of all that is held, as reported."""
        return self.stored_features.sum(axis=-1) > 0 if self.has("features, labels") else self.stored > 0

    def importance_at(self, feasible: Array) -> tuple[Array, Array]:
        """I by the metric, times priority and reliability, and the size of its terms; another's as stored."""
        if not self.has("metric"):
            given = np.where(self.feasible, self.importance, 0.0)
            return given, np.abs(given)
        metric = METRICS[self.run.policy.metric]
        dissimilarity, fixed = self.unlike
        amount, factor = self.amount_at(feasible), self.priority * self.reliability
        # Nearly equal label proportions cancel, so what no edge rule fixes is known only to a rounding error of 1.
        return factor * metric(amount, dissimilarity), factor * metric(amount, np.where(fixed, 0.0, 1.0))

    @cached_property
    def worth(self) -> tuple[Array, Array]:
        """The same of the stored feasible set."""
        return self.importance_at(self.feasible)

    @property
    def tolerance(self) -> float:
        """Of what an allocation came to."""
        return RELATIVE if self.traits & {"ours", "equal"} else OF_OTHERS


def _centred(vectors: Array) -> tuple[Array, Array, Array]:
    vectors = vectors.astype(np.int64, copy=False)
    m, total = vectors.shape[-1], vectors.sum(axis=-1)
    even = (vectors * m == total[..., None]).all(axis=-1)
    # The numerator is a whole number: proportions that are nearly even must not cancel.
    return (vectors * m - total[..., None]) / (np.maximum(total, 1) * m)[..., None], total == 0, even
