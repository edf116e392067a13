"""FedLab: its standalone pipeline with the synchronous handler and the serial SGD trainer.

As users run it: PyTorch's own threads and a DataLoader for each client. Tuned: batches by indexing, one thread for
training and two for the test, which is faster for such small batches. It flattens parameters by a view, which
channels_last does not allow.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import random

import torch
import torchvision_cpu  # noqa: F401
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.core.standalone import StandalonePipeline
from network import Batches, accuracy, network
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset
from workload import Diary, Images, Workload, asked


class Shares:
    """What FedLab's trainer asks of a data set: a loader for a client; one pass over it is the steps of a round."""

    def __init__(self, work: Workload, images: Images, train: Batches) -> None:
        self.work, self.images, self.train = work, images, train

    def get_dataloader(self, client: int, batch_size: int):
        share = torch.from_numpy(self.images.shares[client])
        if self.work.tuned:
            return self.train.draw(share, self.work.steps, batch_size)
        own = Subset(TensorDataset(self.train.pixels, self.train.labels), share.tolist())
        return DataLoader(own, batch_size, sampler=RandomSampler(own, num_samples=self.work.drawn))


class Pipeline(StandalonePipeline):
    def __init__(self, handler, trainer, tests, diary: Diary, tuned: bool) -> None:
        super().__init__(handler, trainer)
        self.tests, self.diary, self.tuned = tests, diary, tuned

    def evaluate(self) -> None:
        if self.tuned:
            torch.set_num_threads(2)
        self.diary.tested(accuracy(self.handler.model, self.tests))
        if self.tuned:
            torch.set_num_threads(1)


def main() -> None:
    work, diary = asked(), Diary()
    random.seed(work.seed)
    images = Images(work)
    train = Batches(torch.from_numpy(images.train), torch.from_numpy(images.train_labels))
    test = Batches(torch.from_numpy(images.test), torch.from_numpy(images.test_labels))
    model = network(work)
    trainer = SGDSerialClientTrainer(model, work.clients)
    trainer.setup_dataset(Shares(work, images, train))
    trainer.setup_optim(1, work.batch, work.lr)
    handler = SyncServerHandler(model, work.played, work.size / work.clients)
    if work.tuned:
        torch.set_num_threads(1)
    Pipeline(handler, trainer, test.in_order(250 if work.tuned else 1000), diary, work.tuned).main()
    form = "one process, batches by indexing, one thread to train, two to test"
    diary.finish(form if work.tuned else f"one process, {torch.get_num_threads()} threads, DataLoader")


if __name__ == "__main__":
    main()
