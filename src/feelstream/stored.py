"""What a stored run names and nobody runs: plug-ins that are not ours, by their names, fields and traits alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict

from feelstream.errors import ScenarioError

Base = TypeVar("Base", bound=BaseModel)


class Inert:
    """Mixed into the settings of a stored run that are not ours: their name and fields, and no code to run."""


class StoredName(str):
    """The name of someone's code in a field of a stored run. It compares and prints as text, and is never imported."""

    __slots__ = ()


def refusal(name: str) -> ScenarioError:
    """What is raised where code of a stored run would have to run."""
    return ScenarioError(
        f"'{name}' was read from a stored run, and reading runs no code; to run it again, load its scenario with "
        "feelstream.scenario.files.from_dict(scenario.as_dict())"
    )


def inert(base: type[Base], name: str, fields: dict[str, Any], stored: Any, known: Collection[str]) -> Base:
    """Settings that are not ours, of a kind with this base. stored: their traits, as far as such were stored; known:
    those that the kind has.
    """
    stated = stored if isinstance(stored, Mapping) else {}
    found = {each: stated[each] for each in known if isinstance(stated.get(each), bool | int | float | list)}
    found = {each: frozenset(map(str, is_)) if isinstance(is_, list) else is_ for each, is_ in found.items()}
    cls = cast(type[Base], _inert_class(base, name, tuple(found.items())))
    return cls.model_construct(**fields)  # its own class checked them


@lru_cache(maxsize=256)
def _inert_class(base: type[BaseModel], name: str, traits: tuple[tuple[str, Any], ...]) -> type[BaseModel]:
    def refuse(self: Any, *arguments: Any, **more: Any) -> Any:
        raise refusal(name)

    methods = dict.fromkeys(getattr(base, "__abstractmethods__", ()), refuse)
    body = {"tag": name, "__module__": __name__, "model_config": ConfigDict(extra="allow"), **methods}
    found = cast(type[BaseModel], type(f"Stored{base.__name__}", (Inert, base), body))
    for trait, stated in traits:
        setattr(found, trait, stated)
    return found
