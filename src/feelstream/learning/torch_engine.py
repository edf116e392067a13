"""The learner on PyTorch (extra `torch`): our models, or any nn.Module named by its import path.

Training is a pure function of its arguments. Every device is trained alone on one intra-op thread, `threads` devices
at a time, and so is every chunk of test images evaluated: neither the number of threads nor the rest of the cohort
changes a bit. A module that draws random numbers (dropout) trains its devices one after the other. Our own models are
laid out channels last, which is PyTorch's fastest way with them on a CPU.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets.dataset import Features, Labels
from feelstream.errors import EngineError
from feelstream.learning.contract import (
    ABSENT,
    Evaluation,
    Gradients,
    LocalSGD,
    Part,
    Predictions,
    Training,
    chosen,
    padded,
)
from feelstream.learning.models import Model
from feelstream.learning.settings import BatchNorm

try:
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy
    from torch.utils.flop_counter import FlopCounterMode

    from feelstream.learning.torch_modules import (
        batch_norms,
        carried,
        check_answers,
        check_state,
        draws_random_numbers,
        embeddings,
        hardest,
        log_probabilities,
        parts,
        put,
        seeded,
        stack,
        usable,
        vector,
        without_statistics,
    )
    from feelstream.learning.torch_sgd import Descent
except ImportError as error:
    raise EngineError(
        "the torch engine needs PyTorch; get it with pip install 'feelstream[torch]' or choose another learning.engine"
    ) from error

EVALUATION_CHUNK = 250  # test images at a time: a chunk's activations fit the cache
T = TypeVar("T")
DIVERGED = "training diverged: the model is no longer finite; try a smaller learning.local.lr"


class TorchLearner:
    """One model on one data set, trained by local SGD on the mean cross-entropy.

    images, test_images: (N, C, H, W); labels, test_labels: (N,). An input is (x/255 − mean) / std where x is uint8,
    (x − mean) / std where it is float32, and x as (N, L) where it is int64: tokens.
    device: a name of torch's. batch_norm: "average" has the running statistics of BatchNorm layers in θ, behind the
    parameters, "batch" keeps none.
    """

    name = "torch"

    def __init__(
        self,
        model: Model | nn.Module,
        images: Features,
        labels: Labels,
        test_images: Features,
        test_labels: Labels,
        mean: float,
        std: float,
        threads: int = 1,
        device: str = "cpu",
        batch_norm: BatchNorm = "average",
    ) -> None:
        self.details = {"torch": torch.__version__, "instructions": torch.backends.cpu.get_cpu_capability()}
        self._device = usable(device)
        if device != "cpu":
            self.details["device"] = device
        self._init: Callable[[int], NDArray[np.float32]]
        if isinstance(model, Model):
            laid_out = stack(model).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
            self._module, self._init, self._foreign = laid_out, model.init, False
        else:
            model = without_statistics(model) if batch_norm == "batch" else model
            weights = vector(model)
            self._module, self._init, self._foreign = model, lambda seed: weights.copy(), True
        self._module = self._module.to(self._device)
        # One rounding per pixel value, the same in every engine and batch.
        self._inputs = ((np.arange(256) / 255 - mean) / std).astype(np.float32)
        self._mean, self._std = np.float32(mean), np.float32(std)
        self._images, self._test_images = images, test_images
        self._labels, self._test_labels = labels.astype(np.int64), test_labels.astype(np.int64)
        check_state(self._module, batch_norm)
        samples = 2 if batch_norm == "batch" and batch_norms(self._module) else 1  # one alone cannot be normalised
        inputs = self._normalised(hardest(images, test_images, samples))
        check_answers(self._module, inputs, images.shape[1:], int(max(labels.max(), test_labels.max())) + 1)
        # Threads share one device other than the CPU, and one generator of random numbers.
        serial = self._device.type != "cpu" or (
            self._foreign and threads > 1 and draws_random_numbers(self._module, self._first_inputs(2))
        )
        self._threads = 1 if serial else threads

    @classmethod
    def from_class(
        cls,
        make: Callable[[], object],
        *data: Any,
        threads: int = 1,
        device: str = "cpu",
        batch_norm: BatchNorm = "average",
    ) -> Self:
        """A learner for a user's own nn.Module class, made without arguments, or what makes such a module.

        data: as for a module that is there. θ is in the order of its parameters(), with the statistics of BatchNorm
        layers behind them; init(seed) makes a new module with torch seeded so.
        """
        if isinstance(make, type) and not issubclass(make, nn.Module):
            raise EngineError(f"learning.model: {make.__qualname__} is not a class of torch.nn.Module")
        with _one_thread():
            learner = cls(seeded(make, 0), *data, threads=threads, device=device, batch_norm=batch_norm)

        def init(seed: int) -> NDArray[np.float32]:
            module = seeded(make, seed)
            return vector(without_statistics(module) if batch_norm == "batch" else module)

        learner._init = init
        return learner

    @property
    def parameters(self) -> int:
        return sum(values.numel() for values in carried(self._module))

    @property
    def multiply_adds(self) -> float:
        """Multiply-adds of training on one sample, in what PyTorch counts: matrix products and convolutions."""
        module = copy.deepcopy(self._module).train()
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        samples = 2 if batch_norms(module) else 1  # of a single one there are no statistics
        with _one_thread(), self._random_apart(), FlopCounterMode(display=False) as counted:
            logits = module(self._first_inputs(samples))
            torch.autograd.grad(logits.sum(), trained, allow_unused=True)
        return counted.get_total_flops() / 2 / samples  # a multiply-add is two of its operations

    def init(self, seed: int) -> NDArray[np.float32]:
        return self._init(seed)

    def module(self, theta: NDArray[np.float32]) -> nn.Module:
        """A copy of the module with the weights θ, for a user's own training."""
        return self._with(theta)

    def inputs(self, samples: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """These samples of the training set as the module is fed them, and their labels."""
        return self._normalised(self._images[samples]), torch.from_numpy(self._labels[samples])

    @contextmanager
    def alone(self, seed: int) -> Iterator[None]:
        """One intra-op thread, and torch's global random numbers from this seed; outside all is as before."""
        with _one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield

    def train(
        self,
        theta: NDArray[np.float32],
        batches: NDArray[np.int64],
        sgd: LocalSGD | float,
        *,
        momentum: NDArray[np.float32] | None = None,
        correction: NDArray[np.float32] | None = None,
    ) -> Training:
        batches = padded(batches, len(self._labels), ("devices", "steps", "batch"))
        sgd = LocalSGD.of(sgd)
        updates = np.empty((len(batches), self.parameters), np.float32)
        losses = np.empty(batches.shape, np.float32)
        velocity, correction = sgd.state(updates.shape, momentum, correction)

        def device(k: int) -> None:
            own = None if velocity is None else velocity[k]
            updates[k], losses[k] = self._train_device(
                theta, batches[k], sgd, own, None if correction is None else correction[k]
            )

        with _one_thread(), self._random_apart():
            if self._threads > 1:
                self._side_by_side(device, range(len(batches)))
            else:
                for k in range(len(batches)):
                    torch.manual_seed(zlib.crc32(batches[k].tobytes()))  # for dropout: by the device's own draw
                    device(k)
        if not np.isfinite(updates).all():
            raise EngineError(DIVERGED)
        return Training(updates, losses, velocity)

    def gradients(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> Gradients:
        """See Learner.gradients; a module's dropout is off, as in evaluation."""
        samples = padded(samples, len(self._labels), ("devices", "samples"))
        values = np.zeros((len(samples), self.parameters), np.float32)
        losses = np.full(samples.shape, np.nan, np.float32)
        whole = self._with(theta).eval()

        def device(k: int) -> None:
            module = self._own(whole)
            trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
            held = samples[k][samples[k] != ABSENT]
            totals = parts(module, values[k])
            for start in range(0, len(held), EVALUATION_CHUNK):
                chunk = held[start : start + EVALUATION_CHUNK]
                loss = self._losses(module, chunk)
                losses[k, start : start + len(chunk)] = loss.detach().cpu().numpy()
                found = torch.autograd.grad(loss.sum() / len(held), trained, allow_unused=True)
                for total, gradient in zip(totals, found, strict=True):
                    if gradient is not None:
                        total += gradient.cpu()

        with _one_thread():
            self._side_by_side(device, range(len(samples)))
        if not (np.isfinite(values).all() and (np.isfinite(losses) | (samples == ABSENT)).all()):
            raise EngineError(DIVERGED)
        return Gradients(values, losses)

    def log_probabilities(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> NDArray[np.float32]:
        """See Learner.log_probabilities."""
        module, parts = self._with(theta).eval(), range(0, len(samples), EVALUATION_CHUNK)
        with _one_thread():
            found = [self._images[samples[first : first + EVALUATION_CHUNK]] for first in parts]
            return np.concatenate([log_probabilities(module, self._normalised(each)) for each in found])

    def embeddings(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> NDArray[np.float32]:
        """See Learner.embeddings."""
        with _one_thread():
            module = self._with(theta).eval()
            return embeddings(module, lambda own: self._normalised(self._images[own]), samples)

    def evaluate(self, theta: NDArray[np.float32]) -> Evaluation:
        chunks = self._chunks(theta, self._test_images, self._test_labels)
        loss = sum(float(losses.double().sum()) for losses, _, _ in chunks)
        correct = sum(int((classes == labels).sum()) for _, classes, labels in chunks)
        if not np.isfinite(loss):
            raise EngineError(DIVERGED)
        return Evaluation(loss / len(self._test_labels), correct / len(self._test_labels))

    def predict(
        self, theta: NDArray[np.float32], of: Part = "test", samples: NDArray[np.int64] | None = None
    ) -> Predictions:
        images, labels = (self._images, self._labels) if of == "train" else (self._test_images, self._test_labels)
        samples = chosen(samples, len(labels))
        losses, classes = np.empty(len(samples), np.float32), np.empty(len(samples), np.int32)
        start = 0
        for chunk_losses, chunk_classes, _ in self._chunks(theta, images, labels, samples):
            end = start + len(chunk_losses)
            losses[start:end], classes[start:end] = chunk_losses.cpu().numpy(), chunk_classes.cpu().numpy()
            start = end
        if not np.isfinite(losses).all():
            raise EngineError(DIVERGED)
        return Predictions(losses, classes, labels[samples].astype(np.int32))

    def _chunks(
        self,
        theta: NDArray[np.float32],
        images: Features,
        labels: NDArray[np.int64],
        samples: NDArray[np.int64] | None = None,
    ) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """(losses, classes, labels) of one chunk of the samples after the other; None: of all."""
        whole = self._with(theta).eval()

        def chunk(start: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            part = slice(start, start + EVALUATION_CHUNK)
            rows = part if samples is None else samples[part]
            module = self._own(whole)
            with torch.inference_mode():
                truth = torch.from_numpy(labels[rows]).to(self._device)
                logits = module(self._normalised(images[rows]))
                return cross_entropy(logits, truth, reduction="none"), logits.argmax(1), truth

        with _one_thread():
            return self._side_by_side(chunk, range(0, len(labels if samples is None else samples), EVALUATION_CHUNK))

    def _side_by_side(self, work: Callable[[int], T], items: Sequence[int]) -> list[T]:
        """`work` on every item, `threads` at a time on one intra-op thread each; results in the order of the items."""
        if self._threads == 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(self._threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, items))

    def _train_device(
        self,
        theta: NDArray[np.float32],
        batches: NDArray[np.int64],
        sgd: LocalSGD,
        velocity: NDArray[np.float32] | None,
        correction: NDArray[np.float32] | None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """θ_k − θ and the losses (steps, batch) of one device; changes its velocity."""
        module = self._with(theta).train()
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        kept = None if velocity is None else parts(module, velocity)
        state = (
            None if each is None else [part.to(self._device) for part in each]
            for each in (kept, None if correction is None else parts(module, correction))
        )
        descent = Descent(sgd, trained, *state)
        losses = np.full(batches.shape, np.nan, np.float32)
        for step, (batch, lr) in enumerate(zip(batches, sgd.rates(len(batches)).tolist(), strict=True)):
            held = batch[batch != ABSENT]
            if not len(held):
                continue
            loss = self._losses(module, held)
            losses[step, : len(held)] = loss.detach().cpu().numpy()
            descent.step(torch.autograd.grad(loss.mean(), trained, allow_unused=True), lr)
        for part, moved in zip(kept or (), descent.velocity or (), strict=True):
            part.copy_(moved)  # itself, on a CPU
        return vector(module) - theta, losses

    def _losses(self, module: nn.Module, samples: NDArray[np.int64]) -> torch.Tensor:
        """Of each of these samples of the training set."""
        try:
            logits = module(self._normalised(self._images[samples]))
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise EngineError(
                "BatchNorm cannot normalise a batch of one sample; choose mini-batches of two or more, or GroupNorm"
            ) from error
        return cross_entropy(logits, torch.from_numpy(self._labels[samples]).to(self._device), reduction="none")

    def _with(self, theta: NDArray[np.float32]) -> nn.Module:
        """A copy of the module, so that devices share nothing, with the weights θ."""
        if theta.shape != (self.parameters,):
            raise EngineError(f"θ has shape {theta.shape}; this model has {self.parameters} parameters")
        return put(copy.deepcopy(self._module), theta)

    def _own(self, module: nn.Module) -> nn.Module:
        """A module for one thread: a foreign one may keep what it computes in attributes of its own."""
        return copy.deepcopy(module) if self._foreign and self._threads > 1 else module

    def _first_inputs(self, samples: int) -> torch.Tensor:
        """So many inputs, the first training sample again and again."""
        return self._normalised(np.repeat(self._images[:1], samples, axis=0))

    def _random_apart(self) -> AbstractContextManager[None]:
        """Leave torch's random numbers outside as they are."""
        if self._device.type == "cpu":
            return torch.random.fork_rng(devices=[])
        return torch.random.fork_rng(devices=[self._device.index or 0], device_type=self._device.type)

    def _normalised(self, images: NDArray[Any]) -> torch.Tensor:
        if images.dtype == np.int64:
            inputs = images.reshape(len(images), -1).copy()  # of a data set, which is read-only
        elif images.dtype == np.float32:
            inputs = (images - self._mean) / self._std
        else:
            inputs = self._inputs.take(images.astype(np.uint8, copy=False))
        return torch.from_numpy(inputs).to(self._device)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One intra-op thread in here, what was set before outside: sums split over threads round differently."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
