"""Places that hand out the raw files of a data set: a folder, a web server.

A mirror is never trusted. Whatever it yields is only a candidate; `cache.obtain` compares it with the file's
known digest before anything is stored or used. A mirror that cannot be reached raises `MirrorError`, and the
next one is asked. `archives` has those that carry the files in another form.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5, sha256
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

Progress = Callable[[str, int, int], None]  # file name, bytes received, bytes in all (0: unknown)

CONNECT_S = 4.0
SILENCE_S = 10.0  # longest wait between two pieces of a file
FILE_S = 600.0  # longest time for one file, however steadily it drips
COMPRESSION_OVERHEAD = 1 << 16  # a gzip file is never longer than its content by more than this


class MirrorError(Exception):
    """This mirror cannot serve; the message says why."""


@dataclass(frozen=True)
class RawFile:
    """One uncompressed file: its name, its MD5 or SHA-256 in hex (recognised by the length), its size in bytes."""

    name: str
    digest: str
    bytes: int

    def matches(self, raw: bytes) -> bool:
        """Whether `raw` is this file, to the last byte."""
        if len(raw) != self.bytes:
            return False
        made = sha256(raw) if len(self.digest) == 64 else md5(raw, usedforsecurity=False)
        return made.hexdigest() == self.digest

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

    def __init__(self, name: str, most_bytes: int, progress: Progress | None) -> None:
        self.data = bytearray()
        self.total = 0  # pooch sets it to the announced length
        self._name, self._most, self._progress = name, most_bytes, progress
        self._deadline = time.monotonic() + FILE_S

    def write(self, piece: bytes) -> None:
        self.data += piece
        if len(self.data) > self._most:
            raise MirrorError(f"{self._name} is longer than it should be")
        if time.monotonic() > self._deadline:
            raise MirrorError(f"{self._name} took more than {FILE_S:g} s")
        if self._progress is not None:
            self._progress(self._name, len(self.data), self.total)

    def flush(self) -> None: ...
    def update(self, _: int) -> None: ...
    def reset(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Answer:
    """What a web server sent: the bytes, the address they came from after any redirection, and their MIME type."""

    data: bytes
    url: str
    kind: str


def download(url: str, name: str, most_bytes: int, progress: Progress | None, **options: Any) -> Answer:
    """What is at a web address, called `name` to the user, in bounded time and size; else a MirrorError.

    options: for requests.get, such as headers.
    """
    import pooch  # both slow to import and needed on the first download only; the second comes with the first
    import requests

    receiver = _Receiver(name, most_bytes, progress)
    bar: Any = receiver  # documented as any object with these methods, annotated as bool
    responses: list[requests.Response] = []  # pooch keeps them to itself, and open if it fails
    options["hooks"] = {"response": lambda response, **_: responses.append(response)}
    fetch = pooch.HTTPDownloader(bar, chunk_size=1 << 16, timeout=(CONNECT_S, SILENCE_S), **options)
    file = urlsplit(url).path.rpartition("/")[2] or name
    try:
        fetch(url, bar, None)
    except requests.HTTPError as error:
        raise MirrorError(f"{file}: {error}") from error
    except requests.Timeout as error:
        raise MirrorError("no answer in time") from error
    except requests.exceptions.SSLError as error:
        raise MirrorError("its certificate is not accepted") from error
    except requests.ConnectionError as error:
        raise MirrorError("no connection, or a broken one") from error
    except requests.RequestException as error:
        raise MirrorError(f"{file}: {type(error).__name__}") from error
    finally:
        for response in responses:
            response.close()
    return Answer(bytes(receiver.data), responses[-1].url, responses[-1].headers.get("Content-Type", ""))


@dataclass(frozen=True)
class Website:
    """A web address under which each file is served as name.gz."""

    url: str

    def __str__(self) -> str:
        return self.url

    def candidates(self, files: Sequence[RawFile], progress: Progress | None) -> Iterator[tuple[RawFile, bytes]]:
        for file in files:
            answer = download(f"{self.url}/{file.name}.gz", file.name, file.bytes + COMPRESSION_OVERHEAD, progress)
            yield file, file.unpack(answer.data)
