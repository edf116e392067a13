"""Which files a run was made from, each known by the SHA-256 of the bytes that were read, whatever it holds later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path

_taken: ContextVar[dict[Path, str] | None] = ContextVar("taken", default=None)


@contextmanager
def taking() -> Iterator[None]:
    """While a run is made: what is read of a file first is what its digest is of."""
    token = _taken.set({})
    try:
        yield
    finally:
        _taken.reset(token)


def read(path: Path) -> tuple[bytes, str]:
    """The contents of a file and their SHA-256; OSError where others were read of it in the making of this run."""
    content = path.read_bytes()
    digest = sha256(content).hexdigest()
    taken = _taken.get()
    if taken is not None and taken.setdefault(path.resolve(), digest) != digest:
        raise OSError(f"{path} changed while it was read; give the same command again")
    return content, digest


def digest_of(path: Path) -> str:
    """SHA-256 of what was taken of a file, or, if nothing was, of what is there."""
    taken = _taken.get()
    known = taken.get(path.resolve()) if taken is not None else None
    return known or read(path)[1]


def stamp(path: Path) -> tuple[int, ...] | None:
    """Equal only while a file is the same: by its place on the disk, size and times, of which users can set but one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
