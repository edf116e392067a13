"""run.json as a type: everything that decided the outcome of a run, how it went, and the digests of its files."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import metadata
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from feelstream.arrays import Reals
from feelstream.code import named_files
from feelstream.columns import FORMAT
from feelstream.display.quantities import Quantity
from feelstream.errors import RunError
from feelstream.loop.changes import Change, as_list
from feelstream.plugins import Trait
from feelstream.resolved import Resolved
from feelstream.run.files import SEAL, read_json, write_sealed
from feelstream.run.resolving import resolved
from feelstream.run.trace import facts_of
from feelstream.scenario import Scenario
from feelstream.version import __version__

# In the order in which a user sees to them.
DECIDES = ("format", "seed", "scenario", "changes", "files", "data", "engine", "feelstream", "versions")

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Manifest(BaseModel):
    """What run.json says. A deployment adds fields of its own, which are kept as they are."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), arbitrary_types_allowed=True)

    format: int = FORMAT  # `parse` refuses any other
    feelstream: str = __version__
    status: Literal["running", "complete"] = "running"
    seed: Annotated[int, Field(strict=True, ge=0)]
    scenario: dict[str, Any]
    promises: dict[str, dict[str, Trait]] = Field(default_factory=dict)  # the traits of its plug-ins, by group and name
    resolved: Resolved  # what its settings came to
    constants: pl.DataFrame | None = Field(default=None, exclude=True, repr=False)  # constants.parquet, of a new run
    facts: tuple[str, ...]  # what is true of it, of columns.FACTS: it decides which columns the tables have
    files: dict[str, Digest]  # every file that the scenario names, and what those import from beside them
    engine: dict[str, Any]
    data: dict[str, Any]
    versions: dict[str, str]
    changes: tuple[dict[str, Any], ...] = ()  # in mid-run: round, field and value of each
    quantities: tuple[Quantity, ...] = ()  # how users' own evaluators say that their numbers are shown
    timings: dict[str, Any] = Field(default_factory=dict)
    digests: dict[str, Digest] = Field(default_factory=dict)  # of the run's own files, once it is complete

    @classmethod
    def begin(
        cls,
        scenario: Scenario,
        seed: int,
        *,
        engine: dict[str, Any],
        data: dict[str, Any],
        changes: Sequence[Change] = (),
        reference: Reals | None = None,
        packages: Iterable[str] = ("numpy", "scipy", "polars"),
        **more: Any,
    ) -> Self:
        """Of a run that is about to begin."""
        settings = scenario.as_dict()
        versions = {"python": platform.python_version(), **{name: _version(name) for name in packages}}
        for part in scenario.plugins():
            versions |= part.plugin_versions()
        came_to, constants = resolved(scenario, data.get("classes"), changes, more.get("deployment"), reference)
        return cls(
            seed=seed,
            scenario=settings,
            promises=scenario.traits(),
            resolved=came_to,
            constants=constants,
            facts=facts_of(scenario, more.get("deployment")),
            files=named_files(scenario),
            engine=engine,
            data=data,
            versions=versions,
            changes=tuple(as_list(scenario, changes)),
            **more,
        )

    @classmethod
    def of_finished(cls, directory: Path) -> Self:
        """run.json of a run that has come to its end."""
        manifest = cls.read(directory)
        if not manifest.complete:
            raise RunError(f"{directory} holds an unfinished run; give the same command again to finish it")
        return manifest

    @classmethod
    def read(cls, directory: Path) -> Self:
        """run.json of a run directory, whole and unchanged or not at all."""
        path = directory / "run.json"
        if not path.is_file():
            raise RunError(f"{directory} is not a run directory: it has no run.json")
        return cls.parse(read_json(path), directory)

    @classmethod
    def parse(cls, about: Any, directory: Path) -> Self:
        """What was read from the run.json of a directory."""
        path = directory / "run.json"
        if not isinstance(about, dict) or "format" not in about:
            raise RunError(f"{path} is damaged: it does not describe a run")
        if about["format"] != FORMAT:
            raise RunError(
                f"{directory} was written in format {about['format']!r:.20} and this version reads format {FORMAT}; "
                "run it again"
            )
        try:
            manifest = cls.model_validate({name: value for name, value in about.items() if name != SEAL})
        except ValidationError as problem:
            raise RunError(f"{path} is damaged: it does not describe a run") from problem
        if SEAL not in about:
            raise RunError(f"{path} is damaged: it does not state its SHA-256")
        return manifest

    def write(self, directory: Path) -> None:
        write_sealed(directory / "run.json", self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Plain tables, lists, strings and numbers."""
        return self.model_dump(mode="python")

    def completed(self, timings: dict[str, Any], digests: dict[str, str]) -> Self:
        return self.model_copy(update={"status": "complete", "timings": timings, "digests": digests})

    @property
    def complete(self) -> bool:
        return self.status == "complete"

    @property
    def identity(self) -> str:
        """SHA-256 of all that decides the outcome."""
        return sha256(dumps(_deciding(self.as_dict()), sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@cache  # parsing a package's metadata takes as long as ten rounds, and a study has thousands of short runs
def _version(package: str) -> str:
    return metadata.version(package)


def check_same_run(directory: Path, stored: Manifest, wanted: Mapping[str, Any]) -> None:
    """Going on is only right if everything that decides the outcome, and is in `wanted`, is as it was."""
    there, here = _deciding(stored.as_dict()), _deciding(wanted)
    for what in DECIDES:
        if (what in wanted or what == "changes") and there[what] != here[what]:
            another = "other" if what in ("changes", "files", "versions") else "another"
            raise RunError(
                f"{directory} holds a run with {another} {what}{_difference(there[what], here[what])}; "
                "choose another directory or remove it"
            )


def _deciding(about: Mapping[str, Any]) -> dict[str, Any]:
    """What of run.json decides the outcome, as JSON gives it back; None where it is not said.

    Of versions those of libraries that compute, and of Python its minor.
    """
    found = {name: about.get(name) for name in DECIDES} | {"changes": about.get("changes", ())}
    if versions := found["versions"]:
        found["versions"] = {name: version for name, version in versions.items() if name != "polars"}
        found["versions"]["python"] = ".".join(versions["python"].split(".")[:2])
    return loads(dumps(found))


def _difference(old: Any, new: Any, where: str = "") -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    return f" ({where + ' ' if where else ''}{old} there, {new} here)"
