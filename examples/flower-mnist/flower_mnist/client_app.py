"""The device: an ordinary Flower client, and the lines marked 1 to 3 that report to the scheduler."""

from __future__ import annotations

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from feelstream.flower import Device
from flower_mnist import stream

app = ClientApp()


def samples(message: Message, context: Context) -> np.ndarray:
    """What this device holds now."""
    node, config = context.node_config, context.run_config
    content = message.content
    # FedAvg tells the round in "config", the scheduler in a record of its own.
    round = (
        content["feelstream.server"]["round"] if "feelstream.server" in content else content["config"]["server-round"]
    )
    device, devices = int(node["partition-id"]), int(node["num-partitions"])
    return stream.received(str(config["dataset"]), device, devices, int(round), int(config["samples-per-round"]))


def device(message: Message, context: Context) -> Device:
    labels = stream.dataset(str(context.run_config["dataset"])).train_labels[samples(message, context)]
    epsilon = float(context.run_config["epsilon"]) or None
    f_hz = float(context.node_config.get("f-hz", 0)) or None  # where psutil cannot tell, or a trial pretends
    return Device(context, message, np.bincount(labels, minlength=stream.CLASSES), f_hz=f_hz, epsilon=epsilon)


@app.query("feelstream")
def report(message: Message, context: Context) -> Message:
    return device(message, context).answer()


@app.train()
def train(message: Message, context: Context) -> Message:
    from flower_mnist import task  # loads PyTorch, which takes seconds, and every message starts a process

    config, model = context.run_config, task.network()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    held, scheduled = samples(message, context), "feelstream.server" in message.content

    def learn() -> float:
        return task.train(model, str(config["dataset"]), held, int(config["local-steps"]), float(config["lr"]))

    if not scheduled:  # plain FedAvg
        metrics = MetricRecord({"loss": learn(), "num-examples": len(held)})
        content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
        return Message(content, reply_to=message)
    mine = device(message, context)  # 1
    with mine.training():  # 2
        loss = learn()
    return mine.answer(ArrayRecord(model.state_dict()), MetricRecord({"loss": loss}))  # 3
