"""A run that was to end after some rounds is told to go on for more."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import RunError
from feelstream.run.files import read_table, sole_writer, write_atomically, write_json
from feelstream.run.manifest import check_same_run, read_about

STATE = "state.npz"  # what a complete deployment keeps, so that it can go on


def save(path: Path, arrays: dict[str, NDArray]) -> None:
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def reopen(out: Path, about: dict[str, Any]) -> None:
    """Let the run in `out` go on if `about` describes it with more rounds; leave anything else as it is.

    Progress is laid out first and run.json written last, so a kill in between leaves the complete run.
    """
    if not (out / "run.json").is_file():
        return
    with sole_writer(out):
        stored = read_about(out)
        before, now = stored["scenario"]["system"]["rounds"], about["scenario"]["system"]["rounds"]
        if before == now:
            return
        same = {**stored["scenario"], "system": {**stored["scenario"]["system"], "rounds": now}}
        check_same_run(out, {**stored, "scenario": same}, about)
        if now < before:
            raise RunError(f"{out} holds a run of {before} rounds; num_rounds = {now} would cut it short")
        if stored["status"] == "complete":
            _lay_out(out, stored["scenario"]["trace"]["level"] == "full")
        write_json(out / "run.json", {**stored, "scenario": same, "status": "running"})


def _lay_out(out: Path, full: bool) -> None:
    """The complete run as one that is under way: its tables as the first part, its last state as the checkpoint."""
    if not (out / STATE).is_file():
        raise RunError(f"{out} holds a run that is complete, but not its {STATE}, so it cannot go on")
    progress = out / "progress"
    shutil.rmtree(progress, ignore_errors=True)
    progress.mkdir()
    rounds = read_table(out / "rounds.parquet").drop("energy_mean_cum_j")
    write_atomically(progress / "rounds-000000.parquet", rounds.write_parquet)
    if full:
        shutil.copyfile(out / "devices.parquet", progress / "devices-000000.parquet")
    with np.load(out / STATE, allow_pickle=False) as stored:
        state = dict(stored) | {"parts": np.array(1)}
    write_atomically(progress / "checkpoint.npz", lambda path: save(path, state))
