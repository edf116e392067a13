"""The learner: one model on one data set, behind which an engine does the arithmetic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.data.datasets import Dataset
from feelstream.data.datasets.dataset import Images
from feelstream.errors import EngineError
from feelstream.evaluation.contract import Part, Predictions

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]  # of samples
ABSENT = -1  # in place of a sample number: no sample here, nor behind it
BelowOne = Annotated[float, Field(strict=True, ge=0, lt=1)]


@dataclass(frozen=True)
class LocalSGD:
    """What a device does with the gradient g of its batch's mean loss at its weights w, which began as θ.

    In each step, in this order (a term that is left out costs nothing):

        g ← g + correction + prox · (w − θ)               of the device's objective: SCAFFOLD's and FedProx's terms
        g ← g · min(1, clip / (‖g‖ + 10⁻⁶))               over all parameters, as torch.nn.utils.clip_grad_norm_
        g ← g + weight_decay · w                          from here on it is torch.optim.SGD
        v ← momentum · v + g                              v begins as 0, or as the state that is handed in
        w ← w − lr · v, or with nesterov  w ← w − lr · (g + momentum · v)

    lr: one step size for all steps, or one for each: any schedule within a round. One that changes from round to round
        is another LocalSGD in each round.
    momentum: in [0, 1). nesterov: only with momentum.
    weight_decay, prox: at least 0. clip: positive, or None for no clipping.

    >>> LocalSGD(0.1).rates(3).tolist() == [np.float32(0.1)] * 3
    True
    """

    lr: float | tuple[float, ...]
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    prox: float = 0.0
    clip: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.lr, Iterable):  # a list or an array too; a tuple can be compared and hashed
            object.__setattr__(self, "lr", tuple(float(rate) for rate in self.lr))
        if not np.isfinite(self.lr).all():
            raise ValueError(f"the learning rate must be a finite number, not {self.lr}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, not {self.momentum}")
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0")
        for name in ("weight_decay", "prox"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be a finite number of at least 0, not {getattr(self, name)}")
        if self.clip is not None and not 0 < self.clip < float("inf"):
            raise ValueError(f"clip must be a positive finite number or None, not {self.clip}")

    @property
    def largest_lr(self) -> float:
        return float(np.max(self.lr))

    def rates(self, steps: int) -> Floats:
        """The step size of each of so many steps."""
        if isinstance(self.lr, tuple) and len(self.lr) != steps:
            raise ValueError(f"as many learning rates as steps are needed: {steps}, not {len(self.lr)}")
        with np.errstate(over="ignore"):  # what float32 has no room for is infinite, and the model soon no number
            return np.full(steps, self.lr, np.float32)


@dataclass(frozen=True)
class Training:
    """What a cohort of n devices brings back from one round of local training.

    Attributes:
        updates: float32 (n, parameters), the change θ_k − θ of each device's model.
        losses: float32 (n, steps, batch), of each drawn sample at the step it was drawn for; NaN if it is absent.
        momentum: float32 (n, parameters), the state v of each device after its last step; None without momentum.
    """

    updates: Floats
    losses: Floats
    momentum: Floats | None = None

    @property
    def norms(self) -> NDArray[np.float64]:
        """(n,) ‖Δθ_k‖₂, one by one, since all squares would take twice the memory of the updates."""
        return np.sqrt([np.square(update, dtype=np.float64).sum() for update in self.updates])


@dataclass(frozen=True)
class Evaluation:
    """Mean cross-entropy and share of correct answers on the whole test set."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Gradients:
    """The gradient at θ of the mean loss over some samples of each of n devices; no step is taken.

    values: float32 (n, parameters), 0 for a device without samples.
    losses: float32 (n, samples), at θ; NaN for an absent sample.
    """

    values: Floats
    losses: Floats

    @property
    def norms(self) -> NDArray[np.float64]:
        """(n,), the Euclidean norm of each."""
        return np.sqrt(np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64))


