"""fluke: FedAVG on its own loop, its evaluator on the server's test set.

As users run it: its default metrics (accuracy, precision, recall and F1, macro and micro) and PyTorch's own threads.
Tuned: accuracy alone, channels_last, one thread. Its FastDataLoader always takes a whole epoch, or a share of the
data that it fixes at the first pass, so the loaders here draw the round's batches from the client's share, by
indexing in both forms.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import os

import torch
import torchvision_cpu  # noqa: F401
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.data import FastDataLoader
from fluke.evaluation import ClassificationEval
from fluke.utils import ServerObserver
from network import Batches, network
from torchmetrics import Accuracy
from workload import Diary, Images, Workload, asked


class Share(FastDataLoader):
    """A client's loader: one pass is the steps of a round."""

    def __init__(self, train: Batches, share: torch.Tensor, work: Workload) -> None:
        super().__init__(train.pixels[share[:1]], train.labels[share[:1]], num_labels=10, batch_size=work.batch)
        self.train, self.share, self.work = train, share, work

    def __iter__(self):
        return iter(self.train.draw(self.share, self.work.steps, self.work.batch))

    def __len__(self) -> int:
        return self.work.steps


class Splitter:
    """What fluke asks of a splitter of data."""

    num_classes = 10

    def __init__(self, work: Workload, layout: torch.memory_format) -> None:
        images = Images(work)
        train = Batches(torch.from_numpy(images.train), torch.from_numpy(images.train_labels), layout)
        test = Batches(torch.from_numpy(images.test), torch.from_numpy(images.test_labels), layout)
        self.clients = [Share(train, torch.from_numpy(share), work) for share in images.shares]
        size = 250 if work.tuned else 1000
        self.server = FastDataLoader(test.pixels, test.labels, num_labels=10, batch_size=size)

    def assign(self, n_clients: int, batch_size: int = 32):
        return (self.clients, [None] * n_clients), self.server


class Noted(ServerObserver):
    def __init__(self, diary: Diary) -> None:
        self.diary = diary

    def server_evaluation(self, round, eval_type, evals, **kwargs) -> None:
        if len(self.diary.accuracy) < round:
            self.diary.tested(evals["accuracy"])


def main() -> None:
    work, diary = asked(), Diary()
    layout = torch.channels_last if work.tuned else torch.contiguous_format
    if work.tuned:
        torch.set_num_threads(1)
    environment = FlukeENV()
    environment.set_seed(work.seed)
    metrics = {"accuracy": Accuracy(task="multiclass", num_classes=10, average="micro")} if work.tuned else {}
    environment.set_evaluator(ClassificationEval(1, 10, **metrics))
    environment.set_eval_cfg(pre_fit=False, post_fit=False, locals=False, server=True)
    settings = DDict(
        client=DDict(
            batch_size=work.batch, local_epochs=1, loss="CrossEntropyLoss",
            optimizer=DDict(name="SGD", lr=work.lr), scheduler=DDict(name="StepLR", step_size=1, gamma=1.0),
        ),
        server=DDict(weighted=False),
        model=network(work).to(memory_format=layout),  # pyright: ignore[reportCallIssue]
    )  # fmt: skip
    algorithm = FedAVG(work.clients, Splitter(work, layout), settings)
    algorithm.set_callbacks([])
    algorithm.attach(Noted(diary))
    algorithm.run(work.played, work.size / work.clients, finalize=False)
    tuned = "one process of one thread, accuracy alone, channels_last"
    diary.finish(tuned if work.tuned else f"one process, {torch.get_num_threads()} threads, default metrics")
    os._exit(0)  # a process that has used fluke did not end by itself


if __name__ == "__main__":
    main()
