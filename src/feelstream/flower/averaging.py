"""Models that came back: are they usable, and what is their average?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from numpy.typing import NDArray

from feelstream.flower.report import REPORT, ReportError


def checked_update(content: RecordDict, model: ArrayRecord) -> ArrayRecord:
    """The reply's model, if it has the names, shapes and types of ours and finite values; else ReportError."""
    records = list(content.array_records.values())
    if len(records) != 1:
        raise ReportError(f"it carries {len(records)} sets of arrays, not one")
    found = records[0]
    if found.keys() != model.keys():
        raise ReportError("its arrays have other names than the model's")
    for name, array in found.items():
        wanted = model[name]
        if tuple(array.shape) != tuple(wanted.shape) or array.dtype != wanted.dtype:
            raise ReportError(
                f"array '{name}' is {array.dtype} {tuple(array.shape)}, not {wanted.dtype} {wanted.shape}"
            )
        try:
            values = array.numpy()
        except Exception as problem:  # bytes from outside may be anything
            raise ReportError(f"array '{name}' cannot be read: {problem}") from problem
        if values.shape != tuple(wanted.shape) or not np.isfinite(values).all():
            raise ReportError(f"array '{name}' is not finite, or not of the shape it claims")
    return found


def average(model: ArrayRecord, contents: Sequence[RecordDict], stored: NDArray[np.int64]) -> ArrayRecord:
    """θ + Σ |S_k| (θ_k − θ) / Σ |S_j|, array by array, in float64; whole numbers are rounded.

    stored: |S_k| of the senders. Where none of them holds data, the model stays as it is.
    """
    if not stored.any():
        return model
    weights = stored / stored.sum()
    updates = [next(iter(content.array_records.values())) for content in contents]
    averaged: dict[str, Array] = {}
    for name, array in model.items():
        before = array.numpy()
        change = np.zeros(before.shape)
        for weight, update in zip(weights, updates, strict=True):
            change += weight * (update[name].numpy() - before)
        after = before + change
        averaged[name] = Array((np.rint(after) if before.dtype.kind in "iu" else after).astype(before.dtype))
    return ArrayRecord(averaged)


def average_metrics(contents: Sequence[RecordDict], stored: NDArray[np.int64]) -> MetricRecord | None:
    """The clients' own metrics that are single numbers and that all of them sent, averaged in the same way."""
    weights = stored / stored.sum() if stored.any() else np.full(len(contents), 1 / len(contents))
    found = [_numbers(content) for content in contents]
    shared = [name for name in found[0] if all(name in metrics for metrics in found)]
    means = MetricRecord()
    for name in shared:
        means[name] = float(sum(w * metrics[name] for w, metrics in zip(weights, found, strict=True)))
    return means if shared else None


def _numbers(content: RecordDict) -> dict[str, float]:
    own = [record for key, record in content.metric_records.items() if key != REPORT]
    return {name: float(v) for record in own for name, v in record.items() if isinstance(v, int | float)}
