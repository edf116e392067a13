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
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets import Dataset
from feelstream.errors import EngineError, packages_of
from feelstream.evaluation.contract import Part
from feelstream.learning.contract import ABSENT, Floats, Gradients, Learner, LocalSGD, Numbers, Training
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
        parts,
        put,
        seeded,
        stack,
        usable,
        vector,
        without_statistics,
    )
except ImportError as error:
    how = f"get it with pip install {packages_of('torch')} or choose another learning.engine"
    raise EngineError(f"the torch engine needs PyTorch; {how}") from error

EVALUATION_CHUNK = 250  # test images at a time: a chunk's activations fit the cache
T = TypeVar("T")
Tensors = Sequence[torch.Tensor]


class TorchLearner(Learner):
    """One model on one data set, trained by local SGD on the mean cross-entropy.

    model: one of ours; or a user's own nn.Module class, made without arguments, or what makes such a module. Then θ is
        in the order of its parameters(), with the statistics of BatchNorm layers behind them, and init(seed) makes a
        new module with torch seeded so.
    device: a name of torch's. batch_norm: "average" has the running statistics of BatchNorm layers in θ, "batch" keeps
        none.
    """

    name = "torch"

    def __init__(
        self,
        model: Model | Callable[[], object],
        data: Dataset,
        threads: int = 1,
        device: str = "cpu",
        batch_norm: BatchNorm = "average",
    ) -> None:
        super().__init__(data)
        self.details = {"torch": torch.__version__, "instructions": torch.backends.cpu.get_cpu_capability()}
        self._device = usable(device)
        if device != "cpu":
            self.details["device"] = device
        self._model, self._batch_norm = model, batch_norm
        with _one_thread():
            self._module = self._made(0).to(self._device)
        self.parameters = sum(values.numel() for values in carried(self._module))
        # One rounding per pixel value, the same in every engine and batch.
        self._inputs = ((np.arange(256) / 255 - data.mean) / data.std).astype(np.float32)
        self._mean, self._std = np.float32(data.mean), np.float32(data.std)
        check_state(self._module, batch_norm)
        samples = 2 if batch_norm == "batch" and batch_norms(self._module) else 1  # one alone cannot be normalised
        inputs = self._normalised(hardest(self.images["train"], self.images["test"], samples))
        check_answers(self._module, inputs, data.shape, data.classes)
        # Threads share one device other than the CPU, and one generator of random numbers.
        serial = self._device.type != "cpu" or (
            threads > 1 and draws_random_numbers(self._module, self._first_inputs(2))
        )
        self._threads = 1 if serial else threads

    def _made(self, seed: int) -> nn.Module:
        """A new module, with the weights of a user's own that follow from `seed`."""
        if isinstance(self._model, Model):
            return stack(self._model).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        module = seeded(self._model, seed)
        return without_statistics(module) if self._batch_norm == "batch" else module

    @property
    def multiply_adds(self) -> float:
        """Multiply-adds of training on one sample, in what PyTorch counts: matrix products and convolutions."""
        module = copy.deepcopy(self._module).train()
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        samples = 2 if batch_norms(module) else 1  # of a single one there are no statistics
        with self.alone(), FlopCounterMode(display=False) as counted:
            logits = module(self._first_inputs(samples))
            torch.autograd.grad(logits.sum(), trained, allow_unused=True)
        return counted.get_total_flops() / 2 / samples  # a multiply-add is two of its operations

    def init(self, seed: int) -> Floats:
        return self._model.init(seed) if isinstance(self._model, Model) else vector(self._made(seed))

    def module(self, theta: Floats) -> nn.Module:
        """A copy of the module, so that devices share nothing, with the weights θ."""
        return put(copy.deepcopy(self._module), theta)

    def inputs(self, samples: Numbers, of: Part = "train") -> tuple[torch.Tensor, torch.Tensor]:
        """These samples of the data set as the module is fed them, and their labels."""
        labels = torch.from_numpy(self.labels[of][samples]).long()
        return self._normalised(self.images[of][samples]), labels.to(self._device)

    @contextmanager
    def alone(self, seed: int | None = None) -> Iterator[None]:
        """One intra-op thread, and torch's global random numbers from this seed; outside all is as before."""
        if self._device.type == "cpu":
            apart = torch.random.fork_rng(devices=[])
        else:
            apart = torch.random.fork_rng(devices=[self._device.index or 0], device_type=self._device.type)
        with _one_thread(), apart:
            if seed is not None:
                torch.manual_seed(seed)
            yield

    def _train(
        self, theta: Floats, batches: Numbers, sgd: LocalSGD, correction: Floats | None, found: Training
    ) -> None:
        def device(k: int) -> None:
            if self._threads == 1:  # for dropout, by the device's own draw
                torch.manual_seed(zlib.crc32(batches[k].tobytes()))
            module = self.module(theta).train()
            trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
            kept, added = (None if each is None else parts(module, each[k]) for each in (found.momentum, correction))
            state = (each and [part.to(self._device) for part in each] for each in (kept, added))
            descent = Descent(sgd, trained, *state)
            for step, (batch, lr) in enumerate(zip(batches[k], rates, strict=True)):
                held = batch[batch != ABSENT]
                if not len(held):
                    continue
                loss = self._losses(module, held)
                found.losses[k, step, : len(held)] = loss.detach().cpu().numpy()
                descent.step(torch.autograd.grad(loss.mean(), trained, allow_unused=True), lr)
            for part, moved in zip(kept or (), descent.velocity or (), strict=True):
                part.copy_(moved)  # itself, on a CPU
            found.updates[k] = vector(module) - theta

        rates = sgd.rates(batches.shape[1]).tolist()
        with self.alone():
            self._side_by_side(device, range(len(batches)))

    def _gradients(self, theta: Floats, samples: Numbers, found: Gradients) -> None:
        """A module's dropout is off, as in evaluation."""
        whole = self.module(theta).eval()

        def device(k: int) -> None:
            module = self._own(whole)
            trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
            held = samples[k][samples[k] != ABSENT]
            totals = parts(module, found.values[k])
            for start in range(0, len(held), EVALUATION_CHUNK):
                chunk = held[start : start + EVALUATION_CHUNK]
                loss = self._losses(module, chunk)
                found.losses[k, start : start + len(chunk)] = loss.detach().cpu().numpy()
                gradients = torch.autograd.grad(loss.sum() / len(held), trained, allow_unused=True)
                for total, gradient in zip(totals, gradients, strict=True):
                    if gradient is not None:
                        total += gradient.cpu()

        with _one_thread():
            self._side_by_side(device, range(len(samples)))

    def log_probabilities(self, theta: Floats, samples: Numbers) -> Floats:
        """See Learner.log_probabilities."""
        logits = self._chunks(theta, "train", samples, lambda logits, truth: logits.log_softmax(1).cpu().numpy())
        return np.concatenate(logits)

    def embeddings(self, theta: Floats, samples: Numbers) -> Floats:
        """See Learner.embeddings."""
        with _one_thread():
            return embeddings(self.module(theta).eval(), lambda own: self.inputs(own)[0], samples)

    def _evaluate(self, theta: Floats) -> tuple[float, int]:
        def sums(logits: torch.Tensor, truth: torch.Tensor) -> tuple[float, int]:
            losses = cross_entropy(logits, truth, reduction="none")
            return float(losses.double().sum()), int((logits.argmax(1) == truth).sum())

        chunks = self._chunks(theta, "test", np.arange(len(self.labels["test"])), sums)
        return sum(loss for loss, _ in chunks), sum(right for _, right in chunks)

    def _predict(self, theta: Floats, of: Part, samples: Numbers, losses: Floats, classes: NDArray[np.int32]) -> None:
        def said(logits: torch.Tensor, truth: torch.Tensor) -> tuple[NDArray, NDArray]:
            return cross_entropy(logits, truth, reduction="none").cpu().numpy(), logits.argmax(1).cpu().numpy()

        for i, found in enumerate(self._chunks(theta, of, samples, said)):
            part = slice(i * EVALUATION_CHUNK, (i + 1) * EVALUATION_CHUNK)
            losses[part], classes[part] = found

    def _chunks(
        self, theta: Floats, of: Part, samples: Numbers, told: Callable[[torch.Tensor, torch.Tensor], T]
    ) -> list[T]:
        """What is told of (logits, true classes) of one chunk of the samples after the other."""
        whole = self.module(theta).eval()

        def chunk(start: int) -> T:
            module = self._own(whole)
            with torch.inference_mode():
                inputs, truth = self.inputs(samples[start : start + EVALUATION_CHUNK], of)
                return told(module(inputs), truth)

        with _one_thread():
            return self._side_by_side(chunk, range(0, len(samples), EVALUATION_CHUNK))

    def _side_by_side(self, work: Callable[[int], T], items: Sequence[int]) -> list[T]:
        """`work` on every item, `threads` at a time on one intra-op thread each; results in the order of the items."""
        if self._threads == 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(self._threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, items))

    def _losses(self, module: nn.Module, samples: Numbers) -> torch.Tensor:
        """Of each of these samples of the training set."""
        inputs, labels = self.inputs(samples)
        try:
            logits = module(inputs)
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise EngineError(
                "BatchNorm cannot normalise a batch of one sample; choose mini-batches of two or more, or GroupNorm"
            ) from error
        return cross_entropy(logits, labels, reduction="none")

    def _own(self, module: nn.Module) -> nn.Module:
        """A module for one thread: a user's own may keep what it computes in attributes."""
        return copy.deepcopy(module) if self._threads > 1 else module

    def _first_inputs(self, samples: int) -> torch.Tensor:
        """So many inputs, the first training sample again and again."""
        return self.inputs(np.zeros(samples, np.int64))[0]

    def _normalised(self, images: NDArray[Any]) -> torch.Tensor:
        if images.dtype == np.int64:
            inputs = images.reshape(len(images), -1).copy()  # of a data set, which is read-only
        elif images.dtype == np.float32:
            inputs = (images - self._mean) / self._std
        else:
            inputs = self._inputs.take(images.astype(np.uint8, copy=False))
        return torch.from_numpy(inputs).to(self._device)


