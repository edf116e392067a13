"""What scheduling is worth in a deployment: joules and seconds until the model has 80 % on the test set.

    python benchmarks/flower_value.py --markdown value.md    10 emulated devices, 30 seeds: ten minutes
    python benchmarks/flower_value.py --smoke                one seed, few rounds, synthetic data: only that it works

Server, strategy, reports and meters are those of a deployment, on a grid in this process; only time and energy are
emulated. A device has a clock of 0.6 to 2.4 GHz, trains for 6·10⁹ cycles and draws p + 0.8·(f/GHz)² W meanwhile, with
p from 1 to 6 W, so that slow devices are not cheap ones; its meter is off by 10 % a reading, and one reading in a
hundred is a thousand times too high. It receives 20 samples of its three digits a round. The scenario knows none of
this: 10⁹ cycles and the cubic law, by which the slowest device is the cheapest.

"true f" devices state their frequency, "no f" devices do not, so that all look alike to the model. The budget of a
device is 80 % of what a turn costs on average, times the share of rounds in which it has one. Policies are as a
deployment has them unless told otherwise: `lyapunov` with V = auto, `balanced` with price = auto. Seconds are those of
the slowest device of each round. Five seeds say nothing about differences of less than a third.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord
from numpy.typing import NDArray

import feelstream as fs
from feelstream.data.datasets import Dataset
from feelstream.flower import Device, LocalGrid, ScheduledFedAvg
from feelstream.run import dataset_of

DEVICES, SIZE, WANTED = 10, 2, 0.8
CYCLES, SENDING_S, SENDING_J = 6e9, 0.2, 0.4
SLOWEST_HZ, FASTEST_HZ = 0.6e9, 2.4e9
POLICIES: dict[str, dict[str, Any]] = {
    "random": {"name": "random"},
    "round_robin": {"name": "round_robin"},
    "lyapunov": {"name": "lyapunov"},
    "balanced": {"name": "balanced"},
}
PLANNED = ("lyapunov", "balanced")  # for the others neither frequencies nor plans matter


class EnoughError(Exception):
    """The model is as good as it has to be."""


@dataclass(frozen=True)
class Board:
    """One emulated device: what it holds in which order, and what a turn takes."""

    number: int
    order: NDArray[np.int64]  # sample numbers, as they arrive
    f_hz: float
    power_w: float

    @property
    def turn_s(self) -> float:
        return CYCLES / self.f_hz

    @property
    def turn_j(self) -> float:
        return self.power_w * self.turn_s


def boards(data: Dataset, seed: int) -> list[Board]:
    rng = np.random.default_rng([seed, 25])
    found = []
    for number in range(DEVICES):
        digits = (number + np.array([0, 3, 7])) % 10
        order = rng.permutation(np.flatnonzero(np.isin(data.train_labels, digits)))
        f_hz, floor_w = rng.uniform(SLOWEST_HZ, FASTEST_HZ), rng.uniform(1.0, 6.0)
        found.append(Board(number, order, f_hz, floor_w + 0.8 * (f_hz / 1e9) ** 2))
    return found


def client(board: Board, data: Dataset, seed: int, states_f: bool) -> Callable[[Context, Message], Message]:
    def answer(context: Context, message: Message) -> Message:
        t = int(message.content.metric_records["feelstream.server"]["round"])  # pyright: ignore[reportArgumentType]
        held = board.order[: 30 + 20 * t]
        known = {"f_hz": board.f_hz if states_f else FASTEST_HZ, "beta": 1.0, "meter": None}
        device = Device(context, message, labels=data.train_labels[held], **known)
        arrays = message.content.array_records.get("arrays")
        if arrays is None:
            return device.answer()
        rng = np.random.default_rng([seed, board.number, t])
        weights = trained(arrays["w"].numpy(), data, held, rng)
        reading = board.turn_j * float(np.exp(0.1 * rng.standard_normal())) * (1e3 if rng.random() < 0.01 else 1.0)
        took_s = board.turn_s * float(np.exp(0.05 * rng.standard_normal()))
        return device.answer(
            ArrayRecord({"w": Array(weights)}), MetricRecord({"num-examples": len(held)}),
            t_cmp_s=took_s, e_cmp_j=reading, t_tr_s=SENDING_S, e_tr_j=SENDING_J,
        )  # fmt: skip

    return answer


def trained(weights: NDArray, data: Dataset, held: NDArray[np.int64], rng: np.random.Generator) -> NDArray:
    """Softmax regression, 20 steps of 32 samples."""
    for _ in range(20):
        batch = rng.choice(held, 32)
        x, y = _inputs(data.train_images[batch]), data.train_labels[batch]
        p = _softmax(x @ weights)
        p[np.arange(len(y)), y] -= 1.0
        weights = weights - 0.1 / len(y) * (x.T @ p)
    return weights.astype(np.float32)


def _inputs(images: NDArray) -> NDArray[np.float32]:
    flat = images.reshape(len(images), -1).astype(np.float32)
    flat = flat / 255.0 if images.dtype == np.uint8 else flat
    return np.concatenate([flat, np.ones((len(flat), 1), np.float32)], axis=1)


def _softmax(values: NDArray) -> NDArray:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def scenario(policy: str, data: str, turn_j: float, rounds: int) -> dict[str, Any]:
    return {
        "system": {
            "devices": DEVICES,
            "rounds": rounds,
            "round_s": 20.0,
            "energy_budget_j": 0.8 * turn_j * SIZE / DEVICES,
        },
        "cpu": {"frequency_hz": [SLOWEST_HZ, FASTEST_HZ], "cycles": 1e9},
        "radio": {"gain_db": [-10.0, 10.0], "fading": "none"},
        "policy": {**POLICIES[policy], "size": SIZE},
        "data": {"dataset": data},
        "learning": {"engine": "none"},
    }


def played(
    policy: str, states_f: bool, plans: str, seed: int, data: Dataset, name: str, rounds: int
) -> tuple[float, float]:
    """True joules and seconds until WANTED, infinite if that is not reached."""
    fleet, seen = boards(data, seed), list[float]()
    grid = LocalGrid()
    for board in fleet:
        grid.add(100 + board.number, {"partition-id": board.number}, client(board, data, seed, states_f))
    mean_j = mean(board.turn_j for board in fleet)
    tests, turns = _inputs(data.test_images), []
    strategy = ScheduledFedAvg(scenario(policy, name, mean_j, rounds), seed=seed, wait_s=0.0, plans=plans)

    def evaluate(t: int, arrays: ArrayRecord) -> MetricRecord:
        turns.append([m.metadata.dst_node_id - 100 for m in grid.sent if m.metadata.message_type == "train"])
        grid.sent.clear()
        seen.append(float(((tests @ arrays["w"].numpy()).argmax(axis=1) == data.test_labels).mean()))
        if seen[-1] >= WANTED:
            raise EnoughError
        return MetricRecord({"accuracy": seen[-1], "loss": 0.0})

    start = ArrayRecord({"w": Array(np.zeros((tests.shape[1], 10), np.float32))})
    try:
        strategy.start(grid, start, num_rounds=rounds, evaluate_fn=evaluate)
        return float("inf"), float("inf")
    except EnoughError:
        rounds_until = [[fleet[device] for device in each] for each in turns]
    joules = sum(board.turn_j + SENDING_J for each in rounds_until for board in each)
    return joules, sum(max((board.turn_s + SENDING_S for board in each), default=0.0) for each in rounds_until)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--only", nargs="+", choices=POLICIES, default=list(POLICIES), help="and no table")
    parser.add_argument("--markdown", type=Path, help="write the table there")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    name = "synthetic" if options.smoke else "mnist"
    seeds, rounds = (1, 3) if options.smoke else (options.seeds, options.rounds)
    first = options.first_seed
    data = dataset_of(fs.preset("tiny", [f"data.dataset={name}"]))
    rows = [
        (policy, states_f, plans)
        for policy in options.only
        for states_f in ((True, False) if policy in PLANNED else (True,))
        for plans in (("measured", "model") if policy in PLANNED else ("measured",))
    ]
    found = {}
    for row in rows:
        found[row] = [played(*row, first + seed, data, name, rounds) for seed in range(seeds)]
        print(*row, *(f"{joules:.0f} J {seconds:.0f} s" for joules, seconds in found[row]), sep="; ", flush=True)
    if set(options.only) != set(POLICIES):
        return
    lines = [
        "| policy | devices state | plans by | J to 80 % | of round_robin's, by seed | above | s to 80 % | of its |",
        "|---|---|---|---|---|---|---|---|",
    ]
    base = found["round_robin", True, "measured"]
    for (policy, states_f, plans), results in found.items():
        shares = [[own[i] / other[i] for own, other in zip(results, base, strict=True)] for i in (0, 1)]
        j, s = (mean(each[i] for each in results) for i in (0, 1))
        error = stdev(shares[0]) / seeds**0.5 if seeds > 1 else 0.0
        told = ("true f" if states_f else "no f", plans) if policy in PLANNED else ("either", "")
        lines.append(
            f"| {policy} | {told[0]} | {told[1]} | {j:.0f} | {mean(shares[0]):.2f} ± {error:.2f} "
            f"({min(shares[0]):.2f} to {max(shares[0]):.2f}) | {sum(share > 1 for share in shares[0])} | {s:.0f} | "
            f"{mean(shares[1]):.2f} |"
        )
    text = "\n".join(lines) + "\n"
    print(text)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
