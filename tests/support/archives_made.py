"""Small archives, and the entries of a catalogue that describe them."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from typing import Literal

from feelstream.data.datasets.catalogue import File


def described(name: str, content: bytes) -> File:
    return File(name, hashlib.sha256(content).hexdigest(), len(content))


def tar(
    members: dict[str, bytes], links: dict[str, str] | None = None, mode: Literal["w:gz", "w:xz"] = "w:gz"
) -> bytes:
    """A .tar.gz or .tar.xz of files, and of symbolic links to anywhere."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()
