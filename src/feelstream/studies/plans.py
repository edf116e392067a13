"""What a study plans: arms, which are labelled scenarios, times seeds."""

from feelstream.errors import ScenarioError
from feelstream.experiment import Arm, Plan
from feelstream.experiment.comparison import arms
from feelstream.experiment.tuning import schedule_only, weight_of, with_weight
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES
from feelstream.run import simulate
from feelstream.scenario import Scenario
from feelstream.scenario.fields import flat
from feelstream.scenario.files import load, preset, presets
from feelstream.scenario.overrides import AnyOverride, Override, as_text, parsed, placed

__all__ = [
    "POLICIES", "AnyOverride", "Arm", "Override", "Plan", "Scenario", "ScenarioError", "arms", "as_text",
    "did_you_mean", "flat", "load", "parsed", "placed", "preset", "presets", "schedule_only", "simulate", "weight_of",
    "with_weight",
]  # fmt: skip
