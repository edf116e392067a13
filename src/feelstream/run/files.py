"""Files that appear whole or not at all, are known by their SHA-256, and have one writer at a time per directory."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.errors import BusyError, RunError
from feelstream.signals import temporary_files

LIKE_INFINITY = re.compile(r"\\*inf")  # infinity, or a text that must not be taken for it
DAMAGE = (OSError, ValueError, KeyError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)
SEAL = "sha256"  # the field of a sealed JSON file that holds the SHA-256 of all others


@contextmanager
def as_sentence(path: Path) -> Iterator[None]:
    """An error of the disk, where files are made, moved or removed, as one that names the place."""
    try:
        yield
    except Exception as problem:
        failure: BaseException | None = problem  # tidying up after one may have raised another over it
        while failure is not None and not isinstance(failure, OSError | pl.exceptions.PolarsError):
            failure = failure.__cause__ or failure.__context__  # a table on a full disk is reported by polars
        if failure is None:
            raise
        why = getattr(failure, "strerror", None) or str(failure).splitlines()[0]
        raise RunError(f"cannot write {path}: {why}") from problem


def write_atomically(path: Path, write: Callable[[Path], object]) -> str:
    """Let `write` fill a temporary file beside `path`, force it to disk, then move it into place; its SHA-256."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary_files.add(temporary)
    try:
        with as_sentence(path):
            write(temporary)
            with temporary.open("rb+") as file:
                digest = file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _fsync_directory(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        temporary_files.discard(temporary)
    return digest


def appear_whole(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make a directory that holds these files. It has its name only once all of them are on disk.

    What a killed call leaves is .NAME.tmp beside it. Whatever had the name before, such as an unfinished run, is gone.
    """
    incoming = directory.with_name(f".{directory.name}.tmp")
    with as_sentence(directory):
        for old in (incoming, directory):
            shutil.rmtree(old, ignore_errors=True)
        incoming.mkdir(parents=True)
        for name, content in files.items():
            with (incoming / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _fsync_directory(incoming)  # once for all names in it
        os.replace(incoming, directory)
        _fsync_directory(directory.parent)


def _fsync_directory(directory: Path | str) -> None:
    """Force a new name to disk: without this a power cut may leave the old file, or none, under it."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:  # as on Windows
        return
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # some file systems have no such thing
            raise
    finally:
        os.close(handle)


def digest_of(path: Path) -> str:
    """SHA-256 of a file's contents."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as problem:
        raise RunError(f"{path} is missing") from problem
    except OSError as problem:
        raise RunError(f"cannot read {path}: {problem.strerror}") from problem


def check_digest(path: Path, wanted: str | None) -> None:
    """Refuse a file that is not, byte for byte, the one that was written; nothing has parsed it yet."""
    if digest_of(path) != wanted:
        raise RunError(f"{path} is damaged: it is not the file that was written, by its SHA-256")


def remove_temporaries(directory: Path) -> None:
    """Delete what writers that were killed left behind; only for the directory's sole writer."""
    with as_sentence(directory):
        for temporary in directory.glob(".*.tmp"):
            temporary.unlink(missing_ok=True)


def write_sealed(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object that holds the SHA-256 of its own contents, so that damage does not go unnoticed."""
    content = sealed(value)
    write_atomically(path, lambda file: file.write_bytes(content))


def sealed(value: dict[str, Any]) -> bytes:
    """What `write_sealed` writes; the name of a file in other bytes than UTF-8 has them as JSON escapes."""
    tree = _json_safe({name: entry for name, entry in value.items() if name != SEAL})
    text = json.dumps(tree | {SEAL: seal_of(tree)}, indent=2, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")


def seal_of(tree: dict[str, Any]) -> str:
    """SHA-256 of the fields, in one spelling of theirs, the seal itself left out."""
    fields = {name: entry for name, entry in tree.items() if name != SEAL}
    return sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_json(path: Path, content: bytes | None = None) -> Any:
    """The contents of a JSON file; a seal, where there is one, must be right. content: its bytes, if they were read."""
    try:
        tree = json.loads((path.read_bytes() if content is None else content).decode())
        intact = not isinstance(tree, dict) or SEAL not in tree or tree[SEAL] == seal_of(tree)
        value = _json_restored(tree)
    except OSError as problem:
        raise RunError(f"cannot read {path}: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise RunError(f"{path} is damaged: it is not a JSON file") from problem
    if not intact:
        raise RunError(f"{path} is damaged: its contents do not have the SHA-256 that it states")
    return value


def _json_safe(value: Any) -> Any:
    """JSON has no infinity, so it is written as the text "inf" (V = inf is legal), and that text as "\\\\inf"."""
    if isinstance(value, dict):
        return {key: _json_safe(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_json_safe(entry) for entry in value]
    if isinstance(value, str):
        return f"\\{value}" if value.endswith("inf") and LIKE_INFINITY.fullmatch(value) else value
    return "inf" if isinstance(value, float) and math.isinf(value) and value > 0 else value


def _json_restored(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_restored(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_json_restored(entry) for entry in value]
    if isinstance(value, str) and LIKE_INFINITY.fullmatch(value):
        return value[1:] if value.startswith("\\") else math.inf
    return value


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> str:
    """Write an .npz file, whose bytes follow from the arrays alone; its SHA-256."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    return write_atomically(path, write)


def read_arrays(path: Path) -> dict[str, NDArray]:
    """What `write_arrays` wrote; nothing is unpickled."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return dict(stored)
    except DAMAGE as problem:
        raise RunError(f"{path} is damaged") from problem


def read_table(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """columns: only these, as far as the table has them."""
    try:
        there = None if columns is None else [name for name in pl.read_parquet_schema(path) if name in columns]
        return pl.read_parquet(path, columns=there, glob=False)  # a path may hold [ or *
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        raise RunError(f"{path} is missing or damaged") from problem


def usable_directory(path: Path) -> Path:
    """Make the directory, or say why it cannot be used."""
    try:
        str(path).encode()
        path.mkdir(parents=True, exist_ok=True)
        next(path.iterdir(), None)
    except UnicodeEncodeError as problem:
        raise RunError(f"cannot use the directory {str(path)!r}: its name must be UTF-8") from problem
    except FileExistsError as problem:
        raise RunError(f"cannot use the directory {path}: it is a file") from problem
    except OSError as problem:
        raise RunError(f"cannot use the directory {path}: {problem.strerror}") from problem
    return path


@contextmanager
def sole_writer(directory: Path) -> Iterator[None]:
    """Make the directory and hold its lock; the operating system lets go of it if this process dies."""
    try:
        lock = os.open(usable_directory(directory) / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as problem:
        raise RunError(f"cannot use the directory {directory}: {problem.strerror}") from problem
    try:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise BusyError(f"another process is writing to {directory}; wait for it or choose another") from problem
        except (ImportError, OSError):  # not on Windows, and not on some network disks
            logging.getLogger("feelstream").warning(
                "%s cannot be locked here; see to it that no other process writes to it", directory
            )
        yield
    finally:
        os.close(lock)
