"""Overrides: one field of a scenario set to another value, as users write it in text or in Python."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from feelstream.data.streaming import ARRIVALS, BUFFERS, PARTITIONS
from feelstream.environment import AVAILABILITIES, CHANNELS, FAULTS, FREQUENCIES, HARVESTS, MOBILITIES
from feelstream.errors import ScenarioError
from feelstream.learning.local import LOCAL_TRAININGS
from feelstream.learning.server import SERVER_UPDATES
from feelstream.learning.settings import LOCAL_FIELDS, with_local
from feelstream.model.costs import COST_RULES
from feelstream.model.energy import ENERGY_LAWS
from feelstream.plugins import Inert, Plugin, Registry, did_you_mean
from feelstream.policies import POLICIES
from feelstream.scenario.problems import explain

# The tables whose fields depend on the name in them.
NAMED_TABLES: dict[tuple[str, ...], tuple[str, Registry[type[Plugin]]]] = {
    ("policy",): ("name", POLICIES),
    ("cpu", "energy"): ("kind", ENERGY_LAWS),
    ("costs", "rule"): ("kind", COST_RULES),
    ("data", "partition"): ("kind", PARTITIONS),
    ("data", "arrivals"): ("kind", ARRIVALS),
    ("data", "buffer"): ("kind", BUFFERS),
    ("world", "frequency"): ("kind", FREQUENCIES),
    ("world", "channel"): ("kind", CHANNELS),
    ("world", "mobility"): ("kind", MOBILITIES),
    ("world", "availability"): ("kind", AVAILABILITIES),
    ("world", "harvest"): ("kind", HARVESTS),
    ("world", "faults"): ("kind", FAULTS),
    ("learning", "local"): ("kind", LOCAL_TRAININGS),
    ("learning", "server"): ("kind", SERVER_UPDATES),
}
ASIDE = ("reports",)  # sections whose fields say what those of others say of training: cycles, samples
MOVED: dict[tuple[str, ...], tuple[str, ...]] = {  # former name → present name
    ("learning", field): ("learning", "local", field) for field in LOCAL_FIELDS
}


@dataclass(frozen=True)
class Override:
    """A field and its new value. Everything that sets a field is one, or is made of them: what follows `--set`, a
    keyword of `with_`, a change during a run, a policy in a form, a specification of the multiverse.

    >>> str(Override.parse("policy.V = 0.1"))
    'policy.V=0.1'
    >>> Override("policy.V", 0.1).section
    ('policy',)
    """

    field: str  # section.field, section.* for a table that a settings object replaces, or the field alone
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
        """Section and field, by its present name."""
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
        return self.replaces_a_table or (self.section in NAMED_TABLES and self.last == NAMED_TABLES[self.section][0])

    @property
    def replaces_a_table(self) -> bool:
        return self.last == "*" and not self.typed

    def __str__(self) -> str:
        return f"{self.field}={self.value}"


AnyOverride = str | Override


def parsed(overrides: Iterable[AnyOverride]) -> list[Override]:
    """All as the type; those that switch a table to another name come first, with the fields that they set."""
    found = [entry if isinstance(entry, Override) else Override.parse(entry) for entry in overrides]
    whole = [each for override in map(_in_its_table, found) for each in _with_fields(override)]
    return sorted(whole, key=lambda override: not override.names_a_table)


def _with_fields(override: Override) -> list[Override]:
    """`policy.name=lyapunov(V=0.1)` as the name and its fields; anything else as it is."""
    if override.replaces_a_table or not override.names_a_table or not isinstance(override.value, str):
        return [override]
    match = re.fullmatch(r"([^()]+)\((.*)\)", override.value.strip())
    if match is None:
        return [override]
    own = split(match[2])
    if not all("=" in setting for setting in own):
        raise ScenarioError(f"'{override.value}' must read name or name(field=value,…), as in lyapunov(V=0.1)")
    section = ".".join(override.section)
    named = dataclasses.replace(override, value=match[1].strip())
    return [named, *(Override.parse(f"{section}.{setting}") for setting in own)]


def split(text: str) -> list[str]:
    """At commas, but not inside brackets.

    >>> split("[1,2], [3,4]"), split("lyapunov(V=0.1,size=2), random")
    (['[1,2]', '[3,4]'], ['lyapunov(V=0.1,size=2)', 'random'])
    """
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]


_TABLES = {section[-1]: section for section in NAMED_TABLES}  # what a table may be called alone


def _in_its_table(override: Override) -> Override:
    """`buffer.rounds` as data.buffer.rounds, and `buffer` as data.buffer.kind, or data.buffer.* for an object."""
    section = _TABLES.get(override.path[0])
    if section is None:
        return override
    if len(override.path) > 1:
        return (
            dataclasses.replace(override, field=".".join((*section, *override.path[1:]))) if section[1:] else override
        )
    by_name = isinstance(override.value, str)
    last = NAMED_TABLES[section][0] if by_name else "*"
    value = override.value if by_name else plugin_object(section, override.value)
    return dataclasses.replace(override, field=".".join((*section, last)), value=value)


def plugin_object(section: tuple[str, ...], value: Any) -> Any:
    """Settings that were handed in as an object; of a class, the object with its defaults. ScenarioError for others."""
    registry = NAMED_TABLES[section][1]
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, type | Plugin):
        raise ScenarioError(f"{section[-1]}: must be a name, a class or an object of a class, not {value!r:.60}")
    cls = value if isinstance(value, type) else type(value)
    if problem := registry.why_not(cls):
        raise ScenarioError(f"{section[-1]}: {cls.__name__} {problem}")
    try:
        return value() if isinstance(value, type) else value
    except ValidationError as missing:
        raise ScenarioError(explain(missing, f"{'.'.join(section)}.")) from missing


def placed(overrides: Iterable[AnyOverride], table: Mapping[str, Any], model: type[BaseModel]) -> list[Override]:
    """As `parsed`, with the section of every field that was named alone.

    A name is looked for in the sections (`rounds`, `V`, `lr`), then in the tables within them.
    """
    found = parsed(overrides)
    whole = [override for override in found if len(override.path) > 1]
    if len(whole) == len(found):
        return found
    known = _fields(overridden(table, whole, model), model)
    return [override if len(override.path) > 1 else _placed(override, known) for override in found]


def _placed(override: Override, known: Mapping[str, list[str]]) -> Override:
    name = override.field
    places = known.get(name, [])
    if len(places) == 1:
        return dataclasses.replace(override, field=places[0])
    if places:
        raise ScenarioError(f"'{name}' may mean {' or '.join(places)}; write one of these in full")
    close = did_you_mean(name, list(known))
    raise ScenarioError(f"there is no field '{name}'; {close}a field with its section reads policy.V")


def overridden(table: Mapping[str, Any], overrides: Iterable[AnyOverride], model: type[BaseModel]) -> dict[str, Any]:
    """Nested tables with the overrides in them; `table` itself is left alone. model: whose fields they are."""
    changed = copy.deepcopy(dict(table))
    if isinstance(learning := changed.get("learning"), Mapping):
        changed["learning"] = _moved(learning)
    for override in placed(overrides, changed, model):
        _apply(changed, override, model)
    return changed


def _moved(learning: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return with_local(learning)
    except ValueError as problem:
        raise ScenarioError(f"learning{problem}") from problem


def from_keywords(keywords: Mapping[str, Any], table: Mapping[str, Any], model: type[BaseModel]) -> list[Override]:
    """Overrides from Python keywords.

    A name with dots is the field itself (`**{"policy.V": 0.2}`). `policy`, `partition`, `arrivals` and `buffer` take a
    name, a class or an object. Any other name is looked for as in `placed`.
    """
    return placed([Override(name, value) for name, value in keywords.items()], table, model)


def _fields(table: Mapping[str, Any], model: type[BaseModel]) -> dict[str, list[str]]:
    """Bare name → the fields it may mean; one of [data.partition], [reports], … only where no main section has it."""
    found: dict[str, list[str]] = {}
    inner: dict[str, list[str]] = {}
    for field in _below((), table, model):
        section, *between, name = field.split(".")
        (inner if between or section in ASIDE else found).setdefault(name, []).append(field)
    return inner | found


def meant(field: str, table: Mapping[str, Any], model: type[BaseModel]) -> str:
    """The one field below its section that has the name of an unknown field; empty where there is none, or several."""
    *section, name = field.split(".")
    found = [each for each in _below(tuple(section), table, model) if each.endswith(f".{name}")]
    return found[0] if len(found) == 1 else ""


def _below(above: tuple[str, ...], table: Mapping[str, Any], model: type[BaseModel]) -> Iterator[str]:
    """Every field of the sections, and of the tables in them, that are below one; in full."""
    for section in (*((name,) for name in model.model_fields), *(inner for inner in NAMED_TABLES if inner[1:])):
        if section[:-1][: len(above)] == above:
            own: Any = table
            for part in section:
                own = own.get(part, {}) if isinstance(own, Mapping) else {}
            for field in _model_of(section, own, model).model_fields:
                yield ".".join((*section, field))


def _model_of(section: tuple[str, ...], table: Any, model: type[BaseModel]) -> Any:
    """The class that has the fields of a section; of a named table, the class of the name in it."""
    if isinstance(table, BaseModel):
        return type(table)
    if section in NAMED_TABLES:
        tag, registry = NAMED_TABLES[section]
        name = table.get(tag) if isinstance(table, Mapping) else None
        return registry.lookup(name) if isinstance(name, str) else type(_default(section, model))
    found: Any = model
    for part in section:
        field = getattr(found, "model_fields", {}).get(part)
        found = field.annotation if field else None
    return found


def _default(section: tuple[str, ...], model: type[BaseModel]) -> Any:
    found: Any = model()
    for part in section:
        found = getattr(found, part)
    return found


def _apply(table: dict[str, Any], override: Override, model: type[BaseModel]) -> None:
    *above, below = override.section
    for section in above:
        table = _inner(table, section, override)
    if override.replaces_a_table:
        table[below] = override.value
        return
    own = table.get(below)
    if override.names_a_table:
        fields = _plain(own)
        table[below] = _renamed(fields, override.section, str(_value(override, is_text=True)))
    elif isinstance(own, Plugin):
        table[below] = _changed(own, override)
    else:
        own = _inner(table, below, override)
        own[override.last] = _value(override, _is_text(override, own, model))


def _inner(table: dict[str, Any], section: str, override: Override) -> dict[str, Any]:
    found = table.setdefault(section, {})
    if not isinstance(found, dict):
        raise ScenarioError(f"{override.field}: there is no such field")
    return found


def _plain(own: Any) -> dict[str, Any]:
    if isinstance(own, Plugin):
        return {field: getattr(own, field) for field in type(own).model_fields}
    return own if isinstance(own, dict) else {}


def _changed(plugin: Plugin, override: Override) -> Plugin:
    """An object of the user's with one field changed: it need not have a name that can be imported."""
    fields = type(plugin).model_fields
    if isinstance(plugin, Inert):  # of a stored run: its class, which is not imported, knew which values are possible
        return plugin.model_copy(update={override.last: _value(override, is_text=False)})
    if override.last not in fields:
        raise ScenarioError(
            f"{override.field}: there is no such field in {plugin.plugin_name()}{_instead(override, fields)}"
        )
    value = _value(override, fields[override.last].annotation is str)
    try:
        return type(plugin).model_validate(_plain(plugin) | {override.last: value})
    except ValidationError as problem:
        raise ScenarioError(explain(problem, f"{'.'.join(override.section)}.")) from problem


