"""All fields of a scenario that can be set, as it stands: which there are depends on the plug-ins that it picks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from feelstream.errors import ScenarioError
from feelstream.plugins import Kind

Path = tuple[str, ...]


class Leaf(NamedTuple):
    """One field: where it is, its declaration, and what it is set to; None where it has its default."""

    path: Path
    about: FieldInfo
    value: Any

    @property
    def kind(self) -> Kind[Any] | None:
        """Of the plug-in that is picked here, if one is."""
        return kind_in(self.about)

    @property
    def model(self) -> type[BaseModel] | None:
        """The class of its own fields, where it is a table; ScenarioError where that names no class."""
        if isinstance(self.value, BaseModel):
            return type(self.value)
        if self.kind is None or not self.kind.has_settings:
            inner = self.about.annotation
            return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
        tag = self.kind.tag_field
        name = entry(self.value, tag) if isinstance(self.value, Mapping) else None
        try:
            return self.kind.lookup(name) if isinstance(name, str) else self.kind.default
        except ScenarioError as problem:
            raise ScenarioError(f"{'.'.join(self.path)}.{tag}: {problem}") from problem


def kind_in(about: FieldInfo) -> Kind[Any] | None:
    """The kind of plug-in that a field picks, from its annotation; of a tuple, that of its entries."""
    within = (each for entry in get_args(about.annotation) for each in getattr(entry, "__metadata__", ()))
    return next((each for each in (*about.metadata, *within) if isinstance(each, Kind)), None)


def leaves(model: type[BaseModel], given: Any = None, path: Path = ()) -> Iterator[Leaf]:
    """Every field of a class of settings and of the tables in it. given: an object, a table, or None for the defaults.

    >>> from feelstream.scenario import Scenario
    >>> [".".join(leaf.path) for leaf in leaves(Scenario)][:3]
    ['system', 'system.devices', 'system.rounds']
    """
    for name, about in model.model_fields.items():
        value = entry(given, name)
        leaf = Leaf((*path, name), about, value)
        yield leaf
        if inner := leaf.model:
            yield from leaves(inner, value, leaf.path)


def entry(given: Any, name: str) -> Any:
    """What a table or an object has for a field; None where it says nothing."""
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def scenario_class() -> type[BaseModel]:
    from feelstream.scenario.settings import Scenario  # which itself is changed by its fields

    return Scenario


@cache
def kinds() -> dict[Path, Kind[Any]]:
    """The kinds of plug-ins, each by the field of a scenario where one is picked."""
    return {leaf.path: kind for leaf in leaves(scenario_class()) if (kind := leaf.kind)}
