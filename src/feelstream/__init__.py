"""feelstream: dynamic device scheduling for federated edge learning with streaming data."""

from feelstream.errors import FeelstreamError
from feelstream.model.system import System
from feelstream.policies.base import Decision, Observation, Outcome, Policy, RoundPlan
from feelstream.run import Run, read, simulate
from feelstream.scenario import Scenario
from feelstream.scenario.files import load, preset, presets, to_toml
from feelstream.verification import verify
from feelstream.version import __version__

__all__ = [
    "Decision",
    "FeelstreamError",
    "Observation",
    "Outcome",
    "Policy",
    "RoundPlan",
    "Run",
    "Scenario",
    "System",
    "__version__",
    "load",
    "preset",
    "presets",
    "read",
    "simulate",
    "to_toml",
    "verify",
]
