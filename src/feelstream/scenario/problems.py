"""What pydantic found wrong with a scenario, as one sentence that names the field and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from feelstream.plugins import Plugin, did_you_mean


def explain(
    problem: ValidationError,
    prefix: str = "",
    model: type[BaseModel] | None = None,
    meant: Callable[[str], str] | None = None,
) -> str:
    """The first problem that pydantic found, as one sentence that names the field.

    model: whose fields they are; meant: the field that an unknown one stands for, empty where nobody knows.
    """
    errors = problem.errors()
    # A field of several types has a complaint of each; the one that went deepest into the value is the one to tell.
    same = [error for error in errors if _field(error) == _field(errors[0])]
    error = max(same, key=lambda each: len(each["loc"]))
    field = prefix + _field(error)
    inner = error.get("ctx", {}).get("error")
    if isinstance(inner, ValidationError):
        return explain(inner, f"{field}.", model, meant)
    if error["type"] == "extra_forbidden":
        other = meant(field) if meant else ""
        instead = f"; did you mean '{other}'?" if other else _siblings(field, model)
        return f"{field}: there is no such field{instead}"
    if inner is not None:
        message = str(inner)
        if message.startswith("."):  # a check over a whole table names the field itself
            return f"{field}{message}" if field else message[1:]
        return f"{field}: {message}" if field else message
    field += "".join(f"[{part}]" for part in error["loc"] if isinstance(part, int))
    if error["type"] == "missing":
        return f"{field} is missing"
    words = [each for each in same if each["type"] == "literal_error"] if isinstance(error["input"], str) else []
    allowed = " or ".join(dict.fromkeys(map(_allowed, [error, *words])))
    return f"{field}: must be {allowed}, not {_shown(error['input'])}"


def _field(error: ErrorDetails) -> str:
    """The path of the field, without the names that pydantic gives to the types of a union."""
    *path, last = (part for part in error["loc"] if isinstance(part, str)) if error["loc"] else ("",)
    own = [part for part in path if part.isidentifier()]
    return ".".join([*own, last] if last.isidentifier() or error["type"] == "extra_forbidden" else own)


def _allowed(error: ErrorDetails) -> str:
    """What pydantic's complaint allows, in the words of a scenario file."""
    limits = error.get("ctx", {})
    words = {
        "float_type": "a number",
        "finite_number": "a finite number",
        "int_type": "a whole number",
        "string_type": "text",
        "bool_type": "true or false",
        "tuple_type": "a list",
        "list_type": "a list",
        "model_type": "a table of fields",
        "is_instance_of": "a table of fields",
        "model_attributes_type": "a table of fields",
        "greater_than": "greater than {gt:g}",
        "greater_than_equal": "at least {ge:.10g}",
        "less_than": "less than {lt:g}",
        "less_than_equal": "at most {le:.10g}",
        "too_long": "a list of at most {max_length}",
        "too_short": "a list of at least {min_length}",
    }
    if error["type"] in words:
        return words[error["type"]].format(**limits)
    return error["msg"].removeprefix("Input should be ")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _siblings(field: str, model: Any) -> str:
    """What the unknown field may have been meant to be."""
    *sections, last = field.split(".")
    for section in sections:
        found = getattr(model, "model_fields", {}).get(section)
        model = found.annotation if found else None
    known = list(getattr(model, "model_fields", {}))
    if not known or issubclass(model, Plugin):
        return ""
    return f"; {did_you_mean(last, known)}allowed: {', '.join(known)}"
