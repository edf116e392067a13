"""Flower's simulation engine (Ray): a client and a server app, federated averaging, test on the server.

As users run it: the engine's defaults (each client takes two CPUs), a DataLoader per call as in Flower's quickstart.
Tuned: two actors of one thread each, channels_last, batches by indexing; the server tests with both cores while the
actors wait.
"""

from __future__ import annotations

import logging

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from network import Batches, accuracy, network
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset
from workload import Diary, Workload, asked, images_of

WORK = asked()
LAYOUT = torch.channels_last if WORK.tuned else torch.contiguous_format
client_app, server_app, diary = ClientApp(), ServerApp(), Diary()


def batches(work: Workload, client: int):
    images = images_of(work)
    share = torch.from_numpy(images.shares[client])
    train = Batches(torch.from_numpy(images.train), torch.from_numpy(images.train_labels), LAYOUT)
    if work.tuned:
        return train.draw(share, work.steps, work.batch)
    own = Subset(TensorDataset(train.pixels, train.labels), share.tolist())
    return DataLoader(own, work.batch, sampler=RandomSampler(own, num_samples=work.drawn))


@client_app.train()
def train(message: Message, context: Context) -> Message:
    work = WORK
    if work.tuned:
        torch.set_num_threads(1)
    model = network(work, 0).to(memory_format=LAYOUT)  # pyright: ignore[reportCallIssue]
    torch.seed()
    model.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), work.lr)
    for pixels, labels in batches(work, int(context.node_config["partition-id"])):
        optimizer.zero_grad()
        cross_entropy(model(pixels), labels).backward()
        optimizer.step()
    reply = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": 1})}
    return Message(content=RecordDict(reply), reply_to=message)


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    images = images_of(WORK)
    test = Batches(torch.from_numpy(images.test), torch.from_numpy(images.test_labels), LAYOUT)
    tests = test.in_order(250 if WORK.tuned else 1000)
    model = network(WORK).to(memory_format=LAYOUT)  # pyright: ignore[reportCallIssue]

    def evaluate(round: int, arrays: ArrayRecord) -> MetricRecord | None:
        if round == 0:
            return None  # the test before the first round is nobody's work
        model.load_state_dict(arrays.to_torch_state_dict())
        diary.tested(accuracy(model, tests))
        return MetricRecord({"accuracy": diary.accuracy[-1]})

    strategy = FedAvg(
        fraction_train=WORK.size / WORK.clients, fraction_evaluate=0.0, min_train_nodes=WORK.size,
        min_available_nodes=WORK.clients,
    )  # fmt: skip
    strategy.start(grid, ArrayRecord(model.state_dict()), num_rounds=WORK.played, evaluate_fn=evaluate)


if __name__ == "__main__":
    logging.getLogger("flwr").setLevel(logging.ERROR)
    resources = {"client_resources": {"num_cpus": 1 if WORK.tuned else 2, "num_gpus": 0.0}}
    run_simulation(server_app, client_app, WORK.clients, backend_config=resources)
    diary.finish("2 actors of one thread, channels_last" if WORK.tuned else "the engine's defaults, DataLoader")
