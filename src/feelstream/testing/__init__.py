"""Checks that users run on plug-ins of their own: `feelstream check`, or `check` in a test."""

from feelstream.testing.kinds import KINDS, check
from feelstream.testing.player import Result

__all__ = ["KINDS", "Result", "check"]
