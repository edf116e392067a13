"""Fetching and checking, against a web server on this machine: no network needed."""

from __future__ import annotations

import errno
import gzip
import hashlib
import logging
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE_S

from feelstream.data.datasets import cache, catalogue, mirrors
from feelstream.data.datasets import loading as datasets
from feelstream.data.datasets.cache import Collection, obtain
from feelstream.data.datasets.mirrors import Folder, Mirror, RawFile, Website
from feelstream.errors import DataError


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def raw_files(train: int = 30, test: int = 20) -> dict[str, bytes]:
    """Four small files in the format of MNIST's."""
    rng = np.random.default_rng(1)
    return {
        catalogue.TRAIN_IMAGES: idx(rng.integers(256, size=(train, 28, 28), dtype=np.uint8)),
        catalogue.TRAIN_LABELS: idx(np.arange(train, dtype=np.uint8) % 10),
        catalogue.TEST_IMAGES: idx(rng.integers(256, size=(test, 28, 28), dtype=np.uint8)),
        catalogue.TEST_LABELS: idx(np.arange(test, dtype=np.uint8) % 10),
    }


RAW = raw_files()
FILES = tuple(RawFile(name, hashlib.md5(raw).hexdigest(), len(raw)) for name, raw in RAW.items())


class Server(ThreadingHTTPServer):
    """Serves `bodies` under any folder and counts what was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies = {f"{name}.gz": gzip.compress(raw) for name, raw in RAW.items()}
        self.cut: set[str] = set()  # announced in full, but the connection ends half way
        self.silent = threading.Event()  # once set, no answer comes
        self.over = threading.Event()
        self.asked: list[str] = []

    @property
    def mirror(self) -> Website:
        return Website(f"http://127.0.0.1:{self.server_address[1]}/data")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[1]
        assert isinstance(self.server, Server)
        self.server.asked.append(name)
        if self.server.silent.is_set():
            self.server.over.wait(PATIENCE_S)
            return
        body = self.server.bodies.get(name)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if name in self.server.cut else body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "small"


def small(*mirrors: Mirror) -> Collection:
    return Collection("small", FILES, mirrors)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_fetches_once_and_then_uses_the_cache(server: Server, folder: Path) -> None:
    assert obtain(small(server.mirror)) == RAW
    assert names(folder) == set(RAW)
    assert all((folder / name).read_bytes() == raw for name, raw in RAW.items())
    server.asked.clear()
    assert obtain(small(server.mirror)) == RAW
    assert server.asked == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
        lambda raw: raw + b"\0",
        lambda raw: b"",
    ],
    ids=["truncated", "tampered", "longer", "empty"],
)
def test_a_damaged_cached_file_is_named_and_fetched_again(spoil, server, folder, caplog) -> None:
    obtain(small(server.mirror))
    (folder / catalogue.TEST_LABELS).write_bytes(spoil(RAW[catalogue.TEST_LABELS]))
    assert cache.states(small())[folder / catalogue.TEST_LABELS] == "damaged"
    server.asked.clear()
    with caplog.at_level(logging.WARNING):
        assert obtain(small(server.mirror)) == RAW
    assert f"{folder / catalogue.TEST_LABELS} is damaged" in caplog.text
    assert server.asked == [f"{catalogue.TEST_LABELS}.gz"]
    assert (folder / catalogue.TEST_LABELS).read_bytes() == RAW[catalogue.TEST_LABELS]


def test_a_damaged_cached_file_is_not_used_even_without_network(server: Server, folder: Path) -> None:
    obtain(small(server.mirror))
    (folder / catalogue.TRAIN_LABELS).write_bytes(b"tampered")
    with pytest.raises(DataError, match=catalogue.TRAIN_LABELS):
        obtain(small())


def tampered(raw: bytes) -> bytes:
    return gzip.compress(raw[:-1] + bytes([raw[-1] ^ 1]))


def bomb(raw: bytes) -> bytes:
    return gzip.compress(raw + bytes(10**7))


@pytest.mark.parametrize("spoil", [tampered, bomb, lambda raw: gzip.compress(raw)[:-20], lambda raw: b"\x1f\x8b?"])
def test_wrong_content_from_a_mirror_is_never_stored(spoil, server: Server, folder: Path) -> None:
    server.bodies[f"{catalogue.TRAIN_IMAGES}.gz"] = spoil(RAW[catalogue.TRAIN_IMAGES])
    with pytest.raises(DataError, match=f"{catalogue.TRAIN_IMAGES} has a wrong checksum") as caught:
        obtain(small(server.mirror))
    assert str(folder) in str(caught.value)
    assert names(folder) == set(RAW) - {catalogue.TRAIN_IMAGES}


def test_unpacking_stops_one_byte_after_the_known_size() -> None:
    file, raw = FILES[0], RAW[catalogue.TRAIN_IMAGES]
    assert len(file.unpack(bomb(raw))) == file.bytes + 1
    assert file.unpack(raw) == raw  # a server may unpack on the way


def test_a_download_is_cut_off_when_too_long(server: Server) -> None:
    server.bodies[f"{catalogue.TRAIN_LABELS}.gz"] = bytes(10**6)
    with pytest.raises(DataError, match=f"{catalogue.TRAIN_LABELS} is longer than it should be"):
        obtain(small(server.mirror))


def test_the_next_mirror_helps_out(server: Server, folder: Path) -> None:
    server.cut = {f"{catalogue.TRAIN_LABELS}.gz"}  # the connection breaks in the second file
    folder_mirror = folder.parent / "mirror"
    folder_mirror.mkdir(parents=True)
    for name, raw in RAW.items():
        (folder_mirror / f"{name}.gz").write_bytes(gzip.compress(raw))
    refused = Website("http://127.0.0.1:1/nothing-listens-here")
    assert obtain(small(refused, server.mirror, Folder(folder_mirror))) == RAW
    assert server.asked == [f"{catalogue.TRAIN_IMAGES}.gz", f"{catalogue.TRAIN_LABELS}.gz"]


def test_a_missing_file_is_reported_with_its_status(server: Server) -> None:
    server.bodies.clear()
    with pytest.raises(DataError, match=f"{catalogue.TRAIN_IMAGES}.gz: 404"):
        obtain(small(server.mirror))


def test_a_silent_mirror_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "SILENCE_S", 0.05)
    server.silent.set()
    with pytest.raises(DataError, match="no answer in time"):
        obtain(small(server.mirror))
    assert len(server.asked) == 1  # not once more for each file


def test_a_dripping_mirror_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "FILE_S", -1.0)  # the deadline has passed when the first piece arrives
    with pytest.raises(DataError, match="took more than"):
        obtain(small(server.mirror))


def test_without_network_the_error_says_what_to_put_where(folder: Path) -> None:
    with pytest.raises(DataError) as caught:
        obtain(small(Website("http://127.0.0.1:1")))
    assert all(name in str(caught.value) for name in RAW)
    assert f"into {folder}" in str(caught.value)
    folder.mkdir(parents=True)
    for name, raw in RAW.items():  # what it says helps
        (folder / f"{name}.gz").write_bytes(gzip.compress(raw))
    assert obtain(small()) == RAW


def test_an_unwritable_cache_is_one_sentence(server: Server, folder: Path) -> None:
    folder.parent.write_text("a file where a folder should be")
    with pytest.raises(DataError, match="FEELSTREAM_CACHE"):
        obtain(small(server.mirror))


def test_a_full_disk_leaves_no_part_behind(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    with pytest.raises(DataError, match="No space left on device"):
        obtain(small(server.mirror))
    assert names(folder) == set()


def test_many_fetch_at_once(server: Server, folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: obtain(small(server.mirror)), range(8)))
    assert all(result == RAW for result in results)
    assert names(folder) == set(RAW)


def test_progress_is_reported(server: Server) -> None:
    seen: dict[str, tuple[int, int]] = {}
    obtain(small(server.mirror), lambda name, received, total: seen.update({name: (received, total)}))
    assert seen == {name: (len(server.bodies[f"{name}.gz"]),) * 2 for name in RAW}


def test_load_fetch_and_present(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue.COLLECTIONS, "mnist", small(server.mirror))
    assert set(datasets.present()["mnist"].values()) == {"absent"}
    assert datasets.fetch("mnist") == [folder / name for name in RAW]
    assert set(datasets.present()["mnist"].values()) == {"present"}
    loaded = datasets.load("mnist")
    assert loaded.shape == (1, 28, 28)
    assert loaded.train_images.shape == (30, 1, 28, 28)
    assert loaded.test_images.tobytes() == RAW[catalogue.TEST_IMAGES][16:]
    assert loaded.train_labels.tolist() == [i % 10 for i in range(30)]
    assert (loaded.mean, loaded.std) == (0.1307, 0.3081)