class Learner(ABC):
    """Base of the engines. θ is one float32 vector in the order that models.py documents.

    Arrays of sample numbers may be padded: −1 is an absent sample, and comes behind those that are there. So an epoch
    may end with a shorter batch, and devices may differ in how many batches they have: the mean is over the samples
    that are there, and a step without any is not taken (weights and momentum stay as they are).

    What comes in and out is checked here; an engine fills the arrays that its `_train`, `_gradients`, `_evaluate` and
    `_predict` are handed, which hold updates and gradients of 0 and losses of NaN.
    """

    name: str  # "native" or "torch": stored with the run
    details: dict[str, str]  # what else decides the last bit: instruction set, library version
    parameters: int  # of the model: the length of θ

    def __init__(self, data: Dataset) -> None:
        """An input is (x/255 − mean) / std where x is uint8, (x − mean) / std where it is float32, and x of tokens."""
        self.images: dict[Part, Images] = {"train": data.train_images, "test": data.test_images}
        labels: dict[Part, NDArray] = {"train": data.train_labels, "test": data.test_labels}
        self.labels = {part: np.ascontiguousarray(own, np.int32) for part, own in labels.items()}

    @abstractmethod
    def init(self, seed: int) -> Floats:
        """θ(1): the same vector whatever the engine."""

    @abstractmethod
    def log_probabilities(self, theta: Floats, samples: Numbers) -> Floats:
        """(m, classes) ln p_c of these samples (m,) of the training set."""

    @abstractmethod
    def embeddings(self, theta: Floats, samples: Numbers) -> Floats:
        """(n, features) what the last layer is given, mean over each device's samples; `samples` as in `gradients`."""

    def train(
        self,
        theta: Floats,
        batches: Numbers,
        sgd: LocalSGD | float,
        *,
        momentum: Floats | None = None,
        correction: Floats | None = None,
    ) -> Training:
        """Local SGD from θ for each device; a number for `sgd` is plain SGD with that step size.

        batches: int64 (n, steps, batch), sample numbers of the training set, padded or not.
        momentum: float32 (n, parameters), each device's v to begin with, such as it came back from an earlier round.
        correction: float32 (n, parameters), added to each of a device's gradients: c − c_k in SCAFFOLD.
        """
        theta, sgd = self._finite(theta), sgd if isinstance(sgd, LocalSGD) else LocalSGD(sgd)
        batches = padded(batches, len(self.labels["train"]), ("devices", "steps", "batch"))
        updates = np.zeros((len(batches), self.parameters), np.float32)
        losses = np.full(batches.shape, np.nan, np.float32)
        for name, array in (("momentum", momentum), ("correction", correction)):
            if array is not None and (array.dtype != np.float32 or array.shape != updates.shape):
                wrong = f"{array.dtype} of shape {array.shape}"
                raise ValueError(f"{name} must be float32 of shape {updates.shape}, not {wrong}")
        if momentum is not None and sgd.momentum == 0:
            raise ValueError("a state of momentum was handed in, and momentum is 0")
        if sgd.momentum:  # a copy, which training changes
            momentum = np.zeros_like(updates) if momentum is None else np.array(momentum, order="C")
        if correction is not None:
            correction = np.ascontiguousarray(correction)
        found = Training(updates, losses, momentum)
        if batches.size:
            self._train(theta, batches, sgd, correction, found)
        for device in range(len(batches)):
            if not _all_finite(updates[device], losses[device], batches[device]):
                raise EngineError(
                    f"training diverged: device {device} of the cohort of {len(batches)} (counted from 0) has"
                    f" weights or losses that are not finite numbers; try a learning.local.lr below {sgd.largest_lr:g}"
                )
        return found

    def gradients(self, theta: Floats, samples: Numbers) -> Gradients:
        """At θ, for each device by itself; `samples` is (n, samples) numbers of the training set, padded or not."""
        theta, samples = self._finite(theta), padded(samples, len(self.labels["train"]), ("devices", "samples"))
        values = np.zeros((len(samples), self.parameters), np.float32)
        found = Gradients(values, np.full(samples.shape, np.nan, np.float32))
        if samples.size:
            self._gradients(theta, samples, found)
        if not _all_finite(found.values, found.losses, samples):
            raise _too_large("a gradient")
        return found

    def evaluate(self, theta: Floats) -> Evaluation:
        loss, right = self._evaluate(self._finite(theta))
        if not np.isfinite(loss):
            raise _too_large("the test loss")
        return Evaluation(loss / len(self.labels["test"]), right / len(self.labels["test"]))

    def predict(self, theta: Floats, of: Part = "test", samples: Numbers | None = None) -> Predictions:
        """Loss and class of each of these samples (m,) of the training or the test set; None: of all."""
        theta, labels = self._finite(theta), self.labels[of]
        samples = np.arange(len(labels)) if samples is None else padded(samples, len(labels), ("samples",))
        if ABSENT in samples:
            raise ValueError("samples to predict hold −1, and every number must name a sample")
        losses, classes = np.empty(len(samples), np.float32), np.empty(len(samples), np.int32)
        self._predict(theta, of, samples, losses, classes)
        if not np.isfinite(losses).all():
            raise _too_large("a loss")
        return Predictions(losses, classes, labels[samples])

    @abstractmethod
    def _train(
        self, theta: Floats, batches: Numbers, sgd: LocalSGD, correction: Floats | None, found: Training
    ) -> None:
        """Fill updates and losses; momentum becomes that after the last step."""

    @abstractmethod
    def _gradients(self, theta: Floats, samples: Numbers, found: Gradients) -> None: ...

    @abstractmethod
    def _evaluate(self, theta: Floats) -> tuple[float, int]:
        """The sum of the losses of the test set, and how many answers are correct."""

    @abstractmethod
    def _predict(
        self, theta: Floats, of: Part, samples: Numbers, losses: Floats, classes: NDArray[np.int32]
    ) -> None: ...

    def _finite(self, theta: Floats) -> Floats:
        if theta.dtype != np.float32 or theta.shape != (self.parameters,):
            raise ValueError(
                f"theta must be float32 of shape ({self.parameters},), not {theta.dtype} of shape {theta.shape}"
            )
        if not np.isfinite(theta).all():
            raise EngineError("theta holds weights that are not finite numbers: an earlier round diverged")
        return np.ascontiguousarray(theta)


