"""The contract of everything that changes around the devices from round to round.

A process is a frozen settings object picked by name, `[world.NAME] kind = "…"`. It gives one value per device and
round; all that it remembers is its state, a dictionary of arrays of fixed shape that checkpoints keep:

    state         = process.init(context, rng)
    values, state = process.step(round, state, context, rng)      rounds 1, 2, … one by one

`rng` is keyed by (seed, purpose, round), so two policies with one seed are run in the same world.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Frozen, Ids, Reals
from feelstream.guard import STATE, Array, Law, One, Out, Pair, ask
from feelstream.plugins import Plugin
from feelstream.tables import MOST_ROUNDS, TableFile, Wanted

State = dict[str, NDArray]
Step = tuple[NDArray, State]  # the values of a round, (K,), and the next state
Place = Literal["umi", "uma", "rma"]  # the scenes of 3GPP TR 38.901


@dataclass(frozen=True)
class Links(Frozen):
    """How the devices stand to the base station, at the origin, when a round begins.

    Attributes:
        place: What stands around them, as the law of path loss calls it.
        carrier_hz: Of the radio.
        position_m: (2, K).
        velocity_m_s: (2, K).
        seen: (K,) who has a line of sight.
    """

    place: Place
    carrier_hz: float
    position_m: Reals
    velocity_m_s: Reals
    seen: Flags


@dataclass(frozen=True)
class Recorded(Frozen):
    """A table of (round, device, value), read once a run: by round, within one in the order of the file."""

    rounds: Ids
    devices: Ids
    values: Reals

    def of(self, round: int) -> tuple[Ids, Reals]:
        """The devices that have a row in this round, and their values."""
        rows = slice(*np.searchsorted(self.rounds, (round, round + 1)))
        return self.devices[rows], self.values[rows]


@dataclass(frozen=True)
class ProcessContext(Frozen):
    """What a process is run for: the devices and their constants, the length of a round and of the run.

    Attributes:
        devices: K.
        rounds: T.
        round_s: T_rd.
        frequency_low_hz, frequency_high_hz: (K,) the range of each device's CPU.
        gain_low_db, gain_high_db: (K,) the range of each device's mean gain.
        links: For a channel in a round, where the mobility says where devices are.
        recordings: What `recorded` has read, by field.
    """

    devices: int
    rounds: int
    round_s: float
    frequency_low_hz: Reals
    frequency_high_hz: Reals
    gain_low_db: Reals
    gain_high_db: Reals
    links: Links | None = None
    recordings: dict[str, Recorded] = field(default_factory=dict, compare=False, repr=False)

    def recorded(self, field: str, path: str, value: Wanted) -> Recorded:
        """Of a .csv or .parquet file with the columns round, device and that of the value, which a field names.

        It is read when the run is made, and never again during it.
        """
        if field not in self.recordings:
            device = Wanted("device", 0, self.devices - 1, whole=True)
            wanted = Wanted("round", 1, MOST_ROUNDS, whole=True), device, value
            rounds, devices, values = TableFile(field, path).columns(wanted)
            order = np.argsort(rounds, kind="stable")
            self.recordings[field] = Recorded(rounds[order], devices[order], values[order].astype(np.float64))
        return self.recordings[field]


def gives(values: Array, *laws: Law) -> dict[str, Out]:
    """The contract of a process with such values."""
    return {"init": Out(STATE), "step": Out(Pair(values, STATE), *laws), "links": Out(One(Links, none=True))}


class Process(Plugin, ABC):
    """One value per device and round."""

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        """The state before the first round; none for a process without memory."""
        return {}

    @abstractmethod
    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        """The values of this round, (K,), and the next state."""


def by_itself(process: Process, devices: int = 500, rounds: int = 40) -> tuple[NDArray[Any], ProcessContext]:
    """(rounds, devices) the values of a process for devices that differ, and the context in which it was played."""
    rng = np.random.default_rng(devices)
    low_hz, low_db = rng.uniform(1e8, 5e8, devices), rng.uniform(-10, 0, devices)
    high_hz, high_db = low_hz + rng.uniform(0, 1e9, devices), low_db + rng.uniform(0, 8, devices)
    context = ProcessContext(devices, rounds, 4.0, low_hz, high_hz, low_db, high_db)
    state, found = ask(process, "init", context, np.random.default_rng(1), at=0, K=devices), []
    for t in range(1, rounds + 1):
        values, state = ask(process, "step", t, state, context, np.random.default_rng([2, t]), at=t, K=devices)
        found.append(values)
    return np.array(found), context
