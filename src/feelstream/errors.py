"""Errors a user can act on. The command line prints them as one sentence and exits with 2."""

from __future__ import annotations


class FeelstreamError(Exception):
    """Something the user can put right; the message says what and how."""


class ScenarioError(FeelstreamError, ValueError):
    """A scenario field is wrong; the message names the field and what is allowed."""


class DataError(FeelstreamError):
    """A data set cannot be had, or is not what it should be."""


class RunError(FeelstreamError):
    """A run directory cannot be used as asked."""


class BusyError(RunError):
    """Another process holds the directory."""


class EngineError(FeelstreamError):
    """The learning engine asked for cannot serve the model asked for."""
