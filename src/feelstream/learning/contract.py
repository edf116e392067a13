"""The learner: one model on one data set, behind which an engine does the arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from feelstream.evaluation.contract import Part as Part
from feelstream.evaluation.contract import Predictions as Predictions

ABSENT = -1  # in place of a sample number: no sample here, nor behind it


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

    >>> LocalSGD(0.1, momentum=0.9).plain, LocalSGD(0.1).rates(3).tolist() == [np.float32(0.1)] * 3
    (False, True)
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
        if not all(map(isfinite, self._lrs)):
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

    @classmethod
    def of(cls, sgd: LocalSGD | float) -> LocalSGD:
        """Itself, or plain SGD with this step size."""
        return sgd if isinstance(sgd, LocalSGD) else cls(sgd)

    @property
    def _lrs(self) -> tuple[float, ...]:
        return self.lr if isinstance(self.lr, tuple) else (self.lr,)

    @property
    def largest_lr(self) -> float:
        """The largest step size, for messages."""
        return max(self._lrs)

    @property
    def plain(self) -> bool:
        """Nothing but w ← w − lr · g, unless there is a correction."""
        return self.momentum == 0 and self.weight_decay == 0 and self.prox == 0 and self.clip is None

    def rates(self, steps: int) -> NDArray[np.float32]:
        """The step size of each of so many steps."""
        if isinstance(self.lr, tuple) and len(self.lr) != steps:
            raise ValueError(f"as many learning rates as steps are needed: {steps}, not {len(self.lr)}")
        with np.errstate(over="ignore"):  # what float32 has no room for is infinite, and the model soon no number
            return np.full(steps, self.lr, np.float32)

    def state(
        self,
        shape: tuple[int, int],
        momentum: NDArray[np.float32] | None,
        correction: NDArray[np.float32] | None,
    ) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
        """(a copy of momentum's state that training may change, correction), found to have the shape (n, parameters).

        Without momentum the first is None; with it and without a state handed in it is 0.
        """
        for name, array in (("momentum", momentum), ("correction", correction)):
            if array is not None and (array.dtype != np.float32 or array.shape != shape):
                raise ValueError(f"{name} must be float32 of shape {shape}, not {array.dtype} of shape {array.shape}")
        if momentum is not None and self.momentum == 0:
            raise ValueError("a state of momentum was handed in, and momentum is 0")
        velocity = None
        if self.momentum:
            velocity = np.zeros(shape, np.float32) if momentum is None else np.array(momentum, order="C")
        return velocity, None if correction is None else np.ascontiguousarray(correction)


@dataclass(frozen=True)
class Training:
    """What a cohort of n devices brings back from one round of local training.

    Attributes:
        updates: float32 (n, parameters), the change θ_k − θ of each device's model.
        losses: float32 (n, steps, batch), of each drawn sample at the step it was drawn for; NaN if it is absent.
        momentum: float32 (n, parameters), the state v of each device after its last step; None without momentum.
    """

    updates: NDArray[np.float32]
    losses: NDArray[np.float32]
    momentum: NDArray[np.float32] | None = None


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

    values: NDArray[np.float32]
    losses: NDArray[np.float32]

    @property
    def norms(self) -> NDArray[np.float64]:
        """(n,), the Euclidean norm of each."""
        return np.sqrt(np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64))


class Learner(Protocol):
    """The contract of every engine. θ is one float32 vector in the order that models.py documents.

    Arrays of sample numbers may be padded: −1 is an absent sample, and comes behind those that are there. So an epoch
    may end with a shorter batch, and devices may differ in how many batches they have: the mean is over the samples
    that are there, and a step without any is not taken (weights and momentum stay as they are).
    """

    name: str  # "native" or "torch": stored with the run
    details: dict[str, str]  # what else decides the last bit: instruction set, library version

    @property
    def parameters(self) -> int: ...

    def init(self, seed: int) -> NDArray[np.float32]:
        """θ(1): the same vector whatever the engine."""
        ...

    def train(
        self,
        theta: NDArray[np.float32],
        batches: NDArray[np.int64],
        sgd: LocalSGD | float,
        *,
        momentum: NDArray[np.float32] | None = None,
        correction: NDArray[np.float32] | None = None,
    ) -> Training:
        """Local SGD from θ for each device; a number for `sgd` is plain SGD with that step size.

        batches: int64 (n, steps, batch), sample numbers of the training set, padded or not.
        momentum: float32 (n, parameters), each device's v to begin with, such as it came back from an earlier round.
        correction: float32 (n, parameters), added to each of a device's gradients: c − c_k in SCAFFOLD.
        """
        ...

    def evaluate(self, theta: NDArray[np.float32]) -> Evaluation: ...

    def predict(
        self, theta: NDArray[np.float32], of: Part = "test", samples: NDArray[np.int64] | None = None
    ) -> Predictions:
        """Loss and class of each of these samples (m,) of the training or the test set; None: of all."""
        ...

    def log_probabilities(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> NDArray[np.float32]:
        """(m, classes) ln p_c of these samples (m,) of the training set."""
        ...

    def embeddings(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, features) what the last layer is given, mean over each device's samples; `samples` as in `gradients`."""
        ...

    def gradients(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> Gradients:
        """At θ, for each device by itself; `samples` is (n, samples) numbers of the training set, padded or not."""
        ...


def padded(numbers: NDArray[np.int64], count: int, axes: Sequence[str]) -> NDArray[np.int64]:
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


def chosen(samples: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
    """The numbers (m,) of some of `count` samples, all there; None: of all."""
    if samples is None:
        return np.arange(count)
    samples = padded(samples, count, ("samples",))
    if ABSENT in samples:
        raise ValueError("samples to predict hold −1, and every number must name a sample")
    return samples
