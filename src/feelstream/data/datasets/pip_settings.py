"""Where pip looks for packages, and how it connects: asked of pip, which alone knows its files, variables and default.

pip is asked twice for text (`pip config list`, `pip download --help`) and for nothing else. It is given no package,
so it downloads, builds and installs nothing.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from feelstream.data.datasets import commands
from feelstream.data.datasets.mirrors import MirrorError

ANSWER_S = 60.0  # longest time for pip to print its settings
SECTIONS = ("global", "download", ":env:")  # a later one overrides an earlier one, as for `pip download`
TRUE = ("y", "yes", "t", "true", "on", "1")
DEFAULT_INDEX = re.compile(r"--index-url <url>[^(]*\(default\s+(\S+?)\)")


@dataclass(frozen=True)
class Location:
    """A place to look: the address of an index or a page of links, without the credentials that it needs."""

    url: str
    auth: tuple[str, str] | None = None

    @classmethod
    def parse(cls, text: str) -> Location:
        """From an address, which may contain user:password@, or the path of a file or folder."""
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https", "file"):
            return cls(Path(text).expanduser().absolute().as_uri())
        auth = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
        return cls(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), auth)


@dataclass(frozen=True)
class PipSettings:
    """The indexes (PEP 503), the other pages or folders of links, and what connections need, as pip has them."""

    indexes: tuple[Location, ...]
    link_pages: tuple[Location, ...] = ()
    verify: str | None = None  # file of certificates to accept
    client_cert: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()

    def connection(self, url: str, location: Location) -> dict[str, Any]:
        """Options of requests.get for this address; credentials are for the location's own host only."""
        parts = urlsplit(url)
        home = urlsplit(location.url)
        trusted = {parts.hostname, parts.netloc} & set(self.trusted_hosts)
        return {
            "auth": location.auth if (parts.scheme, parts.netloc) == (home.scheme, home.netloc) else None,
            "verify": False if trusted else self.verify,
            "cert": self.client_cert,
            "proxies": {"http": self.proxy, "https": self.proxy} if self.proxy else None,
        }


def configured() -> PipSettings:
    """The settings of this Python's pip."""
    values = _values(_printed("config", "list"))
    indexes: list[str] = []
    if values.get("no-index", "").lower() not in TRUE:
        indexes = [values.get("index-url") or _default_index(), *values.get("extra-index-url", "").split()]
    try:
        locations = [Location.parse(text) for text in indexes]
        link_pages = [Location.parse(text) for text in values.get("find-links", "").split()]
    except ValueError as error:
        raise MirrorError("the configuration of pip contains an address that cannot be read") from error
    return PipSettings(
        tuple(locations),
        tuple(link_pages),
        values.get("cert"),
        values.get("client-cert"),
        values.get("proxy"),
        tuple(values.get("trusted-host", "").split()),
    )


def _values(listing: str) -> Mapping[str, str]:
    """Option → value from lines such as global.index-url='…'."""
    values: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if section in values and value not in ("", "''"):
            try:
                values[section][option] = str(ast.literal_eval(value))
            except (ValueError, SyntaxError):
                raise MirrorError("pip config list prints what cannot be read") from None
    return {option: value for section in SECTIONS for option, value in values[section].items()}


def _default_index() -> str:
    """The index that pip takes where none is configured, as its help states."""
    found = DEFAULT_INDEX.search(_printed("download", "--help"))
    if found is None:
        raise MirrorError("pip does not state its default index; set PIP_INDEX_URL")
    return found[1]


def _printed(*arguments: str) -> str:
    # -P: without it, -m would run a pip.py that lies in the current folder. COLUMNS: help that is not wrapped.
    command = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", *arguments]
    environment = {**os.environ, "COLUMNS": "2000", "PYTHONUTF8": "1"}
    return commands.run(command, f"pip {arguments[0]}", ANSWER_S, environment=environment)
