"""Plain PyTorch: as a user would write federated averaging on one page, and the best we can write."""

from __future__ import annotations

import copy
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from network import Batches, accuracy, network
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset
from workload import Diary, Images, Workload, asked


def as_users(work: Workload) -> None:
    images, diary, rng = Images(work), Diary(), np.random.default_rng(work.seed)
    train = TensorDataset(torch.from_numpy(images.train), torch.from_numpy(images.train_labels))
    test = DataLoader(TensorDataset(torch.from_numpy(images.test), torch.from_numpy(images.test_labels)), 1000)
    model = network(work.seed)
    for _ in range(work.played):
        states = []
        for client in rng.choice(work.clients, work.size, replace=False):
            local = copy.deepcopy(model)
            local.train()
            optimizer = torch.optim.SGD(local.parameters(), work.lr)
            share = Subset(train, images.shares[client].tolist())
            for pixels, labels in DataLoader(share, work.batch, sampler=RandomSampler(share, num_samples=work.drawn)):
                optimizer.zero_grad()
                cross_entropy(local(pixels), labels).backward()
                optimizer.step()
            states.append(local.state_dict())
        model.load_state_dict({name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]})
        diary.tested(accuracy(model, test))
    diary.finish(f"one process, {torch.get_num_threads()} threads, DataLoader")


def worker(work: Workload, part: int, parts: int, choice: tuple[str, dict[str, bool], int], wire: Connection) -> None:
    """Trains every parts-th client and tests every parts-th batch; parameters travel as one vector."""
    torch.set_num_threads(1)
    layout_name, options, test_batch = choice
    layout = getattr(torch, "channels_last" if layout_name == "channels_last" else "contiguous_format")
    images = Images(work)
    train = Batches(torch.from_numpy(images.train), torch.from_numpy(images.train_labels), layout)
    test = Batches(torch.from_numpy(images.test), torch.from_numpy(images.test_labels), layout)
    tests = test.in_order(min(test_batch, -(-len(test.labels) // parts)))[part::parts]  # some for every part
    shares = [torch.from_numpy(share) for share in images.shares]
    model = network(work.seed).to(memory_format=layout)  # pyright: ignore[reportCallIssue]
    torch.manual_seed(work.seed * parts + part + 1)
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, work.lr, **options)

    def load(theta: Tensor) -> None:
        # Copied, not viewed: SGD writes in place, and the parameters keep their memory layout.
        with torch.no_grad():
            for parameter, values in zip(parameters, theta.split([p.numel() for p in parameters]), strict=True):
                parameter.copy_(values.view(parameter.shape))

    while (task := wire.recv()) is not None:
        theta, clients = torch.from_numpy(task[0]), task[1]
        if clients is None:
            load(theta)
            wire.send(accuracy(model, tests) * sum(len(labels) for _, labels in tests))
            continue
        total = torch.zeros_like(theta)
        for client in clients:
            load(theta)
            for pixels, labels in train.draw(shares[client], work.steps, work.batch):
                optimizer.zero_grad(set_to_none=True)
                cross_entropy(model(pixels), labels).backward()
                optimizer.step()
            total += torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        wire.send(total.numpy())


def best_choice(work: Workload) -> tuple[str, dict[str, bool], int]:
    """Memory layout, form of SGD and batch of the test that are fastest here, by benchmarks/torch_contender.py."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from feelstream.learning.models import build
    from learner import best_times
    from torch_contender import Contender

    images = Images(work)
    model = build("paper-cnn", (1, 28, 28), 10)
    pixels = np.random.default_rng(0).integers(0, 256, (2000, 1, 28, 28), dtype=np.uint8)
    theta = nn.utils.parameters_to_vector(network(0).parameters()).detach().numpy()
    contender = Contender(model, theta, pixels, images.train_labels[:2000], 0.0, 1.0)
    training = best_times(contender.training(np.arange(640).reshape(20, 32), work.lr), 2)
    testing = best_times(contender.evaluation(), 1)
    layout, form = min(training, key=training.__getitem__).split(", ")
    options = {"SGD loop": {"foreach": False}, "SGD foreach": {"foreach": True}, "SGD fused": {"fused": True}}[form]
    same_layout = {name: time for name, time in testing.items() if name.startswith(layout)}
    return layout, options, int(min(same_layout, key=same_layout.__getitem__).split()[-1])


def tuned(work: Workload, processes: int = 2) -> None:
    choice = best_choice(work)
    diary, rng = Diary(), np.random.default_rng(work.seed)
    theta = nn.utils.parameters_to_vector(network(work.seed).parameters()).detach().numpy()
    context = torch.multiprocessing.get_context("spawn")
    wires, workers = [], []
    for part in range(processes):
        ours, theirs = context.Pipe()
        workers.append(context.Process(target=worker, args=(work, part, processes, choice, theirs), daemon=True))
        workers[-1].start()
        theirs.close()  # so that a worker's end is an error here, and no endless wait
        wires.append(ours)
    with np.load(work.data) as stored:
        tests = len(stored["y_test"])
    for _ in range(work.played):
        chosen = rng.choice(work.clients, work.size, replace=False)
        for part, wire in enumerate(wires):
            wire.send((theta, chosen[part::processes].tolist()))
        theta = sum(wire.recv() for wire in wires) / np.float32(work.size)
        for wire in wires:
            wire.send((theta, None))
        diary.tested(sum(wire.recv() for wire in wires) / tests)
    for wire, process in zip(wires, workers, strict=True):
        wire.send(None)
        process.join()
    sgd = " ".join(name for name, used in choice[1].items() if used) or "loop"
    diary.finish(f"{processes} processes of one thread, {choice[0]}, SGD {sgd}, tests of {choice[2]}")


if __name__ == "__main__":
    work = asked()
    (tuned if work.tuned else as_users)(work)
