"""How files are read: CIFAR-10 from records and from pictures, HAPT from its pickle; and what is really fetched."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import feelstream as fs
from feelstream.data.datasets import Dataset, load, readers
from feelstream.errors import DataError


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


def fetched(name: str) -> Dataset:
    try:
        return load(name)
    except DataError as problem:
        pytest.skip(f"{name} cannot be fetched here: {problem}")


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
def test_digests_are_those_of_stored_runs(name: str, digest: str) -> None:
    """run.json has the digest of the data: a run of today can be repeated as long as it stays."""
    data = fetched(name)
    assert data.digest == digest
    if data.train_images.dtype == np.uint8:  # the agreed mean and deviation are those of the pixels
        assert data.train_images.mean() / 255 == pytest.approx(data.mean, abs=5e-5)
        assert data.train_images.std() / 255 == pytest.approx(data.std, abs=5e-5)


@pytest.mark.slow
@pytest.mark.fetched
def test_hapt(tmp_path: Path) -> None:
    """61 recordings of 30 people, 31 of them for training; the two halves have about the same number of windows.

    Most samples of a person have the label of the one before, and it can be learned.
    """
    data = fetched("hapt")
    owner = data.recording.owner
    assert owner is not None
    assert len(np.unique(owner)) == 30
    assert (len(data.train_labels), len(data.test_labels)) == (5168, 4849)
    stays = [np.mean(data.train_labels[owner == k][1:] == data.train_labels[owner == k][:-1]) for k in range(30)]
    assert min(stays) > 0.8
    run = fs.simulate(fs.preset("har", ["learning.eval_every=30"]), out=tmp_path / "run")
    assert 0.7 < run.rounds["accuracy"][-1] < 1  # six activities; 0.86, 0.87 and 0.89 with the seeds 0, 1 and 2
    assert fs.verify(tmp_path / "run").ok
