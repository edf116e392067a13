"""Evaluators that break their contract, each in one way."""

from __future__ import annotations

from typing import Any

import numpy as np

from feelstream import Evaluator


class Forgetful(Evaluator):
    """Remembers outside its state."""

    calls = 0

    def evaluate(self, context: Any, state: Any) -> Any:
        type(self).calls += 1
        return {"calls": self.calls}, state


class Careless(Evaluator):
    """Writes where it must not."""

    def init(self, devices: int, classes: int) -> Any:
        return {"seen": np.zeros(1)}

    def evaluate(self, context: Any, state: Any) -> Any:
        state["seen"] += 1
        return {"seen": state["seen"][0]}, state


class Wordy(Evaluator):
    """Remembers what no checkpoint can keep."""

    def evaluate(self, context: Any, state: Any) -> Any:
        return {"round": context.round}, {"said": "a word"}


def infinite(predict: Any, test: Any, held: Any, round: int) -> Any:
    return {"x": -np.inf}


BROKEN_EVALUATORS = [(Forgetful(), "repeatable"), (Careless(), "runs"), (Wordy(), "contract"), (infinite, "contract")]
