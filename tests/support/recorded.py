"""A small natural stream: series with owners and times, in an .npz file."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def series_of_five(path: Path, samples: int = 300) -> str:
    """Five owners, three activities in stretches; a sine whose frequency tells the activity, plus noise."""
    rng = np.random.default_rng(0)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(count) // 10 % 3
        phase = rng.uniform(0, 6, (count, 2, 1, 1))
        wave = np.sin(phase + np.arange(32) * (labels[:, None, None, None] + 1) / 4)
        return (wave + rng.normal(0, 0.3, wave.shape)).astype(np.float32), labels

    x_train, y_train = part(samples)
    x_test, y_test = part(90)
    owner = np.arange(samples) % 5
    np.savez(
        path, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, owner_train=owner,
        time_train=np.arange(samples) // 5 * 1.5 + owner * 0.1,
    )  # fmt: skip
    return str(path)
