"""All fields of a scenario that can be set, as it stands: which there are depends on the plug-ins that it picks.

What is wrong with one becomes a sentence that names it and what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from feelstream.errors import ScenarioError
from feelstream.plugins import Kind, Plugin, near_or_all

Path = tuple[str, ...]


class Leaf(NamedTuple):
    """One field: where it is, its declaration, and what it is set to; None where it has its default."""

    path: Path
    about: FieldInfo
    value: Any

    @property
    def kind(self) -> Kind[Any] | None:
        """Of the plug-in that is picked here, if one is, from the annotation; of a tuple, that of its entries."""
        within = (each for entry in get_args(self.about.annotation) for each in getattr(entry, "__metadata__", ()))
        return next((each for each in (*self.about.metadata, *within) if isinstance(each, Kind)), None)

    @property
    def model(self) -> type[BaseModel] | None:
        """The class of its own fields, where it is a table; ScenarioError where that names no class."""
        if isinstance(self.value, BaseModel):
            return type(self.value)
        if self.kind is None or not self.kind.has_settings:
            inner = self.about.annotation
            return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
        tag = self.kind.tag_field
        name = self.value.get(tag) if isinstance(self.value, Mapping) else None
        if isinstance(name, type):
            return name
        try:
            return self.kind.lookup(name) if isinstance(name, str) else self.kind.default
        except ScenarioError as problem:
            raise ScenarioError(f"{'.'.join(self.path)}.{tag}: {problem}") from problem

    @property
    def inner(self) -> Iterator[Leaf]:
        """Its own fields, where it is a table."""
        model = self.model
        for name, about in (model.model_fields if model else {}).items():
            given = self.value.get(name) if isinstance(self.value, Mapping) else getattr(self.value, name, None)
            yield Leaf((*self.path, name), about, given)


def root(model: type[BaseModel], given: Any = None) -> Leaf:
    """All of a class of settings. given: an object, a table, or None for the defaults."""
    return Leaf((), FieldInfo(annotation=model), given)


def leaves(model: type[BaseModel], given: Any = None) -> Iterator[Leaf]:
    """Every field of a class of settings and of the tables in it, as in `root`.

    >>> from feelstream.scenario import Scenario
    >>> [".".join(leaf.path) for leaf in leaves(Scenario)][:3]
    ['system', 'system.devices', 'system.rounds']
    """
    return _below(root(model, given))


def _below(leaf: Leaf) -> Iterator[Leaf]:
    for each in leaf.inner:
        yield each
        yield from _below(each)


def leaf_at(path: Path, given: Any, model: type[BaseModel] | None = None) -> Leaf | None:
    """The field of a scenario with this path; None where there is none, or below a table whose name is not known."""
    leaf: Leaf | None = root(model or scenario_class(), given)
    for name in path:
        try:
            leaf = next((each for each in leaf.inner if each.path[-1] == name), None)
        except ScenarioError:  # the name is refused in due course, with the whole table
            return None
        if leaf is None:
            return None
    return leaf


def scenario_class() -> type[BaseModel]:
    from feelstream.scenario.settings import Scenario  # which itself is changed by its fields

    return Scenario


@cache
def kinds() -> dict[Path, Kind[Any]]:
    """The kinds of plug-ins, each by the field of a scenario where one is picked."""
    return {leaf.path: kind for leaf in leaves(scenario_class()) if (kind := leaf.kind)}


def first_problem(
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
        return first_problem(inner, f"{field}.", model, meant)
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


def _siblings(field: str, model: type[BaseModel] | None) -> str:
    """What the unknown field may have been meant to be."""
    *sections, last = field.split(".")
    above = leaf_at(tuple(sections), None, model) if model else None
    if above is None or above.model is None or issubclass(above.model, Plugin):
        return ""
    return f"; {near_or_all(last, list(above.model.model_fields))}"


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with keys `section.field`."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        found.update(flat(value, f"{name}.") if isinstance(value, dict) else {name: value})
    return found
