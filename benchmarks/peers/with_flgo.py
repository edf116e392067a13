"""FLGo: its fedavg on a benchmark made from our arrays.

As users run it: its defaults, one client after the other, one thread, a DataLoader of its own. Tuned: two clients at
a time in threads (its processes are started again in every round), batches taken by one indexing, channels_last.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

from workload import Diary, asked

WORK = asked()
sys.argv = sys.argv[:1]  # FLGo reads the command line too
CONFIGURATION = '''"""What FLGo asks of a benchmark: data sets and a model."""
import __main__
import torch
from network import network
from workload import Images

work = __main__.WORK
images = Images(work)
layout = torch.channels_last if work.tuned else torch.contiguous_format


class Whole(torch.utils.data.TensorDataset):
    """Gives a batch by one indexing."""

    def __getitems__(self, numbers):
        return tuple(tensor[numbers] for tensor in self.tensors)


Tensors = Whole if work.tuned else torch.utils.data.TensorDataset


def tensors(pixels, labels):
    return Tensors(torch.from_numpy(pixels).contiguous(memory_format=layout), torch.from_numpy(labels))


train_data = tensors(images.train, images.train_labels)
test_data = tensors(images.test, images.test_labels)


def get_model(*arguments, **options):
    return network(work).to(memory_format=layout)
'''


def main() -> None:
    import torchvision_cpu  # noqa: F401, I001
    import flgo
    import flgo.algorithm.fedavg as fedavg
    import torch
    from flgo.benchmark.toolkits.cv.classification import FromDatasetPipe
    from flgo.experiment.logger.simple_logger import SimpleLogger

    work, diary = WORK, Diary()

    class Noted(SimpleLogger):
        def log_once(self, *arguments, **options) -> None:
            super().log_once(*arguments, **options)
            if len(self.output["test_accuracy"]) > 1:  # the first is before the first round
                diary.tested(self.output["test_accuracy"][-1])

    def items(self, numbers: list[int]):
        """PyTorch 2.13 asks subclasses of Subset for this: one by one, or tuned, by one indexing."""
        if work.tuned:
            return self.dataset.__getitems__([self.indices[number] for number in numbers])
        return [self[number] for number in numbers]

    FromDatasetPipe.TaskDataset.__getitems__ = items
    Path("configuration.py").write_text(CONFIGURATION)
    benchmark = flgo.gen_benchmark_from_file("workload_mnist", "configuration.py")
    # It would draw a picture of the partition, sample by sample, for minutes; a user may wait for it once.
    vars(importlib.import_module(benchmark))["visualize"] = lambda *_: None
    partition = {"name": "IIDPartitioner", "para": {"num_clients": work.clients}}
    flgo.gen_task({"benchmark": {"name": benchmark}, "partitioner": partition}, "task", seed=work.seed)
    option = {
        "num_rounds": work.played, "proportion": work.size / work.clients, "sample": "uniform", "aggregate": "uniform",
        "num_steps": work.steps, "batch_size": work.batch, "learning_rate": work.lr, "learning_rate_decay": 1.0,
        "train_holdout": 0.0, "seed": work.seed, "no_log_console": True, "no_tqdm": True,
    }  # fmt: skip
    if work.tuned:
        option |= {"num_parallels": 2, "parallel_type": "t", "test_batch_size": 250}
    runner = flgo.init("task", fedavg, option, Logger=Noted)
    if work.tuned:
        calculator = type(runner.calculator)  # the class, since clients are given new ones in every round
        loader = calculator.get_dataloader

        def whole_batches(self, *arguments, **options):
            self.set_collate_fn(lambda batch: batch)
            return loader(self, *arguments, **options)

        calculator.get_dataloader = whole_batches
    runner.run()
    tuned = "two threads, batches by indexing, channels_last"
    diary.finish(tuned if work.tuned else f"its defaults, {torch.get_num_threads()} thread")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # FLGo writes its task and its benchmark where it is run
        os.chdir(folder)
        sys.path.insert(0, folder)
        main()
