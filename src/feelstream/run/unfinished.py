"""A run that is under way, or was cut short, as far as it is stored: for whoever wants to look at it meanwhile.

Nothing is written to the run's own files, and whoever plays the run is not disturbed. Rows that are stored are never
changed, so that what was read once stays true.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from feelstream.errors import RunError
from feelstream.run.checkpoint import Checkpoint
from feelstream.run.manifest import Manifest
from feelstream.run.presentation import introduce
from feelstream.run.run import Run, read
from feelstream.scenario.files import stored_scenario

SO_FAR = "so-far"  # where a report of an unfinished run is put, in its directory


def is_unfinished(directory: Path) -> bool:
    return (directory / "run.json").is_file() and not Manifest.read(directory).complete


def read_so_far(directory: str | Path) -> Run:
    """The rounds that are stored by now; the scenario says how many there will be."""
    path = Path(directory)
    manifest = Manifest.read(path)
    if manifest.complete:
        return read(path)
    scenario = stored_scenario(manifest.scenario, path / "run.json", manifest.promises)
    checkpoint = Checkpoint(path / "progress", manifest.identity, scenario.trace.level == "full")
    try:
        tables = checkpoint.stored()
    except RunError:
        if Manifest.read(path).complete:  # it has ended while it was read
            return read(path)
        raise
    introduce(tables.rounds.columns, manifest)
    return Run(scenario, manifest.seed, tables.rounds, tables.devices, manifest, None, evaluations=tables.evaluations)


def saved_so_far(directory: str | Path) -> Path:
    """The stored rounds as a run of their own, complete after so many, in `so-far` of the run's directory."""
    run, out = read_so_far(directory), Path(directory) / SO_FAR
    scenario = dict(run.manifest.scenario)
    scenario["system"] = {**scenario["system"], "rounds": run.rounds.height}
    manifest = run.manifest.model_copy(update={"scenario": scenario})
    shutil.rmtree(out, ignore_errors=True)
    shorter = Run(run.scenario, run.seed, run.rounds, run.devices, manifest, evaluations=run.evaluations)
    return shorter.save(out / Path(directory).resolve().name)
