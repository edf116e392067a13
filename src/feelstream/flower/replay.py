"""A scenario played by real messages: each client replays the simulator's world for its own device.

Because every draw of the world is keyed by (seed, purpose, round, device), a client needs only the scenario, the seed
and the round to know what its device holds, at which frequency it runs and what its channel is like. A federation of
such clients must therefore do exactly what the simulator does; it is how the deployment is tested, and what
`feelstream flower run` shows.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from numpy.typing import NDArray

from feelstream import learning
from feelstream.data.datasets import Dataset
from feelstream.data.features import Samples
from feelstream.errors import ScenarioError
from feelstream.flower.device import Device, fitted
from feelstream.flower.strategy import ScheduledFedAvg
from feelstream.flower.wire import REPORT, SERVER
from feelstream.learning.contract import Learner
from feelstream.learning.server import FedAvg
from feelstream.loop.world import World
from feelstream.run import dataset_of, with_numbers
from feelstream.scenario import Scenario
from feelstream.scenario.files import load

Theta = NDArray[np.float32]
STATE = "feelstream.replay"  # in the state that Flower keeps for a node


class ReplayedDevice:
    """One device of a scenario's world, in whatever round it is asked about."""

    def __init__(self, scenario: Scenario, seed: int, device: int, dataset: Dataset, learner: Learner | None) -> None:
        self.scenario, self.seed, self.device = scenario, seed, device
        self.dataset, self.learner = dataset, learner

    def answer(self, context: Context, message: Message) -> Message:
        """The reply to a query or, if the message carries a model, to a call for training."""
        asked = message.content.metric_records[SERVER]
        t, used_round = asked["round"], asked["used-round"]
        assert isinstance(t, int)
        assert isinstance(used_round, int)
        world, k = self.world(t, uses(context, used_round)), self.device
        stream, device = world.stream, device_of(context, message, world, k, self.dataset)
        if message.metadata.message_type != MessageType.TRAIN:
            return device.answer()
        theta = from_record(message.content.array_records["arrays"])
        gain, losses = float(world.gain[k]), None
        if self.learner is not None:
            training = world.train(t, np.array([k]), self.learner, theta)
            theta = theta + training.updates[0]
            losses = training.losses.ravel() if stream.stored[k] else None
        metrics = MetricRecord({"num-examples": int(stream.stored[k])})
        return device.answer(to_record(theta), metrics, gain=gain, losses=losses)

    def world(self, t: int, used: list[int]) -> World:
        """The world in round t for a device that was used in these rounds."""
        labels, classes = self.dataset.train_labels, self.dataset.classes
        world = World(self.scenario, self.seed, labels, classes, self.dataset.recording)
        for round in range(1, t + 1):
            world.advance(round)
            if round in used:
                world.stream.use(np.array([self.device]))
        return world


def device_of(context: Context, message: Message, world: World, k: int, dataset: Dataset) -> Device:
    """What device k is and holds in the present round of a world."""
    stream, told, kind = world.stream, message.content.metric_records[SERVER], world.scenario.data.features
    known: dict[str, Any] = {"f_hz": world.f_hz[k], "beta": world.beta[k], "meter": None}
    # Where nothing is deleted the server knows what is fresh; a node that it does not know yet cannot.
    if "features" not in told:
        fresh = stream.fresh_labels[k] if told["deletes"] else None
        return Device(context, message, stream.stored_labels[k], fresh=fresh, **known)
    vectors = kind.vectors(fitted(context, message), Samples(stream.samples(k), dataset))
    fresh = vectors[stream.fresh_among(k)].sum(axis=0) if told["deletes"] else None
    return Device(context, message, features=vectors, fresh=fresh, **known)


def uses(context: Context, last: int) -> list[int]:
    """The rounds in which this device was used, as far as it was informed: now the last one, and what it remembers.

    A server that was killed may tell of an earlier one than before; what came later has then not happened.
    """
    saved = context.state.metric_records.get(STATE)
    before = saved["uses"] if saved is not None else []
    assert isinstance(before, list)
    found = [int(round) for round in before if round < last] + ([last] if last else [])
    if found:
        context.state[STATE] = MetricRecord({"uses": found})
    return found


