"""Where a plan and its runs are kept: OUT/plan.json and ordinary run directories in OUT/runs.

Several plans may share one runs directory; a run that two plans or two arms have in common is played once. All files of
every run are read and hashed whenever results are opened.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, product
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from feelstream.display.quantities import introduce
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment.identity import canonical
from feelstream.experiment.plan import Arm, Plan
from feelstream.run import Run, read
from feelstream.run.files import appear_whole, check_digest, read_json, read_table, write_sealed
from feelstream.run.manifest import Manifest
from feelstream.run.trace import ROUNDS
from feelstream.scenario.fields import flat
from feelstream.scenario.files import stored_scenario
from feelstream.version import __version__

FORMAT = 1
NOT_YET = "not finished yet; give the command that began it again to finish it"
LONGEST_LABEL = 80  # of what is named by the fields that differ, such as a budget for each device
NOT_GIVEN = "it is not among the runs that were given"
Key = tuple[str, int]  # label of the arm, seed
Of = TypeVar("Of")
Reasons = Mapping[Of, str | None]  # a problem in a sentence; None where there is none


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
    _rounds: pl.DataFrame | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, plan: Plan, directories: dict[Key, Path], problems: Reasons[str], reasons: Reasons[Path]) -> Results:
        """problems: of arms none of whose runs can be played. reasons: why the run in a directory cannot be used."""
        failures = [
            Failure(arm.label, seed, problems.get(arm.label) or reason)
            for arm in plan.arms
            for seed in plan.seeds_of(arm)
            if (reason := reasons.get(directories.get((arm.label, seed), Path()), NOT_YET))
        ]
        return cls(plan, directories, failures)

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

    def about(self, arm: str, seed: int) -> Manifest:
        """What run.json of a finished run says."""
        return Manifest.read(self.directories[arm, seed])

    def rounds(self) -> pl.DataFrame:
        """Columns arm, seed and those of rounds.parquet, for all finished runs; by arm, seed, round.

        A column that only some runs have, from an evaluator, is null in the others.
        """
        if self._rounds is None:
            own = [self._own(*key) for key in self.finished]
            empty = pl.DataFrame(schema={"arm": pl.String(), "seed": pl.Int64(), **ROUNDS})
            self._rounds = pl.concat(own, how="diagonal", rechunk=True) if own else empty
        return self._rounds

    def _own(self, arm: str, seed: int) -> pl.DataFrame:
        table, manifest = self._table(arm, seed, "rounds.parquet")
        introduce(table.columns, manifest.quantities)
        return table.select(pl.lit(arm).alias("arm"), pl.lit(seed, pl.Int64).alias("seed"), pl.all())

    def devices(self, arm: str, seed: int, columns: Sequence[str]) -> pl.DataFrame | None:
        """Those of the columns that one finished run's devices.parquet has; None where its trace level left it out."""
        if self.plan.arm(arm).scenario.trace.level != "full":
            return None
        return self._table(arm, seed, "devices.parquet", columns)[0]

    def _table(
        self, arm: str, seed: int, name: str, columns: Sequence[str] | None = None
    ) -> tuple[pl.DataFrame, Manifest]:
        path = self.directories[arm, seed]
        try:
            manifest = self.about(arm, seed)
            check_digest(path / name, manifest.digests.get(name))
            return read_table(path / name, columns), manifest
        except RunError as problem:
            raise _unusable(problem, path) from problem


def _unusable(problem: RunError, directory: Path) -> RunError:
    return RunError(f"{problem}; remove the directory {directory} and give the command that made it again")


def load(out: str | Path) -> Results:
    """The results of a plan that was executed in this directory, wholly or in part."""
    file = Path(out) / "plan.json"
    stored = read_plan(file)
    if stored is None:
        raise RunError(f"{out} holds no results: it has no plan.json")
    try:
        arms = tuple(
            Arm(entry["label"], stored_scenario(entry["scenario"], file, entry["promises"]), entry["most_seeds"])
            for entry in stored["arms"]
        )
        plan = Plan(stored["name"], arms, tuple(stored["seeds"]), str(stored["command"]), str(stored["study"]))
        runs = ((entry["label"], *run) for entry in stored["arms"] for run in entry["runs"].items())
        directories = {(label, int(seed)): Path(out) / "runs" / name for label, seed, name in runs}
        problems = {entry["label"]: entry["problem"] for entry in stored["arms"]}
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise RunError(f"{file} is damaged: it does not describe a plan") from problem
    return Results.of(plan, directories, problems, checked(directories.values()))


def gathered(name: str, runs: Sequence[Run], places: Sequence[Path], alike: bool = False) -> Results:
    """Runs that were made one by one, each in its directory: those of one scenario are seeds of one configuration.

    They compare in pairs by seed where their worlds are the same, which is for who made them to see to. alike: whether
    a run may be there twice; then each is named by its directory, as it is where a label would be too long to read.
    """
    keys = [(label, run.seed) for label, run in zip(_labels(runs), runs, strict=True)]
    twice = [key for key, count in Counter(keys).items() if count > 1]
    if twice and not alike:
        raise ScenarioError(f"compare: there are two runs of {twice[0][0]}, seed {twice[0][1]}; give each once")
    if twice or (alike and max(len(label) for label, _ in keys) > LONGEST_LABEL):
        keys = [(place.name, run.seed) for place, run in zip(places, runs, strict=True)]
    arms = {label: Arm(label, run.scenario) for (label, _), run in zip(keys, runs, strict=True)}
    plan = Plan(name, tuple(arms.values()), tuple(sorted({run.seed for run in runs})))
    found = dict(zip(keys, places, strict=True))
    return Results(plan, found, [Failure(*key, NOT_GIVEN) for key in product(arms, plan.seeds) if key not in found])


