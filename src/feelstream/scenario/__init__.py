"""Scenarios: every setting of a run with its unit and range, as a type (settings) and as TOML (files, presets)."""

from feelstream.scenario.settings import LearningSettings, Scenario

__all__ = ["LearningSettings", "Scenario"]
