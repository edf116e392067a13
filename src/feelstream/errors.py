"""Errors a user can act on, and how any error becomes a sentence. The command line prints it and exits with 2."""

from __future__ import annotations

import errno
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from traceback import extract_tb
from typing import Any

LONGEST = 1000  # characters of a message; what a user typed may be anything


class FeelstreamError(Exception):
    """Something the user can put right; the message says what and how.

    It is one line without control characters, whatever names and values it quotes.
    """

    def __str__(self) -> str:
        words = " ".join(super().__str__().split())
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 250]} … {text[-240:]}"


class ScenarioError(FeelstreamError, ValueError):
    """A scenario field is wrong; the message names the field and what is allowed."""


class DataError(FeelstreamError):
    """A data set cannot be had, or is not what it should be."""


class RunError(FeelstreamError):
    """A run directory cannot be used as asked."""


class PluginError(FeelstreamError):
    """A plug-in broke the contract of its kind; the message names it and says what it did."""


class BusyError(RunError):
    """Another process holds the directory."""


class EngineError(FeelstreamError):
    """The learning engine asked for cannot serve the model asked for."""


def needed(module: str, extra: str, name: str = "") -> Any:
    """A module of an extra, or a sentence that says how to get it. name: of the package, if not that of the extra."""
    try:
        return import_module(module)
    except ImportError as problem:
        said = f"{name or extra} is not installed; get it with pip install {packages_of(extra)}"
        raise FeelstreamError(said) from problem


def packages_of(extra: str) -> str:
    """The packages of an extra of ours, as pip takes them: where this one came from need not be known for that."""
    try:
        required = (text.partition(";") for text in requires("feelstream") or ())
    except PackageNotFoundError:  # a copy of the sources that was never installed
        required = []
    found = [package.strip() for package, _, when in required if re.search(rf"extra == ['\"]{extra}['\"]", when)]
    return " ".join(f"'{package}'" for package in found) or f"'feelstream[{extra}]'"


def sentence(problem: BaseException) -> str:
    """The first line of an error, with its kind if it is not ours."""
    text = _text(problem).strip().splitlines()
    if text and isinstance(problem, FeelstreamError):
        return " ".join(text)
    kind = type.__dict__["__name__"].__get__(type(problem))  # a metaclass may have another idea of its name
    return f"{kind}{': ' + ' '.join(text[0].split()) if text else ''}"


def _text(problem: BaseException) -> str:
    """What an error says; nothing where even that fails, as someone's own may."""
    try:
        return str(problem)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""


def sentence_and_place(problem: BaseException, *not_here: str) -> str:
    """One sentence; for an error that is not ours, with the place where it came up (never in files named so)."""
    if isinstance(problem, FeelstreamError | SyntaxError):  # a SyntaxError names its own place
        return sentence(problem)
    frames = [
        frame for frame in extract_tb(problem.__traceback__) if not any(part in frame.filename for part in not_here)
    ]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return sentence(problem) + place


def is_disk_full(problem: BaseException | None) -> bool:
    """Whether this error, or one that it came from, is that of a full disk."""
    while problem is not None:
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "No space left on device" in _text(problem):  # Polars reports some of its own as text only
            return True
        problem = problem.__cause__ or problem.__context__
    return False
