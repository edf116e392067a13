"""Traces: the tables a run leaves behind, one row per round, one per device and round, one per entry of an array.

They hold everything that was known, decided and spent, and nothing that depends on wall-clock time. columns.py
describes every column; where its values come from stands here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.columns import DEVICE_COLUMNS, EVALUATION_COLUMNS, FACTS, REAL, ROUND_COLUMNS, Column, columns_of
from feelstream.loop.round import RoundRecord
from feelstream.policies.base import STORED_FEATURES
from feelstream.scenario import Scenario

ROUNDS = {name: column.kind for name, column in columns_of(ROUND_COLUMNS, ()).items()}  # of every run

OWN = Column(REAL, "", "of the policy's own", null="where it gives none")

RoundValues = dict[str, float | int | None]  # by column


class Tables(NamedTuple):
    """devices is None at trace level `rounds`; evaluations too, and where no evaluator gave an array."""

    rounds: pl.DataFrame
    devices: pl.DataFrame | None = None
    evaluations: pl.DataFrame | None = None


def facts_of(scenario: Scenario, deployment: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """What is true of a run, of `FACTS`. deployment: what run.json says of it, where it is one."""
    simulated = deployment is None
    scenario = scenario if simulated else scenario.deployed
    system = scenario.known_system(classes=1)
    own_costs = not scenario.costs.rule.of_settings
    learns_reliability = scenario.learns_reliability if simulated else scenario.system.reliability == "learned"
    holds = {
        "packet_errors": system.block_bits > 0,
        "downloads": own_costs or system.downloads,
        "own_costs": own_costs,
        "labels": STORED_FEATURES in scenario.policy.needs,
        "asks": system.reports is not None,
        "features": scenario.data.features.reported,
        "fallible": learns_reliability,
        "batteries": simulated and scenario.world.harvest.battery_j is not None,
        "deployed": not simulated,
        "cuts": deployment is not None and deployment["first"] is not None,
        "plans_measured": deployment is not None and deployment["plans"] == "measured",
    }
    evaluators = scenario.learning.evaluators if simulated else ()
    return tuple(name for name in FACTS if holds.get(name, name.removeprefix("evaluates_") in evaluators))


MANY = 2**17  # rows held as arrays, about 50 MB


class Rows:
    """The rows of rounds that were run and not yet taken; of devices and of arrays only if the level is `full`.

    facts: what is true of the run, which decides about the columns. energy_sum_j: Σ of `energy_mean_j` before.
    """

    def __init__(self, full: bool, facts: Collection[str], energy_sum_j: float = 0.0) -> None:
        self._full, self._columns = full, columns_of(DEVICE_COLUMNS, facts)
        self._energy_sum_j = energy_sum_j
        self._evaluations: list[dict[str, NDArray]] = []
        self._rounds: list[RoundValues] = []
        self._devices: list[dict[str, NDArray]] = []
        self.many = False  # whether it is time to write them, before they fill the memory

    def add(self, record: RoundRecord) -> RoundValues:
        """Take in a round; its row of rounds.parquet."""
        row = round_row(record)
        self._energy_sum_j += row["energy_mean_j"] or 0.0
        row["energy_mean_cum_j"] = self._energy_sum_j / record.observation.round  # (1/t) Σ_{s≤t}
        self._rounds.append(row)
        if self._full:
            self._devices.append(device_rows(record, self._columns))
            for evaluator, name, values in record.measured.arrays:
                self._evaluations.append(
                    {
                        "round": np.full(len(values), record.observation.round, np.int32),
                        "evaluator": np.full(len(values), evaluator),
                        "name": np.full(len(values), name),
                        "index": np.arange(len(values), dtype=np.int32),
                        "value": np.asarray(values, np.float64),
                    }
                )
        self.many = len(self._rounds) * (len(record.gain) if self._full else 1) >= MANY
        return row

    def take(self) -> Tables:
        """The tables of the rows so far, which are forgotten here."""
        devices = _frame(self._devices, self._columns) if self._full else None
        arrays = _frame(self._evaluations, EVALUATION_COLUMNS) if self._evaluations else None
        tables = Tables(_rounds_frame(self._rounds), devices, arrays)
        self._rounds, self._devices, self._evaluations = [], [], []
        return tables


def joined(parts: Sequence[Tables]) -> Tables:
    """The tables of a whole run from its parts; no evaluations where no array was ever given."""
    devices = [part.devices for part in parts if part.devices is not None]
    arrays = [part.evaluations for part in parts if part.evaluations is not None]
    return Tables(
        pl.concat([part.rounds for part in parts], how="diagonal", rechunk=True),
        pl.concat(devices, how="diagonal", rechunk=True) if devices else None,
        pl.concat(arrays, rechunk=True) if arrays else None,
    )


def _rounds_frame(rows: Sequence[RoundValues]) -> pl.DataFrame:
    """One row per round; what evaluators gave comes last."""
    measured = dict.fromkeys(name for row in rows for name in row if name not in ROUNDS)  # a set that keeps its order
    kinds = {**ROUNDS, **dict.fromkeys(measured, REAL)}
    return pl.DataFrame({name: pl.Series(name, [row.get(name) for row in rows], kinds[name]) for name in kinds})


def round_row(record: RoundRecord) -> RoundValues:
    """The row of a round by column, without the running mean energy_mean_cum_j."""
    observation, decision = record.observation, record.decision
    return {
        "round": observation.round,
        "sim_time_s": observation.round * observation.system.period_s,
        "planned": decision.plan.n,
        "feasible": int(np.count_nonzero(decision.plan.feasible)),
        "scheduled": len(decision.schedule),
        "transmitted": int(np.count_nonzero(record.transmission.arrived)),
        "importance_sum": float(record.importance[decision.schedule].sum()),
        "energy_mean_j": float(record.energy_j.mean()),
        "queue_mean_j": float(record.queue_next_j.mean()),
        "queue_max_j": float(record.queue_next_j.max()),
        "accuracy": None,  # unless it was measured
        "loss": None,
        **record.measured.numbers,
    }


def _frame(parts: Sequence[Mapping[str, NDArray]], columns: Mapping[str, Column]) -> pl.DataFrame:
    """The rows of all parts, in their order; a policy's own columns come last, null in rounds without them."""
    series, own = [], dict.fromkeys((name for part in parts for name in part if name not in columns), OWN)
    for name, column in {**columns, **own}.items():
        given = [part[name] if name in part else np.full(len(part["round"]), np.nan) for part in parts]
        values = np.concatenate(given) if parts else ()
        series.append(pl.Series(name, values, nan_to_null=column.may_be_null).cast(column.kind))
    return pl.DataFrame(series)


