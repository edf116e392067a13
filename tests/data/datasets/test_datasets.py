from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feelstream.data import datasets
from feelstream.data.datasets.synthetic import CHUNK, Synthetic
from feelstream.errors import DataError


def own(rng: np.random.Generator, **changes: Any) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "x_train": rng.integers(256, size=(12, 6, 5), dtype=np.uint8),
        "y_train": np.arange(12) % 3,
        "x_test": rng.integers(256, size=(4, 6, 5), dtype=np.uint8),
        "y_test": np.array([0, 1, 2, 3]),
    }
    return {key: value for key, value in (arrays | changes).items() if value is not None}


def write(path: Path, arrays: dict[str, Any]) -> str:
    np.savez(path, **arrays)
    return str(path)


class TestSynthetic:
    def test_is_a_function_of_its_settings(self) -> None:
        data, again = datasets.load("synthetic"), pickle.loads(pickle.dumps(datasets.load("synthetic")))
        assert (data.name, data.classes, data.shape) == ("synthetic", 10, (1, 28, 28))
        assert data.train_images.shape == (6000, 1, 28, 28)
        assert data.test_images.shape == (1000, 1, 28, 28)
        assert data.train_images.dtype == data.train_labels.dtype == np.uint8
        assert np.array_equal(data.train_images, again.train_images)
        assert np.bincount(data.train_labels).tolist() == [600] * 10
        assert np.ptp(np.bincount(datasets.load("synthetic", samples=1234).train_labels)) == 1
        others: list[dict[str, Any]] = [{}, {"samples": 5999}, {"test_samples": 1001}, {"classes": 9}]
        assert len({data.digest, *(datasets.load("synthetic", **other).digest for other in others)}) == 4
        scaled = data.train_images / 255
        assert data.mean == pytest.approx(scaled.mean(), rel=1e-12)
        assert data.std == pytest.approx(scaled.std(), rel=1e-12)

    def test_images_differ_and_do_not_depend_on_how_many_there_are(self) -> None:
        few, many = (Synthetic(samples=n, test_samples=10) for n in (CHUNK + 7, 2 * CHUNK + 1))
        train, test = many.images("train"), many.images("test")
        assert np.array_equal(few.images("train"), train[: CHUNK + 7])
        assert len(np.unique(np.concatenate([train, test]), axis=0)) == 2 * CHUNK + 11

    def test_labels_come_without_images(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Synthetic, "images", lambda *_: pytest.fail("images were made"))
        data = datasets.load("synthetic", samples=10_000_019)
        assert data.train_labels[-1] == 10_000_018 % 10
        assert data.train_labels.nbytes == 10_000_019

    def test_classes_overlap_a_little(self) -> None:
        """The nearest class mean, a learner in closed form, gets most test images right but not all."""
        data = datasets.load("synthetic")
        train, test = data.train_images.reshape(6000, -1) / 255, data.test_images.reshape(1000, -1) / 255
        means = np.stack([train[data.train_labels == label].mean(0) for label in range(10)])
        guess = (test @ means.T - (means**2).sum(1) / 2).argmax(1)
        assert 0.9 < (guess == data.test_labels).mean() < 0.999

    @pytest.mark.parametrize(
        "wrong",
        [{"samples": 0}, {"samples": 10**8 + 1}, {"test_samples": -1}, {"classes": 1}, {"classes": 257}],
    )
    def test_refuses(self, wrong: dict[str, Any]) -> None:
        (field, value), *_ = wrong.items()
        with pytest.raises(DataError, match=f"{field} is {value}, allowed are"):
            datasets.load("synthetic", **wrong)