def _all_finite(vectors: Floats, losses: Floats, numbers: Numbers) -> bool:
    """Whether all are finite numbers, and every loss of a sample that is there."""
    return bool(np.isfinite(vectors).all() and (np.isfinite(losses) | (numbers == ABSENT)).all())


def _too_large(what: str) -> EngineError:
    return EngineError(
        f"{what} is not a finite number: the weights have grown too large; choose a smaller learning.local.lr"
    )


def padded(numbers: Numbers, count: int, axes: Sequence[str]) -> Numbers:
    """The same, contiguous, once each has been found to be one of `count` samples, or absent with none behind it.

    axes: what the axes of the array are, for messages; the last one is that of the samples.
    """
    shape = f"({', '.join(axes)})"
    if numbers.dtype != np.int64 or numbers.ndim != len(axes):
        raise ValueError(f"batches must be int64 of shape {shape}, not {numbers.dtype} of shape {numbers.shape}")
    if numbers.size:
        least, most = numbers.min(), numbers.max()
        if least < ABSENT or most >= count:
            raise ValueError(
                f"sample numbers must lie in 0 … {count - 1}, or be −1 for an absent one, and batches hold"
                f" {least} … {most}"
            )
        if least == ABSENT and ((numbers[..., :-1] == ABSENT) & (numbers[..., 1:] != ABSENT)).any():
            raise ValueError("an absent sample (−1) must come behind the samples of its batch")
    return np.ascontiguousarray(numbers)
