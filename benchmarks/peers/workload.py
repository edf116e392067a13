"""The workloads that every contender plays, and what it reports. NumPy only: each peer's environment has that.

`mnist` deals MNIST evenly to 40 clients and trains the paper's network. `cifar` deals images of CIFAR-10's shape to 100
clients, each class by shares drawn from a Dirichlet distribution of 0.3, and trains our `cifar-cnn`.

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

LEAST, TRIES = 32, 1000  # images of a client, and how often shares are drawn until all have them
STARTED = "PEERS_STARTED"  # when the measuring process started this one, in seconds since the epoch


@dataclass(frozen=True)
class Kind:
    """What a workload trains on, and how much."""

    dataset: str
    shape: tuple[int, int, int]
    normalisation: tuple[float, float]  # mean and deviation of all pixels of the training set, from 0 to 1
    model: str  # feelstream's name for it
    clients: int
    sizes: tuple[int, ...]  # n, clients a round
    rounds: int
    steps: int
    lr: float
    alpha: float | None = None  # of the Dirichlet distribution; None: dealt evenly


KINDS = {
    "mnist": Kind("mnist", (1, 28, 28), (0.1307, 0.3081), "paper-cnn", 40, (2, 4), 40, 20, 0.02),
    "cifar": Kind("cifar10", (3, 32, 32), (0.4734, 0.2516), "cifar-cnn", 100, (10,), 30, 10, 0.05, alpha=0.3),
}


@dataclass(frozen=True)
class Workload:
    """K clients with shares of the training images, n of them at random in a round; FedAvg with equal weights."""

    workload: str
    data: Path
    size: int  # n, clients a round
    rounds: int  # that count, after one that does not
    seed: int
    tuned: bool  # the fastest form of a contender, not the one in its documentation
    batch: int = 32

    @property
    def kind(self) -> Kind:
        return KINDS[self.workload]

    @property
    def clients(self) -> int:
        return self.kind.clients

    @property
    def steps(self) -> int:
        return self.kind.steps

    @property
    def lr(self) -> float:
        return self.kind.lr

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
    parser.add_argument("--workload", choices=list(KINDS), default="mnist")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tuned", action="store_true")
    return Workload(**vars(parser.parse_args()))


class Images:
    """Normalised floats (samples, channels, rows, columns), their labels, and each client's share for training."""

    def __init__(self, work: Workload) -> None:
        with np.load(work.data) as stored:
            self.train, self.test = (_normalised(stored[name], work.kind) for name in ("x_train", "x_test"))
            self.train_labels = stored["y_train"].astype(np.int64)
            self.test_labels = stored["y_test"].astype(np.int64)
        rng = np.random.default_rng(work.seed)
        self.shares: list[NDArray[np.int64]] = (
            np.array_split(rng.permutation(len(self.train)), work.clients)
            if work.kind.alpha is None
            else dirichlet(self.train_labels, work.clients, work.kind.alpha, rng)
        )


def dirichlet(
    labels: NDArray[np.int64], clients: int, alpha: float, rng: np.random.Generator, least: int = LEAST
) -> list[NDArray[np.int64]]:
    """Each class dealt by shares of its own, drawn again until nobody has less than a mini-batch."""
    for _ in range(TRIES):
        shares: list[list[NDArray[np.int64]]] = [[] for _ in range(clients)]
        for label in np.unique(labels):
            own = rng.permutation(np.flatnonzero(labels == label))
            ends = (np.cumsum(rng.dirichlet(np.full(clients, alpha)))[:-1] * len(own)).astype(np.int64)
            for share, part in zip(shares, np.split(own, ends), strict=True):
                share.append(part)
        found = [np.concatenate(share) for share in shares]
        if min(map(len, found)) >= least:
            return found
    raise ValueError(f"{len(labels)} images are too few to deal {clients} clients {least} or more each")


@lru_cache(maxsize=1)
def images_of(work: Workload) -> Images:
    """Loaded once in each process."""
    return Images(work)


def _normalised(pixels: NDArray[np.uint8], kind: Kind) -> NDArray[np.float32]:
    mean, std = kind.normalisation
    scaled = (pixels.reshape(-1, *kind.shape).astype(np.float32) / 255 - mean) / std
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
