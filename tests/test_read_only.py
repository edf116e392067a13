"""No plug-in can write to what it is handed: its run ends with a sentence that names it, the next run is unharmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feelstream as fs
from feelstream.data.streaming import sharing
from feelstream.data.streaming.arrivals import Bursts, TruncatedNormal
from feelstream.data.streaming.buffers import FifoStore, UseOnceStore
from feelstream.data.streaming.partition import IID
from feelstream.environment.availability import ComesAndGoes
from feelstream.environment.channel import AutoregressiveChannel
from feelstream.environment.faults import Breakdowns
from feelstream.environment.frequency import FrequencyLevels
from feelstream.environment.harvest import SolarHarvest
from feelstream.environment.mobility import RandomDirection
from feelstream.evaluation.ours import Classes, Stream
from feelstream.evaluation.samples import Predict
from feelstream.learning.local.sgd import Sgd
from feelstream.learning.probes.ours import GradientNorm
from feelstream.learning.server.fedopt import FedAdam
from feelstream.learning.server.smoothing import Smoothed
from feelstream.model.costs import AsSettings
from feelstream.model.energy import Cubic
from feelstream.model.importance import METRICS
from feelstream.plugins import Plugin
from feelstream.policies import POLICIES
from feelstream.policies.base import Policy

Balanced, Joint, Asking = (POLICIES.ours[name] for name in ("balanced", "lyapunov_joint", "update_norm"))
BATTERY = "world.harvest.kind=solar"
# Every method that a plug-in may have: whose, and a setting with which it is asked.
METHODS: list[tuple[Any, str, str]] = [
    (METRICS.ours, "combined", "policy.name=lyapunov"),
    (Balanced, "init", "policy.name=balanced"),
    (Balanced, "select", "policy.name=balanced"),
    (Balanced, "update", "policy.name=balanced"),
    (Policy, "start", "policy.name=random"),
    (Policy, "transmit", "policy.name=random"),
    (Joint, "transmit", "policy.name=lyapunov_joint"),
    (Policy, "most_power_w", BATTERY),
    (Asking, "asks", "policy.name=update_norm"),
    (GradientNorm, "measure", "policy.name=gradient_norm"),
    (Sgd, "train", "learning.local.momentum=0.5"),
    (Sgd, "update", "learning.local.keep=scaffold"),
    (FedAdam, "step", "learning.server.kind=fedadam"),
    (Smoothed, "handed_out", "learning.server.kind=smoothed"),
    (Stream, "evaluate", 'learning.evaluators=["test", "stream"]'),
    (Classes, "evaluate", 'learning.evaluators=["test", "classes"]'),
    (Cubic, "energy_j", "policy.name=random"),
    (Cubic, "most_j", BATTERY),
    (Cubic, "pieces", "policy.name=lyapunov_joint"),
    (AsSettings, "costs", "policy.name=random"),
    (IID, "split", "data.partition.kind=iid"),
    (TruncatedNormal, "times", "data.arrivals.kind=truncated_normal"),
    (Bursts, "counts", "data.arrivals.kind=bursts"),
    (FifoStore, "join", "data.buffer.kind=fifo"),
    (UseOnceStore, "use", "data.buffer.kind=use_once"),
    (FrequencyLevels, "step", "world.frequency.kind=levels"),
    (RandomDirection, "step", "world.mobility.kind=random_direction"),
    (AutoregressiveChannel, "step", "world.channel.kind=ar1"),
    (ComesAndGoes, "step", "world.availability.kind=markov"),
    (SolarHarvest, "step", BATTERY),
    (Breakdowns, "step", "world.faults.kind=markov"),
]
CASES = [pytest.param(*case, id=f"{getattr(case[0], '__name__', 'metric')}.{case[1]}") for case in METHODS]
Look = Callable[[tuple[Any, ...]], None]


def small(*settings: str) -> fs.Scenario:
    return fs.preset("tiny", ["system.rounds=4", "learning.local.steps=5", *settings])


def play(scenario: fs.Scenario) -> list[float]:
    sharing._last = None  # so that the arrivals are planned again
    return fs.simulate(scenario, seed=0).rounds["accuracy"].to_list()


def look_first(monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, look: Look) -> None:
    """Let the method look at what it is handed before it does its work."""
    original = owner[method] if isinstance(owner, dict) else getattr(owner, method)

    @wraps(original)
    def looking(*arguments: Any) -> Any:
        look(arguments)
        return original(*arguments)

    if isinstance(owner, dict):
        monkeypatch.setitem(owner, method, looking)
    else:
        monkeypatch.setattr(owner, method, looking)


def arrays_in(given: Any, path: str, depth: int = 4) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays that can be reached from what is handed in, with the way there."""
    if isinstance(given, np.ndarray):
        yield path, given
    elif isinstance(given, dict):
        for name in list(given):
            yield from arrays_in(given[name], f"{path}[{name}]", depth)
    elif isinstance(given, Predict):
        yield f"{path}.theta", given.theta
        yield from arrays_in(given("test"), f"{path}(test)", depth - 1)
        yield from arrays_in(given("train", np.arange(5)), f"{path}(train)", depth - 1)
    elif depth and type(given).__module__.startswith("feelstream.") and not isinstance(given, Plugin):
        named = [
            name for name in dir(type(given)) if isinstance(getattr(type(given), name), cached_property | property)
        ]
        for name in sorted({*getattr(given, "__dataclass_fields__", ()), *named}):
            if name not in ("engine", "learner"):  # the engine itself is nobody's array
                yield from arrays_in(getattr(given, name), f"{path}.{name}", depth - 1)


