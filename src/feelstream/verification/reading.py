"""Reads the Parquet files of a run into arrays [rounds] and, block by block, [rounds, devices]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from feelstream.errors import RunError
from feelstream.verification.findings import Array
from feelstream.verification.stored import StoredSettings

WHOLE, REAL, TRUTH, COUNTS = "whole numbers", "real numbers", "booleans", "lists of whole numbers"
# As what each is read, and what stands for a missing value.
FILLED = {WHOLE: (pl.Int64, 0), REAL: (pl.Float64, float("nan")), TRUTH: (pl.Boolean, False)}

ROUND_COLUMNS = {
    **dict.fromkeys(("round", "planned", "feasible", "scheduled", "transmitted"), WHOLE),
    **dict.fromkeys(("sim_time_s", "importance_sum", "energy_mean_j", "energy_mean_cum_j"), REAL),
    **dict.fromkeys(("queue_mean_j", "queue_max_j", "accuracy", "loss"), REAL),
}
DEVICE_COLUMNS = {
    **dict.fromkeys(("round", "device", "stored", "fresh"), WHOLE),
    **dict.fromkeys(("f_hz", "beta", "gain", "amount", "dissimilarity", "importance", "queue_j", "score"), REAL),
    **dict.fromkeys(("bandwidth_share", "power_w", "t_cmp_s", "t_tr_s", "e_cmp_j", "e_tr_j", "queue_next_j"), REAL),
    **dict.fromkeys(("available", "feasible", "scheduled", "transmitted"), TRUTH),
    **dict.fromkeys(("fresh_labels", "used_labels"), COUNTS),
}
# Only a deployment stores these; in a simulation everyone is known, without measurement.
MEASURED = ("t_cmp_s", "t_tr_s", "e_cmp_j", "e_tr_j")
DEPLOYMENT_COLUMNS = {"report_age": WHOLE, **{f"{name}_measured": TRUTH for name in MEASURED}}
ESTIMATE_COLUMNS = dict.fromkeys(  # only of a deployment that plans by what devices measure
    ("t_cmp_prior_s", "t_cmp_planned_s", "t_cmp_spread", "e_cmp_prior_j", "e_cmp_planned_j", "e_cmp_spread",
     "e_cmp_read_j", "trained_hz"),
    REAL,
)  # fmt: skip
ESTIMATES = ("total", "weight", "waiting", "read")  # of each, replayed from block to block
STORED_LABELS = "stored_labels"  # stored of policies that go by them
PRIORITY = "priority"  # stored by a deployment, where devices may state one; elsewhere it is the scenario's
LOST = "lost"  # stored where blocks of an update may fail
DOWNLOAD_COLUMNS = {"t_down_s": REAL, "e_down_j": REAL}  # only where receiving the model takes time
COST_COLUMNS = dict.fromkeys(("cost_cycles", "cost_bits", "cost_down_s", "cost_down_j"), REAL)  # of a user's own rule
CUT = "cut"  # stored where a deployment waits for the first replies only
RELIABILITY = "reliability"  # stored where updates may not arrive
TURNS = ("turns_delivered", "turns_failed", "turns_in_a_row", "rests_until")  # replayed, from block to block
REPORT_COLUMNS = {"e_report_j": REAL}  # only where the policy asks for reports
BATTERY_COLUMNS = {"battery_j": REAL, "harvest_j": REAL}  # only where devices harvest energy
# Of rounds.parquet, by the evaluator that measures them.
EVALUATOR_COLUMNS = {
    "stream": ("stream_loss", "stream_accuracy"),
    "devices": ("device_accuracy_mean", "device_accuracy_std", "worst_tenth"),
    "classes": ("forgetting",),
}
MAY_BE_MISSING = {
    *("accuracy", "loss", "amount", "dissimilarity", "importance", "score", "e_cmp_read_j"),
    *(name for names in EVALUATOR_COLUMNS.values() for name in names),
}

# Rows held at a time, so that a run of any length needs bounded memory.
BLOCK_ROWS = 200_000


@dataclass(frozen=True)
class Table:
    """Columns of some rounds: values [R], [R, K] or [R, K, classes], and where they are null (NaN or 0)."""

    rounds: Array  # [R], what the round numbers must be
    values: dict[str, Array]
    nulls: dict[str, Array]
    measured: tuple[str, ...] = field(default=(), kw_only=True)  # columns of evaluators beside the test

    def __getitem__(self, column: str) -> Array:
        return self.values[column]


@dataclass(frozen=True)
class Block(Table):
    """Some successive rounds of devices.parquet, and the last round before them."""

    last: dict[str, Array]  # [K] or [K, classes]

    @property
    def sent(self) -> Array:
        """Who used the band, whether the update arrived or was lost. [R, K]"""
        return self["transmitted"] | self["lost"]

    @property
    def energy_j(self) -> Array:
        """What each device spent in the round. [R, K]"""
        spent = self["e_cmp_j"] + self["e_tr_j"] + self["e_report_j"]
        return spent + self["e_down_j"] if "e_down_j" in self.values else spent

    def before(self, column: str) -> Array:
        """The column one round earlier; before the first round everything is zero (β: its first value)."""
        return np.concatenate([self.last[column][None], self.values[column][:-1]])


def read_rounds(directory: Path, settings: StoredSettings) -> Table:
    """rounds.parquet as arrays [T]."""
    path = directory / "rounds.parquet"
    measured = () if settings.deployed else _measured(path, settings)
    columns = ROUND_COLUMNS | dict.fromkeys(measured, REAL)
    _check_shape(path, columns, settings.T, f"{settings.T} rounds")
    frame = _load(path, 0, settings.T, list(columns))
    values, nulls = _arrays(path, frame, columns, (settings.T,))
    return Table(np.arange(1, settings.T + 1), values, nulls, measured=measured)


def _measured(path: Path, settings: StoredSettings) -> tuple[str, ...]:
    """Columns of evaluators: those that ours must have, and all others where the user has evaluators of his own."""
    ours = tuple(name for evaluator in settings.evaluators for name in EVALUATOR_COLUMNS.get(evaluator, ()))
    if not set(settings.evaluators) - {"test", *EVALUATOR_COLUMNS}:
        return ours
    return (*ours, *(name for name in _columns(path) if name not in ROUND_COLUMNS and name not in ours))


def read_blocks(directory: Path, settings: StoredSettings, phases: Iterable[int] = (1,)) -> Iterator[Block]:
    """devices.parquet in blocks of rounds, in order; a block ends where one of the phases begins."""
    path, K = directory / "devices.parquet", settings.K
    columns = DEVICE_COLUMNS | (DEPLOYMENT_COLUMNS if settings.deployed else {})
    columns |= {CUT: TRUTH} if settings.cuts else {}
    columns |= ESTIMATE_COLUMNS if settings.plans_measured else {}
    columns |= {LOST: TRUTH} if settings.costs.block_bits else {}
    columns |= DOWNLOAD_COLUMNS if settings.costs.downloads else {}
    columns |= COST_COLUMNS if settings.costs.own else {}
    columns |= REPORT_COLUMNS if settings.reports else {}
    columns |= BATTERY_COLUMNS if settings.around.capacity_j is not None else {}
    by_labels = settings.rationed is not None and settings.rationed.knows == "labels"
    columns |= {STORED_LABELS: COUNTS} if by_labels or _has(path, STORED_LABELS) else {}
    columns |= {RELIABILITY: REAL} if settings.learns_reliability else {}
    columns |= {PRIORITY: REAL} if settings.deployed and _has(path, PRIORITY) else {}
    _check_shape(path, columns, settings.T * K, f"{settings.T} rounds of {K} devices")
    step = max(1, BLOCK_ROWS // K)
    last: dict[str, Array] | None = None
    starts = sorted({*range(0, settings.T, step), *(first - 1 for first in phases)})
    for start, end in pairwise([*starts, settings.T]):
        R = end - start
        frame = _load(path, start * K, R * K, list(columns))
        values, nulls = _arrays(path, frame, columns, (R, K), settings.classes)
        if not settings.deployed:
            values["report_age"] = np.zeros((R, K), int)
            values |= {f"{name}_measured": np.zeros((R, K), bool) for name in MEASURED}
        values.setdefault("e_report_j", np.zeros((R, K)))
        values.setdefault(PRIORITY, np.broadcast_to(settings.priority, (R, K)))
        values.setdefault(LOST, np.zeros((R, K), bool))
        values.setdefault(CUT, np.zeros((R, K), bool))
        values.setdefault(RELIABILITY, np.broadcast_to(1.0, (R, K)))
        if last is None:
            last = {name: np.zeros_like(column[0]) for name, column in values.items()}
            last["beta"] = values["beta"][0]
            last["battery_next_j"] = np.full(K, settings.around.start_j)
            last |= {name: np.zeros(K) for name in TURNS}
            last["tried"] = np.zeros(K)
            for name in ("t", "e"):
                last |= {f"{name}_total": np.zeros(K), f"{name}_weight": np.zeros(K)}
                last |= {f"{name}_waiting": np.full(K, np.nan), f"{name}_read": np.full(K, -np.inf)}
            last["report_age"] = np.full(K, -1 if settings.deployed else 0)
        lists = [name for name, kind in columns.items() if kind == COUNTS]
        if any(values[name].shape[2:] != last[name].shape[1:] for name in lists):
            raise RunError(f"{path}: the label lists do not all have one length.")
        yield Block(np.arange(start + 1, start + R + 1), values, nulls, last)
        last = {name: column[-1] for name, column in values.items()}


def _has(path: Path, column: str) -> bool:
    return column in _columns(path)


def _columns(path: Path) -> list[str]:
    try:
        return pl.scan_parquet(path, glob=False).collect_schema().names()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return []  # what is wrong with the file is said where it is read


def _check_shape(path: Path, columns: dict[str, str], rows: int, meaning: str) -> None:
    if not path.is_file():
        raise RunError(f"{path.parent} is not a whole run: {path.name} is missing.")
    try:
        table = pl.scan_parquet(path, glob=False)  # a path may hold [ or *
        schema, found = table.collect_schema(), table.select(pl.len()).collect().item()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise RunError(f"{path} is damaged: it cannot be read as a Parquet file.") from None
    for name, kind in columns.items():
        if name not in schema:
            raise RunError(f"{path} lacks the column {name}.")
        if not _is_kind(schema[name], kind) and not (name in MAY_BE_MISSING and schema[name] == pl.Null):
            raise RunError(f"{path}: the column {name} must hold {kind}, not {schema[name]}.")
    if found != rows:
        raise RunError(f"{path} has {found} rows, but {meaning} need {rows}.")


def _is_kind(dtype: pl.DataType, kind: str) -> bool:
    if kind == COUNTS:
        return isinstance(dtype, pl.List | pl.Array) and dtype.inner.is_integer()
    return {WHOLE: dtype.is_integer(), REAL: dtype.is_float(), TRUTH: dtype == pl.Boolean}[kind]


def _load(path: Path, start: int, rows: int, columns: list[str]) -> pl.DataFrame:
    try:
        return pl.scan_parquet(path, glob=False).slice(start, rows).select(columns).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise RunError(f"{path} is damaged: its rows cannot be read.") from None


def _arrays(
    path: Path,
    frame: pl.DataFrame,
    columns: dict[str, str],
    shape: tuple[int, ...],
    classes: int | None = None,
) -> tuple[dict[str, Array], dict[str, Array]]:
    values: dict[str, Array] = {}
    nulls: dict[str, Array] = {}
    for name, kind in columns.items():
        series = frame[name]
        some = series.null_count() > 0  # most columns lack nothing, and to ask for nulls or fill them is a query each
        nulls[name] = series.is_null().to_numpy().reshape(shape) if some else np.zeros(shape, bool)
        if kind == COUNTS:
            values[name] = _label_counts(path, series, classes).reshape(*shape, -1)
            continue
        dtype, missing = FILLED[kind]
        series = series.cast(dtype)
        values[name] = (series.fill_null(missing) if some else series).to_numpy().reshape(shape)
    return values, nulls


def _label_counts(path: Path, series: pl.Series, classes: int | None) -> Array:
    """A column of equally long lists as one flat array; a missing count reads as −1, which no rule allows."""
    lists = series.cast(pl.List(pl.Int64))
    lengths = lists.list.len()
    wanted = classes if classes is not None else lengths.max()
    if wanted == 0 or lists.null_count() or (lengths.to_numpy() != wanted).any():
        raise RunError(f"{path}: every list in the column {series.name} must have one entry per class ({wanted}).")
    counts = lists.explode()
    return (counts.fill_null(-1) if counts.null_count() else counts).to_numpy()
