"""Plain PyTorch: as a user would write federated averaging on one page, and the best we can write."""

from __future__ import annotations

import copy
from multiprocessing.connection import Connection
from time import process_time

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
    model = network(work)
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
    layout = getattr(torch, layout_name)
    images = Images(work)
    train = Batches(torch.from_numpy(images.train), torch.from_numpy(images.train_labels), layout)
    test = Batches(torch.from_numpy(images.test), torch.from_numpy(images.test_labels), layout)
    tests = test.in_order(min(test_batch, -(-len(test.labels) // parts)))[part::parts]  # some for every part
    shares = [torch.from_numpy(share) for share in images.shares]
    model = network(work).to(memory_format=layout)  # pyright: ignore[reportCallIssue]
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


FORMS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def best_choice(work: Workload) -> tuple[str, dict[str, bool], int]:
    """Memory layout, form of SGD and batch of the test that are fastest here on one thread, by CPU time, in turns."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    with np.load(work.data) as stored:
        count = min(2000, len(stored["y_test"]))
    pixels = torch.from_numpy(rng.standard_normal((count, *work.kind.shape), np.float32))
    labels = torch.from_numpy(rng.integers(0, 10, count))
    training: dict[tuple[str, str], float] = {}
    testing: dict[tuple[str, int], float] = {}
    for _ in range(2):
        for layout_name in ("contiguous_format", "channels_last"):
            layout = getattr(torch, layout_name)
            data = Batches(pixels, labels, layout)
            for form, options in FORMS.items():
                model = network(work, 0).to(memory_format=layout)  # pyright: ignore[reportCallIssue]
                optimizer = torch.optim.SGD(model.parameters(), work.lr, **options)
                start = process_time()
                for some, truth in data.draw(torch.arange(count), work.steps, work.batch):
                    optimizer.zero_grad(set_to_none=True)
                    cross_entropy(model(some), truth).backward()
                    optimizer.step()
                taken = process_time() - start
                training[layout_name, form] = min(taken, training.get((layout_name, form), taken))
            for size in (50, 250, 1000):
                model, start = network(work, 0).to(memory_format=layout), process_time()  # pyright: ignore[reportCallIssue]
                accuracy(model, data.in_order(size))
                taken = process_time() - start
                testing[layout_name, size] = min(taken, testing.get((layout_name, size), taken))
    layout_name, form = min(training, key=training.__getitem__)
    same_layout = {size: taken for (name, size), taken in testing.items() if name == layout_name}
    return layout_name, FORMS[form], min(same_layout, key=same_layout.__getitem__)


def tuned(work: Workload, processes: int = 2) -> None:
    choice = best_choice(work)
    diary, rng = Diary(), np.random.default_rng(work.seed)
    theta = nn.utils.parameters_to_vector(network(work).parameters()).detach().numpy()
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
    diary.finish(
        f"{processes} processes of one thread, {choice[0].removesuffix('_format')}, SGD {sgd}, tests of {choice[2]}"
    )


if __name__ == "__main__":
    work = asked()
    (tuned if work.tuned else as_users)(work)