class Descent:
    """The steps of one device that contract.LocalSGD describes.

    torch.optim.SGD would do the same, but imports its compiler at the first step, which takes seconds.

    weights: the parameters that are trained; `step` changes them.
    velocity: momentum's state, like them; `step` changes it. None without momentum.
    correction: like them, added to every gradient, or None.
    """

    def __init__(self, sgd: LocalSGD, weights: Tensors, velocity: Tensors | None, correction: Tensors | None) -> None:
        self.sgd, self.weights, self.velocity, self.correction = sgd, weights, velocity, correction
        self.start = [weight.detach().clone() for weight in weights] if sgd.prox else None

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor | None], lr: float) -> None:
        """One step; a parameter that the loss does not depend on (gradient None) stays as it is, as in PyTorch."""
        sgd, found = self.sgd, {i: gradient for i, gradient in enumerate(gradients) if gradient is not None}
        for i in found:
            if self.correction is not None:
                found[i] = found[i] + self.correction[i]
            if self.start is not None:
                found[i] = found[i] + sgd.prox * (self.weights[i] - self.start[i])
        factor = None
        if sgd.clip is not None and found:
            norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in found.values()])
            factor = torch.clamp(sgd.clip / (torch.linalg.vector_norm(norms) + 1e-6), max=1.0)
        for i, gradient in found.items():
            if factor is not None:
                gradient = gradient * factor
            if sgd.weight_decay:
                gradient = gradient.add(self.weights[i], alpha=sgd.weight_decay)
            if self.velocity is not None:
                velocity = self.velocity[i].mul_(sgd.momentum).add_(gradient)
                gradient = gradient.add(velocity, alpha=sgd.momentum) if sgd.nesterov else velocity
            self.weights[i].sub_(gradient, alpha=lr)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One intra-op thread in here, what was set before outside: sums split over threads round differently."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
