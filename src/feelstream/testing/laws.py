"""What plug-ins say of themselves to other code, and no run asks of them: the laws of each kind.

Each takes a plug-in and says what is wrong with it, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from feelstream import learning
from feelstream.arrays import copied
from feelstream.data.datasets import load
from feelstream.data.streaming.buffers import Buffer
from feelstream.environment.base import Process, by_itself
from feelstream.environment.channel import Channel, wrong_mean
from feelstream.environment.harvest import Harvest
from feelstream.environment.mobility import Mobility
from feelstream.guard import ask
from feelstream.learning.local import Cohort, LocalTraining
from feelstream.learning.server import ServerUpdate
from feelstream.learning.settings import LearningSettings
from feelstream.model.energy import Core, Cpus, EnergyLaw
from feelstream.model.system import CostContext, CostRule
from feelstream.scenario import Scenario


def drawn(*key: int) -> np.random.Generator:
    """The random numbers of a law: the same every time."""
    return np.random.default_rng(list(key))


def holds_what_came(buffer: Buffer) -> str | None:
    """Forty rounds of arrivals and uses: what is held is what came and has not left, as the traits say."""
    devices, arrived = range(5), [[range(0)] for _ in range(5)]  # positions by device and round, 0 first
    state, held = copied(ask(buffer, "init", 5, at=0)), [list[int]() for _ in range(5)]
    for t in range(1, 41):
        rng = drawn(3, t)
        counts = rng.poisson(2.0, 5) * (rng.random(5) > 0.3) + (700 if t == 4 else 0)
        for mine, count in zip(arrived, counts.tolist(), strict=True):
            mine.append(range(mine[-1].stop, mine[-1].stop + count))
        receiving, users = np.flatnonzero(counts), np.flatnonzero(drawn(4, t).random(5) < 0.2)
        came, left = ask(buffer, "join", state, receiving, counts[receiving], drawn(2, t), at=t)
        if state["hi"].tolist() != [mine[-1].stop for mine in arrived]:
            return f"round {t}: `hi` is {state['hi'].tolist()}, and {[mine[-1].stop for mine in arrived]} have arrived"
        for k in devices:
            there = [*held[k], *came.positions[came.devices == k].tolist()]
            held[k] = ask(buffer, "held", state, k).tolist()
            problem = _contents(buffer, held[k], there, left.positions[left.devices == k].tolist(), arrived[k])
            if held[k] and not problem:
                draws = ask(buffer, "draw", state, k, (4, 3), drawn(5, t), at=t)
                if draws.shape != (4, 3) or not np.isin(draws, held[k]).all():
                    problem = f"drew {draws.tolist()} of {held[k]}"
            if problem:
                return f"round {t}, device {k}: {problem}"
        ask(buffer, "use", state, users, at=t)
        held = [[] if buffer.empties_on_use and k in users else held[k] for k in devices]
        if [ask(buffer, "held", state, k).tolist() for k in devices] != held:
            return f"round {t}: after `use` it does not hold {held}"
    return None


def _contents(buffer: Buffer, held: list[int], there: list[int], gone: list[int], arrived: list[range]) -> str | None:
    """Of one device. there: what was held and what came; gone: what left of it."""
    for position in gone:
        if position not in there:
            return f"position {position} left, and was not there"
        there.remove(position)
    held = sorted(held)
    if held != sorted(there) or len(set(held)) < len(held):
        return f"holds {held}, and what came and has not left is {sorted(there)}"
    if buffer.admits_all and not set(arrived[-1]) <= set(held):
        return f"`admits_all`, and it holds {held} when {list(arrived[-1])} arrived"
    if buffer.keeps and gone:
        return "`keeps`, and something left"
    w = buffer.holds_rounds
    if w is not None and (wanted := [position for each in arrived[-w:] for position in each]) != held:
        return f"`holds_rounds` is {w}, and it holds {held}, not {wanted}"
    if buffer.most_held is not None and len(held) > buffer.most_held:
        return f"`most_held` is {buffer.most_held}, and it holds {len(held)}"
    return None


def plays(process: Process) -> str | None:
    """Many devices that differ, by itself; what its traits say is part of the contract of a step, or of all steps."""
    if isinstance(process, Harvest):
        battery_j, charge_j = process.battery_j, process.charge_j
        if battery_j is not None and not (0 < battery_j < np.inf and 0 <= charge_j <= battery_j):
            return f"`battery_j` is {battery_j!r} and `charge_j` is {charge_j!r}"
    if isinstance(process, Channel) and process.needs_links:
        return None
    values, context = by_itself(process)
    if isinstance(process, Channel):
        return wrong_mean(values)
    if isinstance(process, Mobility):
        if process.fixed and (values != values[0]).any():
            return "`fixed`, and a gain has changed"
        db = 10 * np.log10(values)
        within = (db >= context.gain_low_db - 1e-6) & (db <= context.gain_high_db + 1e-6)
        if process.within_gain_db and not within.all():
            return "`within_gain_db`, and a gain is not in the range of its device"
    return None


def charges_as_it_says(rule: CostRule) -> str | None:
    """A round of its own: a rule whose traits say that it does nothing of the kind is not asked in runs."""
    system, rng = Scenario().known_system(3), drawn(1)
    K, labels = system.devices, rng.integers(0, 4, (system.devices, 3)).astype(np.int32)
    known = rng.uniform(2e7, 1e9, K), rng.uniform(0.3, 2.0, K), labels.sum(axis=1), labels.sum(axis=1), labels
    ask(rule, "costs", CostContext(system, 1, *known), rng, at=1, K=K)
    return None


def sends_bits(server: ServerUpdate) -> str | None:
    bits = server.bits(5)
    return None if np.isfinite(bits) and bits > 0 else f"`bits` is {bits!r}"


def trains_alone(local: LocalTraining) -> str | None:
    """What a device does depends on no other device of the round."""
    settings = LearningSettings(engine="torch" if local.needs_torch else "native", model="softmax")
    learner = learning.make(settings, load("synthetic", samples=60, test_samples=10), 1)
    assert learner is not None
    theta, held = learner.init(0), [drawn(4, k).integers(60, size=size) for k, size in enumerate((10, 33, 1))]

    def cohort(ids: list[int]) -> Cohort:
        draw = lambda k, shape, rng: rng.choice(held[k], shape)  # noqa: E731
        return Cohort(3, 1, 6, 3, np.array(ids), held.__getitem__, draw)

    def updates(ids: list[int]) -> np.ndarray:
        sizes = {"n": len(ids), "d": len(theta)}
        training, after = ask(local, "train", learner, theta, cohort(ids), {}, at=1, **sizes)
        ask(
            local, "update", {}, after, cohort(ids), np.ones(len(ids), bool), at=1
        )  # which no run asks if nothing stays
        return training.updates

    together = updates([0, 1, 2])
    for k in range(3):
        if not np.array_equal(updates([k])[0], together[k]):
            return f"device {k} has another update when it trains alone"
    return None


CORES = (
    Core(dynamic_power_coefficient=100.0, frequency_hz=(4e8, 6e8, 1.2e9, 1.4e9), voltage_v=(0.8, 0.8, 1.0, 1.15)),
    Core(dynamic_power_coefficient=436.0, frequency_hz=(4e8, 1e9, 1.8e9), voltage_v=(0.825, 1.15, 1.2), leakage_w=0.05),
    Core(dynamic_power_coefficient=300.0, frequency_hz=(9e8,), voltage_v=(0.9,)),
)
RANGES = ((1e8, 1.8e9), (1e6, 1e8), (2e9, 5e9))  # of frequencies: among the operating points, below and above all


def frequencies(law: EnergyLaw) -> Any:
    """(cpus, cycles, f_hz, the energy) of devices with cores of several kinds, in ranges of all kinds."""
    for trial, (low_hz, high_hz) in enumerate(RANGES * 4):
        rng = drawn(1, trial)
        cpus = Cpus(1e-27, CORES, rng.integers(0, len(CORES), 12))
        cycles, f_hz = 4e8 * rng.uniform(0.2, 3.0, 12), rng.uniform(low_hz, high_hz, 12)
        if trial == 0:
            f_hz = np.array([core.frequency_hz[len(core.frequency_hz) // 2] for core in CORES])[cpus.core]
        yield cpus, cycles, f_hz, ask(law, "energy_j", cpus, cycles, f_hz, n=12)


def asks_each_alone(law: EnergyLaw) -> str | None:
    """What a device spends does not depend on who else is asked about."""
    for cpus, cycles, f_hz, energy_j in frequencies(law):
        ids = np.array([7, 2, 5])
        alone_j = ask(law, "energy_j", cpus.take(ids), cycles[ids], f_hz[ids], n=3)
        if not np.allclose(alone_j, energy_j[ids], rtol=1e-12, atol=0):
            return f"{energy_j[ids]!r:.100} J among all, and {alone_j!r:.100} J asked alone"
    return None


def knows_its_most(law: EnergyLaw) -> str | None:
    """most_j is exceeded at no frequency of its range."""
    for cpus, cycles, f_hz, energy_j in frequencies(law):
        low_hz = f_hz * drawn(2).uniform(0.3, 1.0, 12)
        between_j = ask(law, "energy_j", cpus, cycles, low_hz + drawn(3).random(12) * (f_hz - low_hz), n=12)
        most_j = ask(law, "most_j", cpus, cycles, low_hz, f_hz, n=12)
        if (over := np.maximum(between_j, energy_j) > most_j * (1 + 1e-9)).any():
            k = int(np.argmax(over))
            return f"most_j is {most_j[k]:g} J, and a frequency of the range takes {between_j[k]:g} J"
    return None


def states_its_pieces(law: EnergyLaw) -> str | None:
    """Its pieces say the same: where one falls by its formula, elsewhere in that slowing down saves nothing."""
    for cpus, cycles, f_hz, energy_j in frequencies(law):
        if (pieces := ask(law, "pieces", cpus, cycles)) is None:
            continue
        f, energy = f_hz[:, None], energy_j[:, None]
        inside, t = (pieces.low_hz < f) & (f <= pieces.high_hz), cycles[:, None] / f
        said = pieces.fixed_j + pieces.inverse_j_s / t + pieces.square_j_s2 / t**2 + pieces.leakage_w * t
        slower = np.maximum(0.9 * f, np.maximum(pieces.low_hz, 0.1 * f) * (1 + 1e-6))
        slower_j = np.stack([ask(law, "energy_j", cpus, cycles, hz.copy(), n=12) for hz in slower.T], axis=1)
        falls, equal = inside & pieces.falls, np.isclose(said, energy, rtol=1e-9, atol=0)
        for wrong, problem in (
            (~inside.any(axis=1, keepdims=True), "no piece has this frequency"),
            (falls & ~equal, "a piece says another energy than energy_j"),
            (
                inside & ~falls & (slower_j < energy * (1 - 1e-9)),
                "no piece falls here, and going slower saves energy",
            ),
            (falls & (slower < f) & (slower_j > energy * (1 + 1e-9)), "a piece falls, and going slower costs more"),
        ):
            if wrong.any():
                return f"{problem}: {f_hz[np.argmax(wrong.any(axis=1))]:g} Hz"
    return None


TRAITS = "it does what its traits say to other code"
Law = tuple[str, Callable[[Any], str | None]]  # what it means, and what gives what is wrong with a plug-in, or None
LAWS: dict[str, dict[str, Law]] = {  # by kind and name
    "buffer": {"traits": ("it holds what came and has not left, as its traits say", holds_what_came)},
    "energy law": {
        "own": ("what a device spends does not depend on who else is asked about", asks_each_alone),
        "most": ("most_j is exceeded at no frequency of its range", knows_its_most),
        "pieces": (
            "its pieces, if it states any, cover all frequencies and say what energy_j says",
            states_its_pieces,
        ),
    },
    "cost": {"traits": (TRAITS, charges_as_it_says)},
    "channel": {"mean": ("powers have mean 1: the mean gain is the device's β", plays)},
    "mobility": {"traits": (TRAITS, plays)},
    "availability": {"traits": (TRAITS, plays)},
    "harvest": {"traits": ("its battery, if there is one, has a capacity, and a charge within it", plays)},
    "faults": {"traits": (TRAITS, plays)},
    "local_training": {"alone": ("what a device does depends on no other device of the round", trains_alone)},
    "server_update": {"bits": ("it says how many bits an update takes", sends_bits)},
}
