"""The checked cache of raw data files: what is used has the known digest, every time, or is fetched again.

Each file appears under its name in one step (written beside, then renamed), so that a killed process leaves
no half file under that name and two processes fetching at once do each other no harm.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import uuid4

from feelstream.data.datasets.mirrors import Folder, Mirror, MirrorError, Progress, RawFile
from feelstream.errors import DataError

logger = logging.getLogger("feelstream.data")

State = Literal["present", "damaged", "absent"]


@dataclass(frozen=True)
class Collection:
    """The raw files of one data set and the mirrors to ask for them, in order."""

    name: str
    files: tuple[RawFile, ...]
    mirrors: tuple[Mirror, ...]

    @property
    def folder(self) -> Path:
        """Where the files are kept: in $FEELSTREAM_CACHE if set, else in the user's cache directory."""
        chosen = os.environ.get("FEELSTREAM_CACHE")
        if chosen:
            return Path(chosen) / self.name
        import pooch  # here: slow to import, and made data needs no files

        return Path(pooch.os_cache("feelstream")) / self.name


def _read(collection: Collection, file: RawFile) -> bytes | None:
    path = collection.folder / file.name
    try:
        with path.open("rb") as source:
            return source.read(file.bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); remove it or make it readable") from error


def _store(collection: Collection, file: RawFile, raw: bytes) -> None:
    folder = collection.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{file.name}.{uuid4().hex}.part"
        try:
            part.write_bytes(raw)
            os.replace(part, folder / file.name)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error.strerror}); set FEELSTREAM_CACHE to a folder that can"
        ) from error


def states(collection: Collection) -> dict[Path, State]:
    """Each cached file's path and whether it is present with the right content, damaged or absent."""
    found: dict[Path, State] = {}
    for file in collection.files:
        raw = _read(collection, file)
        state = "absent" if raw is None else "present" if file.matches(raw) else "damaged"
        found[collection.folder / file.name] = state
    return found


def obtain(collection: Collection, progress: Progress | None = None) -> dict[str, bytes]:
    """The content of every file of the collection, by file name; fetches what is not in the cache.

    The very bytes that were checked are returned. A cached file with other content is named in a warning and
    fetched again. If no mirror has a file, a DataError says where to put it.
    """
    contents: dict[str, bytes] = {}
    for file in collection.files:
        raw = _read(collection, file)
        if raw is not None and file.matches(raw):
            contents[file.name] = raw
        elif raw is not None:
            logger.warning("%s is damaged (its checksum is wrong) and is fetched again", collection.folder / file.name)
    reasons: list[str] = []
    # A user without network may put the files, plain or .gz, into the cache folder.
    for mirror in (Folder(collection.folder), *collection.mirrors):
        missing = [file for file in collection.files if file.name not in contents]
        if not missing:
            break
        logger.info("%s: looking for %d files in %s", collection.name, len(missing), mirror)
        try:
            for file, raw in mirror.candidates(missing, progress):
                if file.matches(raw):
                    _store(collection, file, raw)
                    contents[file.name] = raw
                else:
                    reasons.append(f"{mirror}: {file.name} has a wrong checksum")
        except (MirrorError, OSError) as error:
            reasons.append(f"{mirror}: {error}")
            logger.info("%s", reasons[-1])
    missing = [file.name for file in collection.files if file.name not in contents]
    if missing:
        tried = "; ".join(reasons) or "no mirror has them"
        raise DataError(
            f"{collection.name} cannot be fetched ({tried}); connect to the network and try again, "
            f"or put {', '.join(missing)} (plain or .gz) into {collection.folder}"
        )
    return contents
