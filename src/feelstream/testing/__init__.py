"""Checks that users run on plug-ins of their own: `feelstream check`, or `check` in a test."""

from feelstream.testing.contract import Result
from feelstream.testing.kinds import KINDS, check

__all__ = ["KINDS", "Result", "check"]
