"""Cases that a federation of four nodes meets, one after the other on the same grid; results go to a JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import fixedclipping_mod
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import DifferentialPrivacyClientSideFixedClipping, FedAvg, FedXgbBagging, Strategy

from feelstream.flower import Device, Scheduled

DEVICES, CLASSES, SLOW_S = 4, 3, 60.0
CLIPPING = "clipping_norm"  # what Flower's wrapper tells its modifier


def clipping_where_asked(message: Message, context: Context, call_next: Callable[..., Message]) -> Message:
    """Flower's modifier, given to the whole app, in the case that is about it; and for all questions."""
    asked = any(CLIPPING in record for record in message.content.config_records.values())
    return fixedclipping_mod(message, context, call_next) if asked else call_next(message, context)


client_app = ClientApp(mods=[clipping_where_asked])


def device_of(message: Message, context: Context) -> Device:
    return Device(context, message, [4, 3, 2], f_hz=1.2e9, beta=1.0, meter=None)


@client_app.query("feelstream")
def report(message: Message, context: Context) -> Message:
    return device_of(message, context).answer()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    device, number = device_of(message, context), context.node_config["partition-id"]
    case = next(str(record["case"]) for record in message.content.config_records.values() if "case" in record)
    if case == "two bad of four" and number in (2, 3):
        raise ValueError("this device never trains")
    with device.training():
        if case == "a straggler" and number == 3:
            sleep(SLOW_S)
        arrays = trees(message, int(number)) if case == "xgboost" else moved(message.content.array_records["arrays"])
    content = RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 9, "loss": 1.0})})
    if case == "scaffold":
        content["control"] = ArrayRecord({"c": Array(np.ones(3, np.float32))})
    return device.reply(content)


def moved(arrays: ArrayRecord) -> ArrayRecord:
    return ArrayRecord({name: Array(array.numpy() + np.float32(1)) for name, array in arrays.items()})


def trees(message: Message, number: int) -> ArrayRecord:
    """One tree more, as in Flower's example of bagging."""
    import xgboost  # pyright: ignore[reportMissingImports]

    rng = np.random.default_rng(number)
    x = rng.random((60, 4))
    data, params = xgboost.DMatrix(x, label=x[:, 0] > 0.5), {"objective": "binary:logistic", "max_depth": 2}
    known = message.content.array_records["arrays"]["0"].numpy().tobytes()
    if not known:
        booster = xgboost.train(params, data, num_boost_round=1)
    else:
        booster = xgboost.Booster(params=params)
        booster.load_model(bytearray(known))
        before = booster.num_boosted_rounds()
        booster.update(data, before)
        booster = booster[before : before + 1]
    return ArrayRecord([np.frombuffer(booster.save_raw("json"), np.uint8)])


server_app = ServerApp()


class RaisingStrategy(FedAvg):
    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        raise ZeroDivisionError("the strategy's own mistake")


class Scaffold(FedAvg):
    control = 0.0

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        replies = list(replies)
        for reply in replies:
            self.control += float(reply.content.array_records["control"]["c"].numpy().sum())
            reply.content = RecordDict({key: reply.content[key] for key in ("arrays", "metrics")})
        return super().aggregate_train(server_round, replies)


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    out, found = Path(str(context.run_config["out"])), dict[str, Any]()
    plain: dict[str, Any] = {"fraction_evaluate": 0.0, "min_train_nodes": 1, "min_available_nodes": 1}
    scaffold = Scaffold(**plain)
    cases: dict[str, tuple[Strategy, dict[str, Any]]] = {
        "two bad of four": (FedAvg(**plain), {"rounds": 4, "size": 2}),
        "a strategy that raises": (RaisingStrategy(**plain), {}),
        "scaffold": (scaffold, {}),
        "dp": (DifferentialPrivacyClientSideFixedClipping(FedAvg(**plain), 0.01, 10.0, 2), {}),
    }
    if find_spec("xgboost"):
        cases["xgboost"] = FedXgbBagging(**plain), {}
    # The last one, since its node is still asleep when the round is over.
    cases["a straggler"] = FedAvg(**plain), {"size": 4, "first": 3, "late": "use"}
    for case, (inner, options) in cases.items():
        size, rounds = options.pop("size", 2), options.pop("rounds", 2)
        scenario = {
            "system": {"devices": DEVICES, "round_s": 90.0, "energy_budget_j": 0.3},
            "policy": {"name": "lyapunov", "V": 1.0, "size": size},
            "cpu": {"frequency_hz": [1e9, 1.5e9]},
        }
        strategy = Scheduled(inner, scenario, classes=CLASSES, out=out.parent / case.replace(" ", "-"), **options)
        zero = np.zeros(0, np.uint8) if case == "xgboost" else np.zeros(2, np.float32)
        arrays = ArrayRecord({"0": Array(zero)})
        begin = monotonic()
        try:
            result = strategy.start(grid, arrays, num_rounds=rounds, train_config=ConfigRecord({"case": case}))
        except ZeroDivisionError as problem:
            found[case] = {"error": str(problem)}
            continue
        trained = result.arrays["0"].numpy()
        told = trained.tolist() if trained.dtype == np.float32 else trained.size
        found[case] = {"model": told, "seconds": monotonic() - begin, "rounds": len(result.train_metrics_clientapp)}
    found["scaffold"]["control"] = scaffold.control
    partial = out.with_suffix(".part")
    partial.write_text(json.dumps(found))
    partial.rename(out)
