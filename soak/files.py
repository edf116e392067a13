"""Files that a scenario names, drawn at random: traces, tables of devices, and a small natural stream."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

OWNERS = 8
Tables = dict[str, dict[str, Any]]


def natural_stream(path: Path) -> Path:
    """Eighty vectors of three classes with owners and times, as an .npz file."""
    rng = np.random.default_rng(0)
    labels = np.arange(80) // 5 % 3
    features = rng.normal(labels[:, None], 1.0, (80, 4)).astype(np.float32)
    owner = np.arange(80) % OWNERS
    times = np.arange(80) // OWNERS * 1.7 + owner * 0.1
    np.savez(
        path, x_train=features, y_train=labels, x_test=features, y_test=labels, owner_train=owner, time_train=times
    )
    return path


def traced(draw: random.Random, tables: Tables, directory: Path, samples: int) -> dict[str, Any]:
    """Put traces and a table of devices in the place of some processes; what was written, for the report."""
    devices, rounds = tables["system"]["devices"], tables["system"]["rounds"]
    round_s = tables["system"].get("round_s", 4.0)

    def rows(**columns: Any) -> dict[str, list]:
        count = draw.randint(0, 12)
        return {name: [value() for _ in range(count)] for name, value in columns.items()}

    def device() -> int:
        return draw.randrange(devices)

    def round() -> int:
        return draw.choice([draw.randint(1, rounds), draw.randint(1, rounds + 2), 2**31 - 1])

    written: dict[str, Any] = {}
    if draw.random() < 0.3:
        written["data.arrivals"] = rows(
            time=lambda: draw.uniform(0, 1.2 * rounds * round_s), device=device, sample=lambda: draw.randrange(samples)
        )
    if draw.random() < 0.3:
        written["world.frequency"] = rows(round=round, device=device, f_hz=lambda: 10 ** draw.uniform(6, 11))
    if draw.random() < 0.3:
        written["world.availability"] = rows(round=round, device=device, available=lambda: draw.randint(0, 1))
    for where, columns in written.items():
        section, name = where.split(".")
        tables[section][name] = {"kind": "trace", "path": str(_write(draw, columns, directory / where))}
    if draw.random() < 0.3:
        table: dict[str, list] = {"device": draw.sample(range(devices), devices)}
        numbers = (("energy_budget_j", -7, 2), ("cycles", 6, 10), ("priority", -2, 2), ("power_max_w", -1, 1))
        for name, low, high in numbers:
            if draw.random() < 0.5:
                table[name] = [10 ** draw.uniform(low, high) for _ in range(devices)]
        written["devices.table"] = table
        tables.setdefault("devices", {})["table"] = str(_write(draw, table, directory / "devices"))
    return written


def _write(draw: random.Random, columns: dict[str, list], path: Path) -> Path:
    table = pl.DataFrame(columns)
    if draw.random() < 0.03 and table.height:  # parsed in a process of its own, which takes as long as thirty trials
        table.write_parquet(path.with_suffix(".parquet"))
        return path.with_suffix(".parquet")
    table.write_csv(path.with_suffix(".csv"))
    return path.with_suffix(".csv")