def device_rows(record: RoundRecord, columns: Mapping[str, Column]) -> dict[str, NDArray]:
    """(K,) of each column of the run, and copies of what the next round changes.

    What only some devices have is 0 for those not scheduled, and NaN where not feasible.
    """
    observation, decision, spent = record.observation, record.decision, record.transmission
    K, schedule, held = len(record.gain), decision.schedule, observation.stored_features
    values = {
        "round": np.full(K, observation.round, np.int32),
        "device": np.arange(K, dtype=np.int32),
        "f_hz": observation.f_hz,
        "beta": observation.beta,
        "gain": record.gain,
        "stored": observation.stored,
        "fresh": observation.fresh,
        "fresh_labels": observation.fresh_features.copy(),
        "used_labels": record.used_by_device.copy(),
        "available": observation.available,
        "feasible": decision.plan.feasible,
        "amount": decision.plan.amount,
        "dissimilarity": observation.dissimilarity,
        "importance": record.importance,
        "queue_j": observation.queue_j,
        "score": decision.score,
        "scheduled": np.ones(len(schedule), bool),
        "transmitted": spent.arrived,
        "bandwidth_share": spent.bandwidth_share,
        "power_w": spent.power_w,
        "t_cmp_s": spent.t_cmp_s,
        "t_tr_s": spent.t_tr_s,
        "e_cmp_j": spent.e_cmp_j,
        "e_tr_j": spent.e_tr_j,
        "queue_next_j": record.queue_next_j,
        "lost": spent.lost,
        "t_down_s": observation.system.download_s[schedule],
        "e_down_j": observation.system.download_j[schedule],
        "stored_labels": None if held is None else held.copy(),
        "e_report_j": record.e_report_j,
        "cost_cycles": observation.system.cycles,
        "cost_bits": observation.system.device_bits,
        "cost_down_s": observation.system.download_s,
        "cost_down_j": observation.system.download_j,
        "fresh_features": observation.fresh_features,
        "used_features": record.used_by_device,
        **record.more,
    }
    found: dict[str, NDArray] = {}
    feasible = decision.plan.feasible
    for name, column in columns.items():
        given: Any = values[name]
        if column.filled in ("scheduled", "sent"):
            found[name] = np.zeros(K, np.asarray(given).dtype)
            found[name][schedule] = given
        elif column.filled == "feasible":
            found[name] = np.full(K, np.nan) if given is None else np.where(feasible, given, np.nan)
        else:
            found[name] = given
    return found | {name: np.asarray(values, float) for name, values in decision.columns.items()}