class TestOwn:
    @pytest.mark.parametrize(("given", "shape"), [((6, 5), (1, 6, 5)), ((3, 6, 5), (3, 6, 5))], ids=["grey", "colour"])
    def test_images(self, given: tuple[int, ...], shape: tuple[int, ...], tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        x = {key: rng.integers(256, size=(n, *given), dtype=np.uint8) for key, n in (("x_train", 12), ("x_test", 4))}
        data = datasets.load(write(tmp_path / "a.npz", own(rng, **x)))
        assert (data.classes, data.shape) == (4, shape)
        assert np.array_equal(data.train_images, x["x_train"].reshape(12, *shape))
        assert np.array_equal(data.test_images, x["x_test"].reshape(4, *shape))
        assert data.test_labels.tolist() == [0, 1, 2, 3]
        assert data.mean == pytest.approx(np.mean(x["x_train"]) / 255, rel=1e-12)
        assert data.std == pytest.approx(np.std(x["x_train"]) / 255, rel=1e-12)

    def test_digest_follows_the_content(self, tmp_path: Path) -> None:
        arrays = own(np.random.default_rng(0))
        one = datasets.load(write(tmp_path / "a.npz", arrays)).digest
        np.savez_compressed(tmp_path / "b.npz", **arrays)  # pyright: ignore[reportArgumentType]
        assert datasets.load(str(tmp_path / "b.npz")).digest == one
        for other in ({"y_test": np.array([0, 1, 2, 0])}, {"round_test": np.array([1, 1, 2, 2])}):
            assert datasets.load(write(tmp_path / "c.npz", arrays | other)).digest != one

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"x_test": None}, "has no array x_test"),
            ({"x_train": np.zeros((12, 6, 5), np.int16)}, r"shape \(12, 6, 5\); tokens .* must be \(N, L\)"),
            ({"x_train": np.full((12, 6), -1)}, "x_train goes from -1 to -1; tokens must be 0 to 2,147,483,647"),
            ({"x_train": np.zeros((12, 6), int)}, "x_train and x_test must be alike"),
            ({"x_train": np.zeros((12, 6, 5), bool)}, "x_train is bool; features must be uint8"),
            ({"x_train": np.zeros((12, 6, 5))}, "x_train and x_test must be alike, both uint8, both floats"),
            ({"x_train": np.full((12, 6, 5), np.nan)}, "x_train holds values that are not finite"),
            ({"x_train": np.full((12, 6, 5), 1e300)}, "x_train holds values beyond"),
            ({"x_train": np.zeros(12, np.uint8)}, r"x_train has shape \(12,\)"),
            ({"x_train": np.zeros((0, 6, 5), np.uint8)}, r"x_train has shape \(0, 6, 5\)"),
            ({"x_test": np.zeros((4, 6, 5, 3), np.uint8)}, "x_test .* channels last"),
            ({"x_test": np.zeros((4, 5, 6), np.uint8)}, "they must have one shape"),
            ({"x_train": np.full((12, 6, 5), 9, np.uint8)}, "x_train has one value everywhere"),
            ({"y_train": np.arange(11) % 3}, "x_train has 12 samples and y_train has 11 labels"),
            ({"y_train": np.arange(12) / 2}, "y_train is float64; .* integers from 0: no regression"),
            ({"y_train": np.zeros(12, bool)}, "y_train is bool"),
            ({"y_train": np.zeros((12, 1), int)}, r"y_train is int64 of shape \(12, 1\)"),
            ({"y_test": np.array([0, 1, 2, -1])}, "y_test goes from -1 to 2"),
            ({"y_test": np.array([0, 1, 2, 65536])}, "y_test goes from 0 to 65536; labels must be 0 to 65535"),
            ({"y_train": np.zeros(12, int), "y_test": np.zeros(4, int)}, "at least two classes"),
            ({"y_train": np.array([None] * 12)}, "y_train cannot be read"),
            ({"owner_train": np.zeros(11, int)}, r"owner_train is int64 of shape \(11,\); .* shape \(12,\)"),
            ({"owner_train": np.zeros(12)}, "owner_train is float64"),
            ({"owner_train": np.full(12, 1)}, "count the owners from 0 without gaps"),
            ({"owner_train": np.arange(12) * 2}, "count the owners from 0 without gaps"),
            ({"owner_train": np.arange(-1, 11)}, "count the owners from 0 without gaps"),
            ({"time_train": np.full(12, -1.0)}, "every time in time_train must be a finite number"),
            ({"time_train": np.full(12, np.inf)}, "every time in time_train must be a finite number"),
            ({"time_train": np.full(12, "now")}, "time_train is <U3"),
            ({"round_test": np.full(4, 2)}, "round_test begins with round 2; it must begin with round 1"),
            ({"round_test": np.ones(3, int)}, r"must be integers, shape \(4,\)"),
            ({"round_test": np.ones(4)}, "round_test is float64"),
        ],
    )
    def test_refuses(self, changes: dict[str, object], sentence: str, tmp_path: Path) -> None:
        path = write(tmp_path / "a.npz", own(np.random.default_rng(0), **changes))
        with pytest.raises(DataError, match=sentence):
            datasets.load(path)

    def test_refuses_other_files(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="is not there"):
            datasets.load(str(tmp_path / "none.npz"))
        path = tmp_path / "a.npz"
        good = Path(write(tmp_path / "good.npz", own(np.random.default_rng(0)))).read_bytes()
        np.save(tmp_path / "one.npy", np.arange(3))
        with zipfile.ZipFile(tmp_path / "good.npz") as source, zipfile.ZipFile(tmp_path / "longer.npz", "w") as target:
            for name in source.namelist():
                target.writestr(name, source.read(name).replace(b"(12, 6, 5)", b"(12, 6, 6)"))
        for content, sentence in (
            (b"", "the file cannot be read"),
            (b"not a zip file", "the file cannot be read"),
            (pickle.dumps({"x_train": 1}), "the file cannot be read"),
            (good[: len(good) // 2], "the file cannot be read"),
            (good.replace(b"NUMPY", b"YPMUN", 1), "x_train cannot be read"),
            ((tmp_path / "longer.npz").read_bytes(), "x_train cannot be read"),
            ((tmp_path / "one.npy").read_bytes(), "holds a single array"),
        ):
            path.write_bytes(content)
            with pytest.raises(DataError, match=sentence):
                datasets.load(str(path))

    def test_vectors(self, tmp_path: Path) -> None:
        """Any number of classes, and every feature is standardised by the training samples alone."""
        rng = np.random.default_rng(0)
        x_train, x_test = rng.normal([5, -3, 0], [2, 0.1, 1e6], (400, 3)), rng.normal(1, 1, (10, 3))
        x_train[:, 1] = 0.1  # carries nothing
        y_train = np.arange(400) % 300
        arrays = {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": np.full(10, 299)}
        data = datasets.load(write(tmp_path / "a.npz", arrays))
        assert (data.classes, data.shape, data.mean, data.std) == (300, (3, 1, 1), 0.0, 1.0)
        assert np.array_equal(data.train_labels, y_train)
        assert data.train_images.dtype == np.float32
        columns = data.train_images[:, :, 0, 0].astype(np.float64)
        assert columns.mean(0) == pytest.approx([0, 0, 0], abs=1e-6)
        assert columns.std(0) == pytest.approx([1, 0, 1], abs=1e-6)
        mean, deviation = x_train.mean(0), np.array([x_train[:, 0].std(), 1, x_train[:, 2].std()])
        assert data.test_images[:, :, 0, 0] == pytest.approx((x_test - mean) / deviation, rel=1e-5)

    def test_series_with_owners_and_times(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        series = {key: rng.normal(size=(n, 2, 1, 9)).astype(">f4") for key, n in (("x_train", 12), ("x_test", 4))}
        facts = {"owner_train": np.arange(12) % 4, "time_train": np.arange(12)}
        plain, full = (
            datasets.load(write(tmp_path / name, own(rng, **series, **more)))
            for name, more in (("a.npz", {}), ("b.npz", facts))
        )
        assert full.shape == (2, 1, 9)
        assert plain.recording.owner is plain.recording.time_s is None
        assert full.recording.owner is not None
        assert full.recording.owner.tolist() == [0, 1, 2, 3] * 3
        assert full.recording.time_s is not None
        assert full.recording.time_s.tolist() == [float(second) for second in range(12)]
        assert np.array_equal(full.train_images, plain.train_images)
        assert full.digest != plain.digest


def test_unknown_names_are_refused() -> None:
    known = "mnist, fashion-mnist, cifar10, hapt"
    with pytest.raises(DataError, match=f"no data set 'cifar'; allowed are {known}, synthetic"):
        datasets.load("cifar")
    with pytest.raises(DataError, match="samples can be set for the data set synthetic only"):
        datasets.load("mnist", samples=10)
    with pytest.raises(DataError, match=f"'synthetic' cannot be fetched; allowed are {known}"):
        datasets.fetch("synthetic")