def _instead(override: Override, fields: Mapping[str, Any]) -> str:
    """What may have been meant: one of the fields, or another policy, buffer, … that has the field."""
    registry = NAMED_TABLES[override.section][1] if override.section in NAMED_TABLES else None
    others = [name for name, cls in registry.ours.items() if override.last in cls.model_fields] if registry else []
    if fields:
        return f"; {did_you_mean(override.last, list(fields))}allowed: {', '.join(fields)}"
    return f", which has none; it is one of {', '.join(others)}" if others else ", which has none"


def _renamed(table: dict[str, Any], section: tuple[str, ...], name: str) -> dict[str, Any]:
    """Another policy, partition, …: the fields that both know stay, the others go."""
    tag, registry = NAMED_TABLES[section]
    try:
        known = registry.lookup(name).model_fields
    except ScenarioError as problem:
        raise ScenarioError(f"{'.'.join(section)}.{tag}: {problem}") from problem
    return {tag: name, **{field: value for field, value in table.items() if field in known}}


def _is_text(override: Override, table: Mapping[str, Any], model: type[BaseModel]) -> bool:
    """Whether a field takes text as it stands, so that nobody has to quote it."""
    try:
        own = _model_of(override.section, table, model)
    except ScenarioError:
        return False  # the name will be refused in due course, with the whole table
    field = getattr(own, "model_fields", {}).get(override.last)
    return field is not None and field.annotation is str


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
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(json.dumps(each) if isinstance(each, str) else as_text(each) for each in value)}]"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
