"""Files that appear whole or not at all, and one writer at a time per directory."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.errors import BusyError, RunError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, force it to disk, then move it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, pl.exceptions.PolarsError) as problem:  # a table on a full disk is told by polars
        why = getattr(problem, "strerror", None) or str(problem).splitlines()[0]
        raise RunError(f"cannot write {path}: {why}") from problem
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporaries(directory: Path) -> None:
    """Delete what writers that were killed left behind; only for the directory's sole writer."""
    for temporary in directory.glob(".*.tmp"):
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(_json_safe(value), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    try:
        return _json_restored(json.loads(path.read_text(encoding="utf-8")))
    except OSError as problem:
        raise RunError(f"cannot read {path}: {problem.strerror}") from problem
    except ValueError as problem:
        raise RunError(f"{path} is damaged: it is not a JSON file") from problem


def _json_safe(value: Any) -> Any:
    """JSON has no infinity, so it is written as the text "inf" (V = inf is a legal setting)."""
    if isinstance(value, dict):
        return {key: _json_safe(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_json_safe(entry) for entry in value]
    return "inf" if isinstance(value, float) and math.isinf(value) and value > 0 else value


def _json_restored(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_restored(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_json_restored(entry) for entry in value]
    return math.inf if value == "inf" else value


def read_table(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, columns=columns, glob=False)  # a path may hold [ or *
    except (OSError, pl.exceptions.PolarsError) as problem:
        raise RunError(f"{path} is missing or damaged") from problem


def usable_directory(path: Path) -> Path:
    """Make the directory, or say why it cannot be used."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        next(path.iterdir(), None)
        (path / ".lock").touch()
    except FileExistsError as problem:
        raise RunError(f"cannot use the directory {path}: it is a file") from problem
    except OSError as problem:
        raise RunError(f"cannot use the directory {path}: {problem.strerror}") from problem
    return path


@contextmanager
def sole_writer(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; the operating system lets go of it if this process dies."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: no lock
        yield
        return
    with (directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise BusyError(f"another process is writing to {directory}; wait for it or choose another") from problem
        yield
