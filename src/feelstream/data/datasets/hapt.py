"""UCI HAPT: 30 people with a smartphone at the waist, as windows of 128 samples in the order of their lives.

J.-L. Reyes-Ortiz, L. Oneto, A. Samà, X. Parra, D. Anguita, "Transition-aware human activity recognition using
smartphones", Neurocomputing 171, 2016; data: doi 10.24432/C54G7M, CC BY 4.0. Acceleration (g) and rotation
(rad/s) in three axes each, 50 samples a second; 61 recordings of five to ten minutes, two a person and once three.

A window has WINDOW samples of one recording and begins every WINDOW/2; only windows within one of the six
activities are kept, not those with a transition or without a label. A person's last recording is for testing, the
earlier ones are for training, so no test window shares a sample with, or lies beside, a training window.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets.dataset import Dataset, Normalise, digest_of, standardised
from feelstream.data.recording import Recording

RATE_HZ = 50.0
WINDOW = 128
ACTIVITIES = ("walking", "walking upstairs", "walking downstairs", "sitting", "standing", "lying")
CHANNELS = 6
CACHED = "hapt.npz"


@dataclass(frozen=True)
class Take:
    """One recording: person from 0, signals float32 (n, 6), labels int8 (n,), 1 to 6 for the activities."""

    person: int
    signals: NDArray[np.float32]
    labels: NDArray[np.int8]


def packed(takes: list[Take]) -> bytes:
    """The recordings as the bytes of an .npz file, the same bytes wherever they came from."""
    arrays = {
        "person": np.array([take.person for take in takes], "<u1"),
        "length": np.array([len(take.labels) for take in takes], "<i8"),
        "signals": np.concatenate([take.signals for take in takes]).astype("<f4"),
        "labels": np.concatenate([take.labels for take in takes]).astype("<i1"),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that the bytes never differ
            member.create_system = 3
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return file.getvalue()


def unpacked(raw: bytes) -> list[Take]:
    """The recordings in a (checked) cached file."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        person, length, signals, labels = (file[name] for name in ("person", "length", "signals", "labels"))
    ends = np.cumsum(length)
    return [
        Take(int(who), signals[end - count : end], labels[end - count : end])
        for who, count, end in zip(person, length, ends, strict=True)
    ]


def windows(take: Take) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.float64]]:
    """Signals (n, 6, 1, WINDOW), activities (n,) from 0, and the s from the recording's start to each one's end."""
    starts = np.arange(0, len(take.labels) - WINDOW + 1, WINDOW // 2)
    if not len(starts):
        return np.empty((0, CHANNELS, 1, WINDOW), np.float32), np.empty(0, np.uint8), np.empty(0)
    within = np.lib.stride_tricks.sliding_window_view(take.labels, WINDOW)[starts]
    first = within[:, 0]
    kept = (within == first[:, None]).all(axis=1) & (first >= 1) & (first <= len(ACTIVITIES))
    starts = starts[kept]
    signals = np.lib.stride_tricks.sliding_window_view(take.signals, WINDOW, axis=0)[starts]
    return signals[:, :, None, :].copy(), (first[kept] - 1).astype(np.uint8), (starts + WINDOW) / RATE_HZ


def split(takes: list[Take]) -> tuple[list[Take], list[Take]]:
    """Training and test recordings: each person's last one is for testing."""
    last = {take.person: number for number, take in enumerate(takes)}
    test = set(last.values())
    return [take for number, take in enumerate(takes) if number not in test], [takes[number] for number in sorted(test)]


def dataset(raw: bytes, normalise: Normalise = "auto") -> Dataset:
    """The data set in a (checked) cached file."""
    train, test = split(unpacked(raw))
    begun: dict[int, float] = {}  # a person's second training recording follows the first
    parts, owners, times = [], [], []
    for take in train:
        signals, labels, ends_s = windows(take)
        start_s = begun.get(take.person, 0.0)
        begun[take.person] = start_s + len(take.labels) / RATE_HZ
        parts.append((signals, labels))
        owners.append(np.full(len(labels), take.person, np.int32))
        times.append(start_s + ends_s)
    tests = [windows(take)[:2] for take in test]
    x_train, y_train = (np.concatenate(part) for part in zip(*parts, strict=True))
    x_test, y_test = (np.concatenate(part) for part in zip(*tests, strict=True))
    recording = Recording(np.concatenate(owners), np.concatenate(times))
    assert recording.owner is not None
    assert recording.time_s is not None
    digest = digest_of(x_train, y_train, x_test, y_test, recording.owner, recording.time_s)
    as_they_are = (part.astype(np.float32) for part in (x_train, x_test))
    x_train, x_test = standardised(x_train, x_test) if normalise == "auto" else as_they_are
    return Dataset(
        name="hapt",
        classes=len(ACTIVITIES),
        shape=(CHANNELS, 1, WINDOW),
        train_labels=y_train,
        test_labels=y_test,
        digest=digest,
        train_source=x_train,
        test_source=x_test,
        recording=recording,
    )
