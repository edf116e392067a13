"""A file of a Python project, taken by the link that the user's package index gives for it.

The index is spoken to in the simple repository API, as JSON (PEP 691) or HTML (PEP 503). pip is not asked to
download: to learn the name and version of a source package it would run the setup.py inside.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from feelstream.data.datasets import mirrors, pip_settings
from feelstream.data.datasets.mirrors import Answer, MirrorError, Progress, RawFile
from feelstream.data.datasets.pip_settings import Location, PipSettings

PAGE_BYTES = 1 << 24
ACCEPTED = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
SHA256 = re.compile(r"(?:^|&)sha256=([0-9a-fA-F]{64})(?:&|$)")


@dataclass(frozen=True)
class Link:
    """One file that a page offers: its name, its address and its SHA-256 where the page states it."""

    name: str
    url: str
    sha256: str | None = None

    def offers(self, archive: RawFile) -> bool:
        """Whether this is the file by what the page says; only its bytes will tell."""
        return self.name == archive.name if self.sha256 is None else self.sha256.lower() == archive.digest


@dataclass(frozen=True)
class PackageIndex:
    """A file of the project. Also if it was yanked: the catalogue names this very file and no other."""

    project: str

    def __str__(self) -> str:
        return f"the package index ({self.project})"

    def fetch(self, archive: RawFile, progress: Progress | None) -> bytes:
        settings = pip_settings.configured()
        name = re.sub(r"[-_.]+", "-", self.project).lower()
        pages = [Location(f"{index.url.rstrip('/')}/{name}/", index.auth) for index in settings.indexes]
        reasons: list[str] = []
        for page in (*settings.link_pages, *pages):
            try:
                data = _from_page(page, archive, settings, progress)
            except (MirrorError, OSError) as error:
                reasons.append(f"{page.url}: {error}")
            else:
                if archive.matches(data):
                    return data
                reasons.append(f"{page.url}: {archive.name} has a wrong checksum")
        raise MirrorError("; ".join(reasons) or "pip is configured to use no index")


def _from_page(page: Location, archive: RawFile, settings: PipSettings, progress: Progress | None) -> bytes:
    offered = _links(page, settings)
    for link in offered:
        if link.offers(archive):
            if urlsplit(link.url).scheme not in ("http", "https", urlsplit(page.url).scheme):
                raise MirrorError(f"the link to {archive.name} does not lead to a web address")
            if path := _local(link.url):
                return _read(path, archive.bytes)
            # As it is: a server may otherwise unpack a .tar.gz on the way.
            options = settings.connection(link.url, page) | {"headers": {"Accept-Encoding": "identity"}}
            return mirrors.download(link.url, archive.name, archive.bytes, progress, **options).data
    if any(link.name == archive.name for link in offered):
        raise MirrorError(f"it has {archive.name} with another SHA-256")
    raise MirrorError(f"it does not have {archive.name}")


def _links(page: Location, settings: PipSettings) -> list[Link]:
    """All links of an index's page of a project, of another page of links, or of a folder of files."""
    if path := _local(page.url):
        if path.is_dir() and not (path / "index.html").exists():
            return [Link(child.name, child.as_uri()) for child in path.iterdir()]
        path = path / "index.html" if path.is_dir() else path
        answer = Answer(_read(path, PAGE_BYTES), path.as_uri(), "text/html")
    else:
        options = settings.connection(page.url, page) | {"headers": {"Accept": ACCEPTED}}
        answer = mirrors.download(page.url, "the page", PAGE_BYTES, None, **options)
    links = json_links if answer.kind.partition(";")[0].strip().endswith("json") else html_links
    try:
        return links(answer.data, answer.url)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MirrorError(f"the page cannot be read ({type(error).__name__})") from error


def json_links(data: bytes, url: str) -> list[Link]:
    """The files of a page in PEP 691's form."""
    links = []
    for file in json.loads(data)["files"]:
        digest = file["hashes"].get("sha256")
        links.append(Link(file["filename"], urljoin(url, file["url"]), None if digest is None else str(digest)))
    return links


def html_links(data: bytes, url: str) -> list[Link]:
    """The files of a page in PEP 503's form: the name ends the address, the SHA-256 is in its fragment."""
    anchors = _Anchors(url)
    anchors.feed(data.decode("utf-8", errors="replace"))
    links = []
    for target in anchors.targets:
        address, fragment = urldefrag(urljoin(anchors.base, target))
        digest = SHA256.search(fragment)
        name = unquote(urlsplit(address).path.rpartition("/")[2])
        links.append(Link(name, address, digest[1] if digest else None))
    return links


class _Anchors(HTMLParser):
    """Collects the targets of all <a>, which may be relative to a <base>."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if target and tag == "base":
            self.base = urljoin(self.base, target)
        elif target and tag == "a":
            self.targets.append(target)


def _local(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as source:
        return source.read(most + 1)