def _labels(runs: Sequence[Run]) -> list[str]:
    """Of each its policy, and the fields in which runs of that policy differ."""
    tables = [(run.scenario.policy.plugin_name(), flat(run.scenario.as_dict())) for run in runs]
    fields = {name: differing_fields([own for each, own in tables if each == name]) for name in dict(tables)}
    return [
        " ".join([name, *(f"{key.removeprefix('policy.')}={own[key]}" for key in fields[name] if key in own)])
        for name, own in tables
    ]


def differing_fields(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields of flat tables that do not have one value in all of them."""
    return [key for key in dict.fromkeys(chain(*tables)) if len({canonical(own.get(key)) for own in tables}) > 1]


def write_plan(
    out: Path, plan: Plan, directories: dict[Key, Path], known: Mapping[str, Any], problems: Reasons[str]
) -> None:
    """Say what belongs to this plan, what it is made from and where it is, before the first run is played."""
    arms = [
        {
            "label": arm.label,
            "scenario": arm.scenario.as_dict(),
            "promises": arm.scenario.traits(),
            "runs": {str(seed): directories[key].name for seed in seeds if (key := (arm.label, seed)) in directories},
            "files": known[arm.label]["files"] if arm.label in known else {},
            "most_seeds": arm.most_seeds,
            "problem": problems.get(arm.label),
        }
        for arm, seeds in ((arm, plan.seeds_of(arm)) for arm in plan.arms)
    ]
    about = {"name": plan.name, "command": plan.command, "study": plan.study, "seeds": list(plan.seeds), "arms": arms}
    write_sealed(out / "plan.json", {"format": FORMAT, "feelstream": __version__, **about})


def read_plan(file: Path) -> dict[str, Any] | None:
    """What plan.json says, unless there is none; results that this version would not understand are refused."""
    if not file.is_file():
        return None
    stored = read_json(file)
    written = stored.get("format") if isinstance(stored, dict) else None
    if written != FORMAT:
        raise RunError(
            f"{file} was written in format {written} and this version has format {FORMAT}; "
            "choose another directory or remove it"
        )
    arms = stored.get("arms")
    if not isinstance(stored.get("seeds"), list) or not isinstance(arms, list) or not all(map(_is_arm, arms)):
        raise RunError(f"{file} is damaged: it does not describe a plan")
    return stored


def _is_arm(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("label"), str) and isinstance(entry.get("scenario"), dict)


def left_out(stored: Mapping[str, Any], plan: Plan) -> list[str]:
    """Configurations of a stored plan that another plan does not have as they are; auto stands for the number that
    came of it.
    """
    wanted = {arm.label: flat(arm.scenario.as_dict()) for arm in plan.arms}
    there = {entry["label"]: flat(entry["scenario"]) for entry in stored["arms"]}
    return [
        label
        for label, own in there.items()
        if label not in wanted
        or any(
            value != "auto" and canonical(value) != canonical(own.get(field)) for field, value in wanted[label].items()
        )
    ]


def checked(directories: Iterable[Path]) -> dict[Path, str | None]:
    """Of every run why it cannot be used, None where it can."""
    return {path: why_not(path) for path in dict.fromkeys(directories)}


def why_not(directory: Path) -> str | None:
    """Why this run cannot be used; None if it is finished and all of its files are as they were written."""
    if not os.path.isfile(directory / "run.json"):  # not Path.is_file, which raises for a name that no file system has
        return NOT_YET
    try:
        manifest = Manifest.read(directory)
        if not manifest.complete:
            return NOT_YET
        for name, digest in manifest.digests.items():
            check_digest(directory / name, digest)
    except RunError as problem:
        return str(_unusable(problem, directory))
    return None


def receive(directory: Path, files: dict[str, bytes], known: Mapping[str, Any]) -> str | None:
    """Store a run that was played elsewhere, whole or not at all; why not, if it is not the run that was asked for."""
    about = Manifest.parse(read_json(directory / "run.json", files["run.json"]), directory)
    tables = {name: sha256(content).hexdigest() for name, content in files.items() if name != "run.json"}
    if not about.complete or tables != about.digests or any(Path(name).name != name for name in files):
        return "a worker sent other files than those of a complete run"
    for what, played in (("engine", about.engine), ("data", about.data.get("digest"))):
        if played != known[what]:
            return f"a worker ran it with other {what} ({played}) than the first worker has ({known[what]})"
    appear_whole(directory, files)
    return None


def tidy(out: Path) -> None:
    """Remove what a killed call left and nobody will look at again. Only under the lock of the runs directory."""
    runs = out / "runs"
    for left in runs.glob(".*.tmp"):
        shutil.rmtree(left, ignore_errors=True)
    for left in runs.glob("*/progress"):
        if why_not(left.parent) is None:
            shutil.rmtree(left, ignore_errors=True)
    for folder in (out, out / "figures"):
        for left in folder.glob(".*.tmp"):
            if left.is_file() and not _is_alive(left):
                left.unlink(missing_ok=True)


def _is_alive(temporary: Path) -> bool:
    """Whether the process that writes .NAME.PID.tmp is still there."""
    try:
        os.kill(int(temporary.name.split(".")[-2]), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True
