"""What a study plans: arms, which are labelled scenarios, times seeds."""

from feelstream.errors import ScenarioError
from feelstream.experiment import Arm, Plan
from feelstream.experiment.comparison import arms
from feelstream.experiment.tuning import TUNING_SEEDS, energy_j, match_energy, weight_of
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES
from feelstream.scenario import Scenario
from feelstream.scenario.fields import flat
from feelstream.scenario.files import load, preset, presets
from feelstream.scenario.overrides import AnyOverride, Override, as_text, parsed, placed

__all__ = [
    "POLICIES", "TUNING_SEEDS", "AnyOverride", "Arm", "Override", "Plan", "Scenario", "ScenarioError", "arms",
    "as_text", "did_you_mean", "energy_j", "flat", "load", "match_energy", "parsed", "placed", "preset", "presets",
    "weight_of",
]  # fmt: skip
