"""feelstream: dynamic device scheduling for federated edge learning with streaming data.

import feelstream as fs

run = fs.simulate("paper-iid", V=0.1, progress=True)   # one run: run.summary(), run.plot(), run.model()
found = fs.compare(["lyapunov", "random"], "paper-iid", seeds=10)   # found.table(), found.plot(), found.report()
swept = fs.sweep("paper-iid", {"V": [0.01, 0.1, 1]}, seeds=10)   # the same at every value of V
tuned = fs.tune("paper-iid")   # tuned.weight, the V that favours learning most and keeps the energy budget
"""

from __future__ import annotations

from feelstream.version import __version__

TYPE_CHECKING = False  # that of typing, without importing it: a command decides what an interrupt does after this file
if TYPE_CHECKING:
    from typing import Any

    from feelstream.api import Comparison, Tuning, bound, compare, read, simulate, sweep, tune, verify
    from feelstream.display.quantities import Quantity
    from feelstream.errors import FeelstreamError
    from feelstream.evaluation.contract import EvaluationContext, Evaluator, evaluator
    from feelstream.loop.changes import Change
    from feelstream.model.system import System
    from feelstream.model.transmission import Transmission
    from feelstream.policies.base import Decision, Observation, Outcome, Policy, RoundPlan
    from feelstream.policies.ranking import Ranking, Term
    from feelstream.run import Run
    from feelstream.run.callbacks import Callback
    from feelstream.scenario import Scenario
    from feelstream.scenario.files import load, preset, presets, to_toml

__all__ = [
    "Callback",
    "Change",
    "Comparison",
    "Decision",
    "EvaluationContext",
    "Evaluator",
    "FeelstreamError",
    "Observation",
    "Outcome",
    "Policy",
    "Quantity",
    "Ranking",
    "RoundPlan",
    "Run",
    "Scenario",
    "System",
    "Term",
    "Transmission",
    "Tuning",
    "__version__",
    "bound",
    "compare",
    "evaluator",
    "load",
    "preset",
    "presets",
    "read",
    "simulate",
    "sweep",
    "to_toml",
    "tune",
    "verify",
]

# Where each name lives. It is imported when it is first used, so that `feelstream --version` need not wait for all.
_HOMES = {
    "feelstream.api": ("Comparison", "Tuning", "bound", "compare", "read", "simulate", "sweep", "tune", "verify"),
    "feelstream.errors": ("FeelstreamError",),
    "feelstream.evaluation.contract": ("EvaluationContext", "Evaluator", "evaluator"),
    "feelstream.model.transmission": ("Transmission",),
    "feelstream.model.system": ("System",),
    "feelstream.policies.base": ("Decision", "Observation", "Outcome", "Policy", "RoundPlan"),
    "feelstream.policies.ranking": ("Ranking", "Term"),
    "feelstream.display.quantities": ("Quantity",),
    "feelstream.run": ("Run",),
    "feelstream.run.callbacks": ("Callback",),
    "feelstream.loop.changes": ("Change",),
    "feelstream.scenario": ("Scenario",),
    "feelstream.scenario.files": ("load", "preset", "presets", "to_toml"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME_OF:  # with name and module, so that Python says what may have been meant
        this = import_module("feelstream")
        raise AttributeError(f"module 'feelstream' has no attribute '{name}'", name=name, obj=this)

    found = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
