"""Overrides: one field of a scenario set to another value, as users write it in text or in Python.

Which fields there are depends on the plug-ins that the scenario picks, so whatever picks another is taken first, and
each field is looked for in the settings as they then stand (fields.py).
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from feelstream.errors import ScenarioError
from feelstream.learning.settings import LOCAL_FIELDS, with_local
from feelstream.plugins import Kind, Plugin, Settings, as_table, did_you_mean
from feelstream.scenario.fields import first_problem, kinds, leaf_at, leaves, scenario_class

Tables = Mapping[str, Any]  # a scenario as nested tables, with plug-ins as tables or objects
ASIDE = ("reports",)  # sections whose fields say what those of others say of training: cycles, samples
MOVED: dict[tuple[str, ...], tuple[str, ...]] = {  # short name → full name
    ("learning", field): ("learning", "local", field) for field in LOCAL_FIELDS
}


@dataclass(frozen=True)
class Override:
    """A field and its new value. Everything that sets a field is one, or is made of them: what follows `--set`, a
    keyword of `with_`, a change during a run, a policy in a form.

    >>> str(Override.parse("policy.V = 0.1"))
    'policy.V=0.1'
    >>> Override("policy.V", 0.1).section
    ('policy',)
    """

    field: str  # section.field, or as much of its end as says which one is meant
    value: Any
    typed: bool = dataclasses.field(default=False, repr=False)  # a text, of which the field says how to read it

    def __post_init__(self) -> None:
        if not all(self.path):
            raise ScenarioError(f"'{self}' must read section.field=value, for instance policy.V=0.1")

    @classmethod
    def parse(cls, text: str) -> Override:
        """From `section.field=value`, or `field=value` where one section has such a field."""
        field, equals, value = text.partition("=")
        if not equals:
            raise ScenarioError(f"'{text}' must read section.field=value, for instance policy.V=0.1")
        return cls(field.strip(), value.strip(), typed=True)

    @property
    def path(self) -> tuple[str, ...]:
        """Section and field, in full."""
        parts = tuple(self.field.split("."))
        return MOVED.get(parts, parts)

    @property
    def section(self) -> tuple[str, ...]:
        return self.path[:-1]

    @property
    def last(self) -> str:
        return self.path[-1]

    @property
    def names_a_table(self) -> bool:
        """Whether it switches to another policy, partition, … and so decides which fields there are."""
        return self.last in _tags() | _tables()

    def __str__(self) -> str:
        return f"{self.field}={self.value}"


AnyOverride = str | Override


@cache
def _tags() -> frozenset[str]:
    """What the field of a table is called that holds the name of its plug-in."""
    return frozenset(kind.tag_field for kind in kinds().values() if kind.has_settings)


@cache
def _tables() -> frozenset[str]:
    """What tables are called that pick a plug-in, those in plug-ins of ours too."""
    ours = [cls for kind in kinds().values() if kind.has_settings for cls in kind.ours.values()]
    found = (leaf for cls in (scenario_class(), *ours) for leaf in leaves(cls))
    return frozenset(leaf.path[-1] for leaf in found if leaf.kind and leaf.kind.has_settings)


def parsed(overrides: Iterable[AnyOverride]) -> list[Override]:
    """All as the type; those that switch a table to another name come first, with the fields that they set."""
    found = [entry if isinstance(entry, Override) else Override.parse(entry) for entry in overrides]
    whole = [each for override in found for each in _with_fields(override)]
    return sorted(whole, key=lambda override: not override.names_a_table)


def _with_fields(override: Override) -> list[Override]:
    """`policy=lyapunov(V=0.1)` as the name and its fields; anything else as it is."""
    if not override.names_a_table or not isinstance(override.value, str):
        return [override]
    match = re.fullmatch(r"([^()]+)\((.*)\)", override.value.strip())
    if match is None and ("(" not in override.value or ")" in override.value):
        return [override]
    own = split(match[2]) if match else []
    if match is None or not all("=" in setting for setting in own):
        raise ScenarioError(f"'{override.value}' must read name or name(field=value,…), as in lyapunov(V=0.1)")
    table = ".".join(override.section) if override.last in _tags() else override.field
    named = dataclasses.replace(override, value=match[1].strip())
    return [named, *(each for setting in own for each in _with_fields(Override.parse(f"{table}.{setting}")))]


def split(text: str) -> list[str]:
    """At commas, but not inside brackets, nor in a value in quotes.

    >>> split("[1,2], [3,4]"), split("lyapunov(V=0.1,size=2), random"), split("rate=3, path='a, b [1.csv'")
    (['[1,2]', '[3,4]'], ['lyapunov(V=0.1,size=2)', 'random'], ['rate=3', "path='a, b [1.csv'"])
    """
    pieces, depth, quote = [""], 0, ""
    for letter in text:
        if quote or (letter in "'\"" and pieces[-1].rstrip()[-1:] in ("", "=", "[", ",")):
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0 and not quote:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]


def plugin_object(kind: Kind[Any], value: Any, field: str) -> Any:
    """Settings that were handed in as an object; of a class, the object with its defaults. ScenarioError for others."""
    if isinstance(value, Mapping):
        return value
    name = field.rpartition(".")[2]
    if callable(value) and not isinstance(value, type | Plugin) and kind.takes_functions:
        try:
            value = kind.lookup(value)  # type: ignore[arg-type]
        except ValueError as problem:
            raise ScenarioError(f"{name}: {problem}") from problem
    if not isinstance(value, type | Plugin):
        raise ScenarioError(f"{name}: must be a name, a class or an object of a class, not {value!r:.60}")
    cls = value if isinstance(value, type) else type(value)
    if problem := kind.why_not(cls):
        raise ScenarioError(f"{name}: {cls.__name__} {problem}")
    try:
        return value() if isinstance(value, type) else value
    except ValidationError as missing:
        raise ScenarioError(first_problem(missing, f"{field}.")) from missing


def placed(overrides: Iterable[AnyOverride], tables: Tables) -> list[Override]:
    """As `parsed`, with every field in full: data.buffer.kind=fifo for buffer=fifo."""
    return _taken(overrides, tables)[0]


def overridden(tables: Tables, overrides: Iterable[AnyOverride]) -> Tables:
    """Nested tables with the overrides in them; `tables` itself is left alone."""
    if isinstance(learning := tables.get("learning"), Mapping):
        try:
            tables = {**tables, "learning": with_local(learning)}
        except ValueError as problem:
            raise ScenarioError(f"learning{problem}") from problem
    return _taken(overrides, tables)[1]


def _taken(overrides: Iterable[AnyOverride], tables: Tables) -> tuple[list[Override], Tables]:
    """The overrides with every field in full, and the tables with all of them."""
    found = []
    for override in parsed(overrides):
        for each in _shared(override, tables):
            full, tables = _take(each, tables)
            found.append(full)
    return found, tables


def _shared(override: Override, tables: Tables) -> list[Override]:
    """A field that the local training and the server update of one algorithm of a user's own both have is set in both;
    any other override is as it is.
    """
    both = [(leaf_at(("learning", part), tables), f"learning.{part}.{override.last}") for part in ("local", "server")]
    own = [
        dataclasses.replace(override, field=field)
        for leaf, field in both
        if leaf and leaf.kind and leaf.model and override.last in leaf.model.model_fields
        and leaf.model not in leaf.kind.ours.values()
    ]  # fmt: skip
    return own if len(own) == 2 and len(override.path) == 1 else [override]


def _take(override: Override, tables: Tables) -> tuple[Override, Tables]:
    """In full, and the tables with it in them. Another policy, partition, … keeps the fields that both know."""
    if len(override.path) == 1 or override.path[0] not in scenario_class().model_fields:
        override = _found(override, override.path[0], tables)
    leaf = leaf_at(override.path, tables)
    if leaf and leaf.kind and leaf.kind.has_settings:
        value = _value(override, is_text=not str(override.value).startswith("{"))
        if not isinstance(value, str):
            value = plugin_object(leaf.kind, value, override.field)
            return dataclasses.replace(override, value=value), _put(tables, override, override.path, value)
        override = dataclasses.replace(override, field=f"{override.field}.{leaf.kind.tag_field}")
    above = leaf_at(override.section, tables)
    if above and above.kind and override.last == above.kind.tag_field:
        name = str(_value(override, is_text=True))
        try:
            known = above.kind.lookup(name).model_fields
        except ScenarioError as problem:
            raise ScenarioError(f"{override.field}: {problem}") from problem
        fields = as_table(above.value).items() if isinstance(above.value, Mapping | Settings) else ()
        kept = {field: value for field, value in fields if field in known}
        return override, _put(tables, override, override.section, {override.last: name, **kept})
    value = _value(override, is_text=leaf is not None and leaf.about.annotation is str)
    return override, _put(tables, override, override.path, value)


def _found(override: Override, first: str, tables: Tables) -> Override:
    """With the sections above its first part: a field, or the table of a plug-in. The shortest path is meant."""
    known: dict[str, list[tuple[str, ...]]] = {}
    elsewhere: list[tuple[str, ...]] = []  # below plug-ins of whose kind another has the field
    for leaf in leaves(scenario_class(), tables):
        if leaf.kind or not leaf.model:
            known.setdefault(leaf.path[-1], []).append(leaf.path)
        if leaf.kind and any(first in getattr(one, "model_fields", ()) for one in leaf.kind.ours.values()):
            elsewhere.append((*leaf.path, first))
    paths = known.get(first, [])
    ranks = [len(path) + (path[0] in ASIDE) for path in paths]
    places = [".".join(path) for path, rank in zip(paths, ranks, strict=True) if rank == min(ranks)]
    if len(places) == 1:
        return dataclasses.replace(override, field=places[0] + override.field.removeprefix(first))
    if places:
        raise ScenarioError(f"'{first}' may mean {' or '.join(places)}; write one of these in full")
    if override.section:
        return override  # which is refused with the whole table
    if len(elsewhere) == 1 and first != "kind":
        return dataclasses.replace(override, field=".".join(elsewhere[0]))  # refused too, with who has it
    if first in ("seed", "seeds"):
        raise ScenarioError(f"there is no field '{first}'; a seed is given beside the scenario, by --seed or --seeds")
    close = did_you_mean(first, list(known))
    raise ScenarioError(f"there is no field '{first}'; {close}a field with its section reads policy.V")


def meant(field: str, tables: Tables) -> str:
    """The one field below its section that has the name of an unknown field; empty where there is none, or several."""
    *section, name = field.split(".")
    paths = (leaf.path for leaf in leaves(scenario_class(), tables) if leaf.path[-1] == name)
    found = [".".join(path) for path in paths if list(path[: len(section)]) == section]
    return found[0] if len(found) == 1 else ""


def _put(own: Any, override: Override, path: Sequence[str], value: Any) -> dict[str, Any]:
    """A table, or settings as one, with a value in its place; `own` itself is left alone."""
    if not isinstance(own, Mapping | Settings | None):
        raise ScenarioError(f"{override.field}: there is no such field")
    table, (name, *rest) = {} if own is None else as_table(own), path
    return {**table, name: _put(table.get(name), override, rest, value) if rest else value}


def _value(override: Override, is_text: bool) -> Any:
    """What was typed, read as TOML; any other value as it is."""
    raw = _plain_value(override.value)
    if not override.typed or not isinstance(raw, str) or (is_text and raw[:1] not in ("'", '"')):
        return raw
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    except (ValueError, RecursionError) as problem:  # thousands of digits, or of brackets
        raise ScenarioError(f"'{raw[:20]}…' is not a value of any field: it is too long or too deep") from problem
    try:
        return float(raw)  # .5 and 1. are numbers to everyone but TOML
    except ValueError:
        return raw


def _plain_value(value: Any) -> Any:
    """NumPy's numbers and arrays, and paths, as what a scenario file would hold."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(map(_plain_value, value)) if type(value) in (list, tuple) else value
    return str(value) if isinstance(value, Path) else value


def as_text(value: Any) -> str:
    """A value as it would be typed after `--set field=`.

    >>> as_text((0.5, 20.0)), as_text(True), as_text(("test",))
    ('[0.5, 20]', 'true', '["test"]')
    """
    value = _plain_value(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(json.dumps(each) if isinstance(each, str) else as_text(each) for each in value)}]"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