def to_record(theta: Theta) -> ArrayRecord:
    """The model as one array; a scenario that only schedules has an empty one, which is sent as a single 0."""
    return ArrayRecord({"theta": Array(theta if theta.size else np.zeros(1, np.float32))})


def from_record(record: ArrayRecord) -> Theta:
    return record["theta"].numpy().astype(np.float32)


@lru_cache(maxsize=1)
def prepare(scenario_file: str) -> tuple[Scenario, Dataset, Learner | None]:
    """Scenario, data and learner of a scenario file."""
    scenario = with_numbers(load(scenario_file))
    if scenario.learning.local.remembers:
        raise ScenarioError(
            "learning.local.keep: must be none in a replayed federation, whose devices keep nothing between rounds"
        )
    if scenario.learning.server != FedAvg():
        raise ScenarioError(
            "learning.server.kind: must be fedavg in a replayed federation; an app of your own has Scheduled(inner=…)"
        )
    dataset = dataset_of(scenario)
    return scenario, dataset, learning.make(scenario.learning, dataset, threads=1)


def strategy_for(scenario: Scenario, dataset: Dataset, seed: int, **options: object) -> ScheduledFedAvg:
    """The strategy under which a federation repeats the simulator: everyone is asked in every round."""
    kind, classes = scenario.data.features, dataset.classes
    counted = kind.size(classes) if kind.reported else classes
    about = {"data": {"name": dataset.name, "digest": dataset.digest, "classes": counted}}
    # Everyone is asked and waited for, and the scenario's clock counts: messages take the time that they take.
    exact = {"max_report_age": 0, "enough_reports": 1.0, "clock": "model", "max_examples": None, "passes": False}
    settings = {"classes": dataset.classes, "seed": seed, "about": about, **exact} | options
    return ScheduledFedAvg(scenario, **settings)  # type: ignore[arg-type]


def serve(strategy: ScheduledFedAvg, grid: Grid, learner: Learner | None) -> Theta:
    """Run the strategy from the simulator's first model and return the last."""

    def evaluate(round: int, arrays: ArrayRecord) -> MetricRecord | None:
        assert learner is not None
        due = round % strategy.scenario.learning.eval_every == 0 or round == strategy.scenario.system.rounds
        if round == 0 or not due:  # as the simulator does
            return None
        found = learner.evaluate(from_record(arrays))
        return MetricRecord({"accuracy": found.accuracy, "loss": found.loss})

    theta = learner.init(strategy.options.seed) if learner else np.zeros(0, np.float32)
    result = strategy.start(grid, to_record(theta), evaluate_fn=evaluate if learner else None)
    return from_record(result.arrays)


def with_fault(context: Context, message: Message, reply: Message) -> Message:
    """`--node-config "fault='slow'"` trains late (`slow-s` seconds), `"fault='garbage'"` reports nonsense."""
    fault, trains = context.node_config.get("fault"), message.metadata.message_type == MessageType.TRAIN
    if fault == "slow" and trains:
        time.sleep(float(context.node_config.get("slow-s", 60)))
    if fault == "garbage":
        name = reply.content.config_records[REPORT]["name"]
        nonsense = ConfigRecord({"name": name, "stored-labels": [-1.0], "f-hz": float("nan")})
        return Message(RecordDict({**reply.content, REPORT: nonsense}), reply_to=message)
    return reply


server_app = ServerApp()
client_app = ClientApp()


@server_app.main()
def _server(grid: Grid, context: Context) -> None:
    settings = context.run_config
    scenario, dataset, learner = prepare(str(settings["scenario"]))
    strategy = strategy_for(
        scenario, dataset, int(settings["seed"]),
        out=str(settings["out"]),
        deadline_s=float(settings["deadline-s"]),
        query_timeout_s=float(settings["query-timeout-s"]),
        max_report_age=int(settings["max-report-age"]),
        min_available_nodes=int(settings["nodes"]),
    )  # fmt: skip
    serve(strategy, grid, learner)


@client_app.query("feelstream")
@client_app.train()
def _client(message: Message, context: Context) -> Message:
    scenario, dataset, learner = prepare(str(context.run_config["scenario"]))
    device = int(context.node_config["partition-id"])
    replayed = ReplayedDevice(scenario, int(context.run_config["seed"]), device, dataset, learner)
    return with_fault(context, message, replayed.answer(context, message))
