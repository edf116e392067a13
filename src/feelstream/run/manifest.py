"""What run.json says of a run: everything that decided its outcome, and how it went."""

from __future__ import annotations

import importlib.util
import platform
import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from feelstream.data.datasets import Dataset
from feelstream.errors import RunError
from feelstream.learning.contract import Learner
from feelstream.run.files import read_json
from feelstream.scenario import Scenario
from feelstream.version import __version__

FORMAT = 2  # 2: devices.parquet has the column `available`
# In the order in which a user sees to them.
DECIDES = ("format", "seed", "scenario", "changes", "files", "data", "engine", "feelstream")


def describe(scenario: Scenario, seed: int, dataset: Dataset, learner: Learner | None) -> dict[str, Any]:
    """The contents of run.json when a run begins."""
    return {
        "format": FORMAT,
        "feelstream": __version__,
        "status": "running",
        "seed": seed,
        "scenario": scenario.as_dict(),
        "files": named_files(scenario.as_dict()),
        "engine": {"name": learner.name if learner else "none", **(learner.details if learner else {})},
        "data": {
            "name": dataset.name,
            "digest": dataset.digest,
            "classes": dataset.classes,
            "samples": len(dataset.train_labels),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "polars")},
        },
        "timings": {},
    }


def read_about(directory: Path) -> dict[str, Any]:
    """run.json of a run directory, whole or not at all."""
    path = directory / "run.json"
    if not path.is_file():
        raise RunError(f"{directory} is not a run directory: it has no run.json")
    about = read_json(path)
    if not isinstance(about, dict) or "format" not in about:
        raise RunError(f"{path} is damaged: it does not describe a run")
    if about["format"] != FORMAT:
        raise RunError(
            f"{directory} was written in format {about['format']} and this version reads format {FORMAT}; run it again"
        )
    if not {"status", "seed", "scenario"} <= about.keys() or not isinstance(about["scenario"], dict):
        raise RunError(f"{path} is damaged: it does not describe a run")
    return about


def check_same_run(directory: Path, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Going on is only right if everything that decides the outcome, and is in `wanted`, is as it was."""
    for what in DECIDES:
        if what not in wanted and not (what == "changes" and what in stored):
            continue
        old, new = _plain(stored.get(what)), _plain(wanted.get(what))
        if old != new:
            another = "other" if what == "changes" else "another"
            raise RunError(
                f"{directory} holds a run with {another} {what}{_difference(old, new)}; "
                "choose another directory or remove it"
            )


def _plain(value: Any) -> Any:
    """As JSON gives it back: lists, never tuples."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _difference(old: Any, new: Any, where: str = "") -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    return f" ({where + ' ' if where else ''}{old} there, {new} here)"


def texts(value: Any) -> Iterator[str]:
    """All texts in a tree of tables and lists."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from texts(entry)
    elif isinstance(value, str):
        yield value


def named_files(scenario: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of the contents of every file that the scenario names: as a path, file.py:Name or package.module:Name."""
    digests = {}
    for text in texts(scenario):
        where = text.rpartition(":")[0]
        if re.fullmatch(r"\w+(\.\w+)*", where) and not where.endswith(".py"):
            try:
                found = importlib.util.find_spec(where)
            except (ImportError, ValueError):
                found = None
            path = Path(found.origin) if found and found.origin else None
        else:
            path = Path(where if where.endswith(".py") else text)
        if path is not None and path.is_file():
            digests[text] = sha256(path.read_bytes()).hexdigest()
    return digests
