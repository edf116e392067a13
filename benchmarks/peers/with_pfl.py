"""pfl-research: FederatedAveraging on its SimulatedBackend, with its callback for the central test.

As users run it: one process, PyTorch's own threads. Tuned: two worker processes (torchrun, gloo) that share the
cohort and the test, one thread each, channels_last. A user's data set is drawn again at each visit, since pfl takes
batches in order.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import os
import sys

import numpy as np
import torch
from network import drawn, network
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, StringMetricName, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import nn
from torch.nn.functional import cross_entropy
from workload import Diary, Images, Workload, asked

PROCESSES = 2
ACCURACY = "Central val | accuracy"


class Network(nn.Module):
    """What pfl asks of a model: its loss and its metrics."""

    def __init__(self, work: Workload, layout: torch.memory_format) -> None:
        super().__init__()
        self.layers = network(work).to(memory_format=layout)  # pyright: ignore[reportCallIssue]

    def loss(self, pixels, labels, eval=False):
        self.train(not eval)
        return cross_entropy(self.layers(pixels), labels)

    @torch.inference_mode()
    def metrics(self, pixels, labels):
        self.eval()
        right = int((self.layers(pixels).argmax(1) == labels).sum())
        return {"accuracy": Weighted(right, len(labels))}


class EveryRound(CentralEvaluationCallback):
    """pfl's central test after every round, the first included, which it leaves out."""

    def __init__(self, diary: Diary, *arguments) -> None:
        super().__init__(*arguments)
        self.diary = diary

    def on_train_begin(self, *, model):
        return Metrics()  # the test before the first round is nobody's work

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        stop, metrics = super().after_central_iteration(
            aggregate_metrics, model, central_iteration=central_iteration + 1
        )
        self.diary.tested(metrics[StringMetricName(ACCURACY)].overall_value)
        return stop, metrics


def main() -> None:
    work, diary = asked(), Diary()
    if work.tuned and "RANK" not in os.environ:
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={PROCESSES}"]
        os.execv(sys.executable, [sys.executable, *launch, *sys.argv])
    if work.tuned:
        torch.set_num_threads(1)
    layout = torch.channels_last if work.tuned else torch.contiguous_format
    images = Images(work)
    pixels = torch.from_numpy(images.train).contiguous(memory_format=layout)
    labels = torch.from_numpy(images.train_labels)

    def user(number: int) -> Dataset:
        share = torch.from_numpy(images.shares[number])
        chosen = drawn(share, work.drawn)
        return Dataset([pixels[chosen], labels[chosen]], user_id=str(number))

    np.random.seed(work.seed)  # noqa: NPY002 (pfl draws from it, and its workers must draw the same cohorts)
    users = FederatedDataset(user, get_user_sampler("random", list(range(work.clients))))
    module = Network(work, layout)
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), 1.0))
    test = Dataset(
        [torch.from_numpy(images.test).contiguous(memory_format=layout), torch.from_numpy(images.test_labels)]
    )
    FederatedAveraging().run(
        backend=SimulatedBackend(users, users),
        model=model,
        # Of the metrics on users' data, only the first round's are computed: no other contender has any.
        algorithm_params=NNAlgorithmParams(work.played, work.played + 1, work.size, None),
        model_train_params=NNTrainHyperParams(work.batch, 1, work.lr),
        model_eval_params=NNEvalHyperParams(1000),
        callbacks=[EveryRound(diary, test, NNEvalHyperParams(250 if work.tuned else 1000))],
    )
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    if int(os.environ.get("RANK", 0)) == 0:
        form = f"{PROCESSES} processes of one thread, channels_last"
        diary.finish(form if work.tuned else f"one process, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
