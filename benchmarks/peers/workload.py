"""The one workload that every contender plays, and what it reports. NumPy only: each peer's environment has that.

A contender says after each round's test what the accuracy was, and nothing else. The clock of the round loop starts
when the first round is done and tested, so that one round is the warm-up of everybody: worker processes that load their
libraries, compilers that compile and caches that fill are start-up. Then come the rounds that count.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

STARTED = "PEERS_STARTED"  # when the measuring process started this one, in seconds since the epoch
MEAN, STD = 0.1307, 0.3081


@dataclass(frozen=True)
class Workload:
    """K clients with equal shares of the training images, n of them at random in a round; FedAvg with equal weights."""

    data: Path
    size: int  # n, clients a round
    rounds: int  # that count, after one that does not
    seed: int
    tuned: bool  # the fastest form of a contender, not the one in its documentation
    clients: int = 40
    steps: int = 20
    batch: int = 32
    lr: float = 0.02

    @property
    def played(self) -> int:
        return self.rounds + 1

    @property
    def drawn(self) -> int:
        """Training images that a client takes in a round."""
        return self.steps * self.batch


def asked() -> Workload:
    """The workload of this process's command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tuned", action="store_true")
    return Workload(**vars(parser.parse_args()))


class Images:
    """MNIST as normalised floats (samples, 1, 28, 28), its labels, and each client's share for training."""

    def __init__(self, work: Workload) -> None:
        with np.load(work.data) as stored:
            self.train, self.test = _normalised(stored["x_train"]), _normalised(stored["x_test"])
            self.train_labels = stored["y_train"].astype(np.int64)
            self.test_labels = stored["y_test"].astype(np.int64)
        order = np.random.default_rng(work.seed).permutation(len(self.train))
        self.shares: list[NDArray[np.int64]] = np.array_split(order, work.clients)


@lru_cache(maxsize=1)
def images_of(work: Workload) -> Images:
    """Loaded once in each process."""
    return Images(work)


def _normalised(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    scaled = (pixels.reshape(-1, 1, 28, 28).astype(np.float32) / 255 - MEAN) / STD
    return scaled.astype(np.float32)


class Diary:
    """Accuracies and the times at which they were known; printed at the end as the last line of output."""

    def __init__(self) -> None:
        self.accuracy: list[float] = []
        self._times: list[float] = []

    def tested(self, accuracy: float) -> None:
        self._times.append(time.time())
        self.accuracy.append(float(accuracy))

    def finish(self, form: str) -> None:
        """form: how this contender was set up, in a few words."""
        started = float(os.environ.get(STARTED, self._times[0]))
        report = {
            "form": form,
            "accuracy": self.accuracy,
            "loop_s": self._times[-1] - self._times[0],
            "startup_s": self._times[0] - started,
        }
        print("\n" + json.dumps(report), flush=True)