def stays(arguments: tuple[Any, ...], path: str, array: np.ndarray) -> bool:
    """Whether who looks again meets the same memory: what is made anew for everyone may be written to."""
    again = [other for place, given in enumerate(arguments) for at, other in arrays_in(given, str(place)) if at == path]
    return any(np.shares_memory(array, other) for other in again)


@pytest.mark.parametrize(("owner", "method", "setting"), CASES)
def test_what_stays_is_read_only(owner: Any, method: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, open_to_all = set(), set()

    def look(arguments: tuple[Any, ...]) -> None:
        for place, given in enumerate(arguments):
            for path, array in arrays_in(given, str(place)):
                seen.add(path)
                if array.flags.writeable and array.size and stays(arguments, path, array):
                    open_to_all.add(path)

    scenario = small(setting)
    look_first(monkeypatch, owner, method, look)
    play(scenario)
    assert seen, "it was handed no array, or not asked at all"
    assert not open_to_all


@pytest.mark.parametrize(("owner", "method", "setting"), CASES)
def test_who_writes_is_named(owner: Any, method: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = small(setting)
    before = play(scenario)

    def write(arguments: tuple[Any, ...]) -> None:
        for place, given in enumerate(arguments):
            for _, array in arrays_in(given, str(place)):
                if array.size and not array.flags.writeable:
                    array[...] = 0

    with monkeypatch.context() as patched:
        look_first(patched, owner, method, write)
        with pytest.raises(fs.FeelstreamError, match=r"'[^']+' failed.*read-only, so change a copy"):
            play(scenario)
    assert play(scenario) == before


def test_an_evaluator_that_centres_the_test_set_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, it took the data set of the whole process with it: the next run ended at an accuracy of 0.009."""
    monkeypatch.chdir(tmp_path)
    Path("centred.py").write_text(
        "def centred(predict, test, held, round):\n    x = test.x\n    x -= x.mean()\n    return {'mean': x.mean()}\n"
    )
    before = play(small())
    with pytest.raises(fs.FeelstreamError, match=r"learning\.evaluators: 'centred.py:centred' failed: .*read-only"):
        play(small('learning.evaluators=["test", "centred.py:centred"]'))
    assert play(small()) == before
