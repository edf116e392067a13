"""feelstream: dynamic device scheduling for federated edge learning with streaming data."""

__version__ = "0.1.0"

from feelstream.errors import FeelstreamError
from feelstream.model.system import System
from feelstream.policies.base import Decision, Observation, Outcome, Policy, RoundPlan
from feelstream.run import Run, read, simulate
from feelstream.scenario import Scenario
from feelstream.scenario.files import load, preset, presets, to_toml
from feelstream.verification import verify

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
    "load",
    "preset",
    "presets",
    "read",
    "simulate",
    "to_toml",
    "verify",
]
