"""A run that was to end after some rounds goes on for more."""

from __future__ import annotations

import shutil
from pathlib import Path

from feelstream.arrays import unflatten
from feelstream.errors import RunError
from feelstream.run.checkpoint import Checkpoint
from feelstream.run.files import check_digest, read_arrays, sole_writer
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.run.run import read_stored
from feelstream.run.trace import Tables

STATE = "state.npz"  # what a complete deployment keeps, so that it can go on


def reopen(out: Path, about: Manifest) -> None:
    """Let the run in `out` go on if `about` describes it with more rounds; leave anything else as it is.

    Progress is laid out first and run.json written last, so a kill in between leaves the complete run.
    """
    if not (out / "run.json").is_file():
        return
    with sole_writer(out):
        stored = Manifest.read(out)
        before, now = stored.scenario["system"]["rounds"], about.scenario["system"]["rounds"]
        if before == now:
            return
        same = {**stored.scenario, "system": {**stored.scenario["system"], "rounds": now}}
        fields = {"scenario": same, "resolved": about.resolved, "status": "running", "digests": {}}
        longer = stored.model_copy(update=fields)
        check_same_run(out, longer, about.as_dict())
        if now < before:
            raise RunError(f"{out} holds a run of {before} rounds; num_rounds = {now} would cut it short")
        if stored.complete:
            _lay_out(out, stored, longer)
        longer.write(out)


def _lay_out(out: Path, stored: Manifest, longer: Manifest) -> None:
    """The complete run as one that is under way: its tables as the first part, its last state as the checkpoint."""
    if not (out / STATE).is_file():
        raise RunError(f"{out} holds a run that is complete, but not its {STATE}, so it cannot go on")
    progress, full = out / "progress", stored.scenario["trace"]["level"] == "full"
    shutil.rmtree(progress, ignore_errors=True)
    progress.mkdir()
    rounds = read_stored(out, "rounds.parquet", stored)
    devices = read_stored(out, "devices.parquet", stored) if full else None
    check_digest(out / STATE, stored.digests.get(STATE))
    Checkpoint(progress, longer.identity).add(Tables(rounds, devices), unflatten(read_arrays(out / STATE)))
