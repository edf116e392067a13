"""Where a plan and its runs are kept: OUT/plan.json and ordinary run directories in OUT/runs.

Several plans may share one runs directory; a run that two plans or two arms have in common is played once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.errors import RunError
from feelstream.experiment.gathering import gather
from feelstream.experiment.index import Index, Known
from feelstream.experiment.plan import Arm, Plan
from feelstream.run import Run, read
from feelstream.run.files import (
    appear_whole,
    check_digest,
    read_bytes,
    read_json,
    read_table,
    sealed,
    write_sealed,
)
from feelstream.run.manifest import Manifest
from feelstream.scenario.files import stored_scenario
from feelstream.version import __version__

FORMAT = 1
NOT_YET = "not finished yet; give the command that began it again to finish it"
Key = tuple[str, int]  # label of the arm, seed


@dataclass(frozen=True)
class Failure:
    """A run of the plan that there is no result of, and why."""

    arm: str
    seed: int
    reason: str


@dataclass
class Results:
    """A plan and what has been played of it, as it was when it was opened."""

    plan: Plan
    directories: dict[Key, Path] = field(repr=False)  # where each run is or will be
    failures: list[Failure]  # every run that is not finished, in the order of the plan
    known: dict[Path, Known] = field(default_factory=dict, repr=False, compare=False)  # the finished ones, checked
    index: Index | None = field(default=None, repr=False, compare=False)  # of the directory that they were opened in
    _rounds: pl.DataFrame | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def finished(self) -> list[Key]:
        """(arm, seed) of every finished run, by arm in the order of the plan, then by seed."""
        missing = {(failure.arm, failure.seed) for failure in self.failures}
        keys = ((arm.label, seed) for arm in self.plan.arms for seed in sorted(self.plan.seeds_of(arm)))
        return [key for key in keys if key not in missing]

    def run(self, arm: str, seed: int) -> Run:
        """One finished run with all its tables."""
        if seed not in self.plan.seeds_of(self.plan.arm(arm)):
            raise RunError(f"the plan '{self.plan.name}' has no seed {seed} of {arm}")
        for failure in self.failures:
            if (failure.arm, failure.seed) == (arm, seed):
                raise RunError(f"there is no result of {arm}, seed {seed}: {failure.reason}")
        return read(self.directories[arm, seed])

    def about(self, arm: str, seed: int) -> Mapping[str, Any]:
        """What run.json of a finished run says of its versions, engine, data and timings."""
        path = self.directories[arm, seed]
        return self.known[path].about if path in self.known else Manifest.read(path).as_dict()

    def rounds(self) -> pl.DataFrame:
        """Columns arm, seed and those of rounds.parquet, for all finished runs; by arm, seed, round.

        A column that only some runs have, from an evaluator, is null in the others.
        """
        if self._rounds is None:
            runs = [(*key, self.directories[key]) for key in self.finished]
            self._rounds = gather(runs, self.known, self.index, lambda path: self._table(path, "rounds.parquet"))
        return self._rounds

    def devices(self, arm: str, seed: int, columns: Sequence[str]) -> pl.DataFrame | None:
        """Those of the columns that one finished run's devices.parquet has; None where its trace level left it out."""
        if self.plan.arm(arm).scenario.trace.level != "full":
            return None
        return self._table(self.directories[arm, seed], "devices.parquet", columns)

    def _table(self, path: Path, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        try:
            digests = self.known[path].digests if path in self.known else Manifest.read(path).digests
            check_digest(path / name, digests.get(name))
            return read_table(path / name, columns)
        except RunError as problem:
            raise RunError(
                f"{problem}; remove the directory {path} and give the command that made it again"
            ) from problem


def load(out: str | Path) -> Results:
    """The results of a plan that was executed in this directory, wholly or in part."""
    file = Path(out) / "plan.json"
    if not file.is_file():
        raise RunError(f"{out} holds no results: it has no plan.json")
    stored = read_plan(file)
    try:
        arms = tuple(
            Arm(
                entry["label"],
                stored_scenario(entry["scenario"], file, entry.get("promises")),
                entry.get("most_seeds"),
            )
            for entry in stored["arms"]
        )
        said = (str(stored.get(name, "")) for name in ("command", "study"))  # plans of earlier versions have no study
        plan = Plan(stored["name"], arms, tuple(stored["seeds"]), *said)
        runs = Path(out) / stored["runs"]
        directories = {
            (entry["label"], int(seed)): runs / name for entry in stored["arms"] for seed, name in entry["runs"].items()
        }
        problems = {entry["label"]: entry.get("problem") for entry in stored["arms"]}
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise RunError(f"{file} is damaged: it does not describe a plan") from problem
    index = Index(Path(out))
    known, reasons = checked(directories.values(), index)
    failures = [
        Failure(arm.label, seed, problems[arm.label] or reason)
        for arm in arms
        for seed in plan.seeds_of(arm)
        if (reason := reasons.get(directories.get((arm.label, seed)), NOT_YET))
    ]
    return Results(plan, directories, failures, known, index)


def checked(directories: Iterable[Path], index: Index) -> tuple[dict[Path, Known], dict[Path | None, str | None]]:
    """Of every run what is known of it if it is finished, and why it cannot be used, None where it can.

    All files of every run are read and hashed. Where they are those of the index, nothing need be parsed.
    """
    known, reasons = dict[Path, Known](), dict[Path | None, str | None]()
    for path in dict.fromkeys(directories):
        there = index.known.get(path.name)
        found = there if there is not None and there.is_as_it_was(path) else examined(path)
        if isinstance(found, Known):
            known[path] = found
        reasons[path] = None if isinstance(found, Known) else found
    return known, reasons


def write_plan(
    out: Path, runs: Path, plan: Plan, directories: dict[Key, Path], problems: dict[str, str | None]
) -> None:
    """Say what belongs to this plan and where it is, before the first run is played."""
    arms = [
        {
            "label": arm.label,
            "scenario": arm.scenario.as_dict(),
            "promises": arm.scenario.promises(),
            "runs": {
                str(seed): directories[arm.label, seed].name
                for seed in plan.seeds_of(arm)
                if (arm.label, seed) in directories
            },
            "most_seeds": arm.most_seeds,
            "problem": problems.get(arm.label),
        }
        for arm in plan.arms
    ]
    about = {
        "format": FORMAT,
        "feelstream": __version__,
        "name": plan.name,
        "command": plan.command,
        "study": plan.study,
        "seeds": list(plan.seeds),
        "runs": os.path.relpath(runs, out),
        "arms": arms,
    }
    file = out / "plan.json"
    if not file.is_file() or read_bytes(file) != sealed(about):  # to write it takes longer, the more runs there are
        write_sealed(file, about)


def refuse_other_formats(out: Path) -> None:
    """Leave results alone that this version would not understand."""
    if (out / "plan.json").exists():
        read_plan(out / "plan.json")


def read_plan(file: Path) -> dict[str, Any]:
    stored = read_json(file)
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        written = stored.get("format") if isinstance(stored, dict) else None
        raise RunError(
            f"{file} was written in format {written} and this version has format {FORMAT}; "
            "choose another directory or remove it"
        )
    return stored


def why_not(directory: Path | None) -> str | None:
    """Why this run cannot be used, or None if it is finished."""
    found = NOT_YET if directory is None else examined(directory)
    return found if isinstance(found, str) else None


def examined(directory: Path) -> Known | str:
    """What is known of a finished run, all of whose files are as they were written, or why it cannot be used."""
    file = directory / "run.json"
    if not os.path.isfile(file):  # not Path.is_file, which raises for a name that no file system has
        return NOT_YET
    try:
        content = read_bytes(file)
        manifest = Manifest.parse(read_json(file, content), directory)
        if not manifest.complete:
            return NOT_YET
        for name, digest in manifest.digests.items():
            check_digest(directory / name, digest)
    except RunError as problem:
        return f"{problem}; remove the directory {directory} and give the command that made it again"
    return Known.of(manifest, content)


def receive(directory: Path, files: dict[str, bytes], known: dict[str, Any]) -> str | None:
    """Store a run that was played elsewhere, whole or not at all; why not, if it is not the run that was asked for."""
    about = Manifest.parse(read_json(directory / "run.json", files["run.json"]), directory)
    tables = {name: sha256(content).hexdigest() for name, content in files.items() if name != "run.json"}
    if not about.complete or tables != about.digests or any(Path(name).name != name for name in files):
        return "a worker sent other files than those of a complete run"
    for what, played, asked in (
        ("engine", about.engine, known["engine"]),
        ("data", about.data.get("digest"), known["data"]),
    ):
        if played != asked:
            return f"a worker ran it with other {what} ({played}) than the first worker has ({asked})"
    appear_whole(directory, files)
    return None


def _is_alive(temporary: Path) -> bool:
    """Whether the process that writes .NAME.PID.tmp is still there."""
    pid = temporary.name.split(".")[-2]
    try:
        os.kill(int(pid), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True


def tidy(out: Path, runs: Path) -> None:
    """Remove what a killed call left and nobody will look at again. Only under the lock of the runs directory."""
    unfinished = list[str]()
    with os.scandir(runs) as entries:  # in one pass: a plan may have tens of thousands of runs
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(".tmp"):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif os.path.lexists(f"{entry.path}/progress"):
                unfinished.append(entry.path)
    for folder in (out, out / "figures", out / "index"):
        for left in folder.glob(".*.tmp"):
            if left.is_file() and not _is_alive(left):
                left.unlink(missing_ok=True)
    for path in unfinished:
        if why_not(Path(path)) is None:
            shutil.rmtree(f"{path}/progress", ignore_errors=True)
