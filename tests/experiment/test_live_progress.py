"""The bar moves while a run is under way, not only when it is over.

The policy of the run takes a token from a pipe before every round, and the bar's own calls put the tokens in: one each
until the bar has moved, then as many as there are rounds. So the run cannot end before the bar has moved, unless the
bar has been called once for every round and stood still all the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import feelstream as fs
from feelstream.experiment import Arm, Plan, Progress, execute

ROUNDS = 300
PATIENT = """
import os
import select
from pathlib import Path

import numpy as np
import feelstream as fs


class Patient(fs.Policy):
    def select(self, state, observation, rng):
        tokens = os.open(Path(__file__).with_name("tokens"), os.O_RDWR)
        select.select([tokens], [], [], 60.0)  # a bar that is never called must not hold the run for ever
        os.read(tokens, 1)
        os.close(tokens)
        plan = observation.plan(self.size)
        return fs.Decision(np.flatnonzero(plan.feasible)[: self.size], plan)
"""


class Tokens:
    """What the bar was told, and the pipe that its calls put tokens into."""

    def __init__(self, pipe: int) -> None:
        self.pipe, self.seen = pipe, list[int]()

    def told(self, rounds_done: int) -> None:
        moved_before = self.moved
        self.seen.append(rounds_done)
        if self.moved and not moved_before:
            os.write(self.pipe, b"." * ROUNDS)
        elif not self.moved:
            os.write(self.pipe, b".")

    @property
    def moved(self) -> bool:
        return any(0 < rounds < ROUNDS for rounds in self.seen)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "patient.py").write_text(PATIENT)
    overrides = [f"policy.name={tmp_path / 'patient.py'}:Patient", f"system.rounds={ROUNDS}", "learning.engine=none"]
    return Plan("live", (Arm("patient", fs.preset("tiny", overrides)),), (0,))


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[Tokens]:
    os.mkfifo(tmp_path / "tokens")
    pipe = os.open(tmp_path / "tokens", os.O_RDWR)
    yield Tokens(pipe)
    os.close(pipe)


@pytest.mark.slow
def test_a_plan_tells_the_rounds_of_a_run_under_way(plan: Plan, tokens: Tokens, tmp_path: Path) -> None:
    def progress(state: Progress) -> None:
        assert (state.runs, state.rounds) == (1, ROUNDS)
        assert state.rounds_done == ROUNDS or not state.runs_done
        tokens.told(state.rounds_done)

    results = execute(plan, tmp_path / "out", workers=1, progress=progress)
    assert results.failures == []
    assert tokens.moved
    assert tokens.seen == sorted(tokens.seen)
    assert tokens.seen[-1] == ROUNDS
