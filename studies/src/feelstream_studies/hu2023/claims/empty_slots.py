"""How many of a policy's slots go to devices that hold nothing yet."""

from __future__ import annotations

import polars as pl

from feelstream.studies.results import Results

COLUMNS = ("stored", "scheduled")


def empty_share(devices: pl.DataFrame) -> float | None:
    """Σ_t |{k ∈ Π*(t) : S_k(t) = ∅}| / Σ_t |Π*(t)| from a run's device table; None where nobody was scheduled."""
    slots = devices.filter("scheduled")
    return float((slots["stored"] == 0).mean()) if len(slots) else None  # pyright: ignore[reportArgumentType]


def empty_slots(results: Results, arm: str) -> dict[int, float]:
    """`empty_share` of every finished run of an arm, by seed; nothing where its device tables were not kept."""
    shares: dict[int, float] = {}
    for label, seed in results.finished:
        if label == arm:
            devices = results.devices(label, seed, COLUMNS)
            share = None if devices is None else empty_share(devices)
            if share is not None:
                shares[seed] = share
    return shares
