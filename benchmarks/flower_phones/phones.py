"""An app whose clients train really, without PyTorch, and are charged what a Pixel 6 would spend on it.

Each device is the big core of a Pixel 6 (`gs101-x1`) at an operating point of its own, beside a rest of the phone that
draws power of its own for as long as the core computes, behind a link of its own:

    turn_s = c / f        turn_j = c · C_eff · V(f)² + rest_w · c / f

The server is told f and the link, and what the meter shows: turn_j, 5 % off a reading. It knows the core's table, not
rest_w. What arrives on a device, and its training, are those of the scenario.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MessageType, MetricRecord
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from feelstream.data.datasets import Dataset
from feelstream.flower import Device, ScheduledFedAvg
from feelstream.flower.replay import from_record, prepare, to_record
from feelstream.flower.wire import SERVER
from feelstream.learning.contract import Learner
from feelstream.loop.world import World
from feelstream.scenario import Scenario

REST_W = 0.3, 1.5  # memory, regulators, screen and radio: an assumption
METER_OFF, CLOCK_OFF = 0.05, 0.02  # relative, standard deviation
PATIENCE_S = 300.0  # for reports, by the wall clock of however busy a machine; training has the round's length

server_app = ServerApp()
client_app = ClientApp()


@dataclass(frozen=True)
class Phone:
    f_hz: float
    rest_w: float
    beta: float
    turn_s: float
    turn_j: float


def phones(scenario: Scenario, seed: int) -> list[Phone]:
    """The devices of a seed."""
    K, rng = scenario.system.devices, np.random.default_rng([seed, 55])
    (core,), cycles = scenario.profiles.cores, scenario.cpu.cycles
    assert not isinstance(cycles, str)
    points_hz, points_v = core.points
    point, rest_w = rng.integers(len(points_hz), size=K), rng.uniform(*REST_W, K)
    beta = 10 ** (rng.uniform(*scenario.radio.gain_db, K) / 10)
    turn_s = cycles / points_hz[point]
    turn_j = cycles * core.capacitance_f * points_v[point] ** 2 + rest_w * turn_s
    return [Phone(*map(float, each)) for each in zip(points_hz[point], rest_w, beta, turn_s, turn_j, strict=True)]


def answer(
    context: Context, message: Message, scenario: Scenario, seed: int, dataset: Dataset, learner: Learner
) -> Message:
    """A device's reply: a report or, if the message carries a model, what it has learned."""
    k, t = int(context.node_config["partition-id"]), message.content.metric_records[SERVER]["round"]
    assert isinstance(t, int)
    world, phone = World(scenario, seed, dataset.train_labels, dataset.classes), phones(scenario, seed)[k]
    for round in range(1, t + 1):
        world.stream.advance(round)
    held = world.stream.stored_labels[k]
    off, shown_j = np.random.default_rng([seed, k, t]).standard_normal(2), [0.0]

    def pixel_6() -> float:
        return shown_j[0]

    device = Device(context, message, held, f_hz=phone.f_hz, beta=phone.beta, meter=pixel_6)
    if message.metadata.message_type != MessageType.TRAIN:
        return device.answer()
    theta = from_record(message.content.array_records["arrays"])
    with device.training():
        theta = theta + world.train(t, np.array([k]), learner, theta).updates[0]
        shown_j[0] += phone.turn_j * float(np.exp(METER_OFF * off[0]))
    took_s = phone.turn_s * float(np.exp(CLOCK_OFF * off[1]))  # the phone's, not this machine's
    return device.answer(to_record(theta), MetricRecord({"num-examples": int(held.sum())}), t_cmp_s=took_s)


def serve(grid: Grid, file: str, policy: str, seed: int, out: str) -> None:
    """One run of one policy; its directory holds who trained in which round, and how good the model was."""
    scenario, dataset, learner = prepare(file)
    assert learner is not None

    def evaluate(_: int, arrays: ArrayRecord) -> MetricRecord:
        found = learner.evaluate(from_record(arrays))
        return MetricRecord({"accuracy": found.accuracy, "loss": found.loss})

    strategy = ScheduledFedAvg(
        file, policy, seed=seed, out=out, classes=dataset.classes, bind_names=False,
        min_available_nodes=scenario.system.devices, wait_s=PATIENCE_S, query_timeout_s=PATIENCE_S, enough_reports=1.0,
    )  # fmt: skip
    strategy.start(grid, to_record(learner.init(seed)), evaluate_fn=evaluate)


@server_app.main()
def _server(grid: Grid, context: Context) -> None:
    config = context.run_config
    serve(grid, str(config["scenario"]), str(config["policy"]), int(config["seed"]), str(config["out"]))


@client_app.query("feelstream")
@client_app.train()
def _client(message: Message, context: Context) -> Message:
    scenario, dataset, learner = prepare(str(context.run_config["scenario"]))
    assert learner is not None
    return answer(context, message, scenario, int(context.run_config["seed"]), dataset, learner)
