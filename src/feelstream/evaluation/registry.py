"""Which evaluators there are, and how a name in learning.evaluators becomes one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from feelstream.errors import ScenarioError
from feelstream.evaluation.contract import Evaluator, FunctionEvaluator
from feelstream.evaluation.ours import Classes, Devices, Stream, Test
from feelstream.plugins import Kind, in_a_sentence


def _is_one(found: Any) -> bool:
    return issubclass(found, Evaluator) if isinstance(found, type) else callable(found)


def _made(found: Any, name: str) -> Evaluator:
    """The evaluator of that name; ScenarioError where a class cannot be made."""
    one = (
        found
        if isinstance(found, Evaluator)
        else _of_class(found, name)
        if isinstance(found, type)
        else FunctionEvaluator(found)
    )
    one.name = name
    return one


def _of_class(found: type[Evaluator], name: str) -> Evaluator:
    if missing := ", ".join(sorted(found.__abstractmethods__)):
        raise ScenarioError(f"'{name}' lacks {missing}, which every class of feelstream.evaluators must have")
    try:
        return found()
    except Exception as problem:  # a user's class may raise anything
        raise ScenarioError(f"'{name}' cannot be made without arguments: {in_a_sentence(problem)}") from problem


EVALUATORS: Kind[Any] = Kind(
    "evaluator",
    "evaluators",
    Evaluator,
    {"test": Test, "stream": Stream, "devices": Devices, "classes": Classes},
    _is_one,
    _made,
)


def _name_of(given: Any) -> Any:
    """The name of a class or function of the user's own: where it lives."""
    if isinstance(given, str) or not callable(given):
        return given
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if not (module and name) or "<" in name:
        raise ValueError(f"must be a name, or a function or class at the top of a module, not {given!r:.60}")
    return f"{module}:{name}"


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("each evaluator must be named once")
    return names


EvaluatorName = Annotated[str, BeforeValidator(_name_of), EVALUATORS]
EvaluatorNames = Annotated[
    tuple[EvaluatorName, ...],
    AfterValidator(_each_once),
    Field(description="measured after a round: test, stream, devices, classes, or your own as file.py:function"),
]
