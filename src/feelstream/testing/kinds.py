"""All kinds of plug-ins that can be tried, and which of them something is."""

from __future__ import annotations

from inspect import signature
from typing import Any

from pydantic import ValidationError

from feelstream.errors import ScenarioError
from feelstream.evaluation import Evaluator
from feelstream.plugins import Kind, Plugin, did_you_mean, import_object
from feelstream.scenario.fields import kinds
from feelstream.testing.player import Result, check_kind

EVALUATOR_ARGUMENTS = 4  # predict, test, held, round
KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in kinds().values()}


def check(plugin: Any, kind: str | None = None) -> list[Result]:
    """Try a plug-in, an object with its settings or a function, on awkward cases; one result per promise of its kind.

    >>> from feelstream.data.streaming.buffers import Keep
    >>> all(result.ok for result in check(Keep()))
    True
    """
    return check_kind(plugin, KINDS[kind] if kind else kind_of(type(plugin) if isinstance(plugin, Plugin) else plugin))


def kind_of(found: Any) -> Kind[Any]:
    """The kind of a class, or of a function: an evaluator has four arguments, local training more, a metric fewer."""
    if isinstance(found, Evaluator):
        return KINDS["evaluator"]
    if callable(found) and not isinstance(found, type):
        try:
            arguments = list(signature(found).parameters)
        except (TypeError, ValueError):  # a function whose signature is not known
            arguments = []
        if arguments[:1] == ["predict"] and len(arguments) < EVALUATOR_ARGUMENTS:
            raise ScenarioError(
                f"'{getattr(found, '__name__', found)}' is a probe, of (predict, samples); run the policy that needs it"
            )
        if len(arguments) == EVALUATOR_ARGUMENTS:
            return KINDS["evaluator"]
        return KINDS["local_training" if len(arguments) > EVALUATOR_ARGUMENTS else "metric"]
    for kind in KINDS.values():
        if kind.is_one(found):
            return kind
    bases = ", ".join(kind.base.__name__ for kind in KINDS.values() if kind.has_settings)
    raise ScenarioError(
        f"{found!r:.100} is not a plug-in: it must be a class derived from one of {bases}, or a function"
    )


def named(name: str, kind: str | None = None) -> tuple[Any, Kind[Any]]:
    """What `file.py:Name`, `package.module:Name` or a short name stands for, by its default settings; and its kind."""
    wanted = _kind_of_name(name) if kind is None else KINDS[kind]
    found = wanted.lookup(name)
    if not isinstance(found, type):
        return found, wanted
    try:
        return found(), wanted
    except (ValidationError, TypeError) as problem:
        raise ScenarioError(f"'{name}' cannot be made: give each of its fields a default") from problem


def _kind_of_name(name: str) -> Kind[Any]:
    known = [kind for kind in KINDS.values() if name in kind.names()]
    if len(known) > 1:
        raise ScenarioError(f"'{name}' is ambiguous: say which with --kind {' or --kind '.join(k.name for k in known)}")
    if known:
        return known[0]
    if ":" not in name:
        close = did_you_mean(name, [known for kind in KINDS.values() for known in kind.names()])
        raise ScenarioError(f"'{name}' is not known; {close}give the name of a plug-in, or your own as file.py:Name")
    return kind_of(import_object(name))
