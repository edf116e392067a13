"""Scenarios from presets and TOML files, with overrides, and back to TOML."""

from __future__ import annotations

import copy
import os
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from tomlkit.items import Table

from feelstream.data.streaming import ARRIVALS, BUFFERS, PARTITIONS
from feelstream.errors import ScenarioError
from feelstream.plugins import Plugin, Registry, did_you_mean
from feelstream.policies import POLICIES
from feelstream.scenario import Scenario

# A folder, not a package: importing one of that name would hide the function that users call.
PRESETS = resources.files("feelstream.scenario").joinpath("presets")

# The tables whose fields depend on the name in them.
NAMED_TABLES: dict[tuple[str, ...], tuple[str, Registry[type[Plugin]]]] = {
    ("policy",): ("name", POLICIES),
    ("data", "partition"): ("kind", PARTITIONS),
    ("data", "arrivals"): ("kind", ARRIVALS),
    ("data", "buffer"): ("kind", BUFFERS),
}


def presets() -> dict[str, str]:
    """Name and one-line description of every preset."""
    files = sorted(PRESETS.iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        for file in files
        if file.name.endswith(".toml")
    }


def preset(name: str, overrides: Iterable[str] = ()) -> Scenario:
    """A preset by name, with `section.field=value` overrides.

    >>> preset("paper-iid", ["policy.V=0.2"]).policy.V
    0.2
    """
    if name not in presets():
        raise ScenarioError(
            f"there is no preset '{name}'; {did_you_mean(name, list(presets()))}known: {', '.join(presets())}"
        )
    text = PRESETS.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return from_dict(tomllib.loads(text), overrides)


def load(source: str | Path, overrides: Iterable[str] = ()) -> Scenario:
    """A scenario from a preset's name or a TOML file."""
    if str(source) in presets():
        return preset(str(source), overrides)
    path = Path(source)
    if path.suffix != ".toml" and not os.path.exists(path):
        raise ScenarioError(
            f"'{source}' is neither a preset nor a file; {did_you_mean(str(source), list(presets()))}"
            f"presets: {', '.join(presets())}"
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise ScenarioError(f"cannot read the scenario {path}: {reason}") from problem
    except tomllib.TOMLDecodeError as problem:
        raise ScenarioError(f"{path} is not a TOML file: {problem}") from problem
    return from_dict(table, overrides)


def from_dict(table: Mapping[str, Any], overrides: Iterable[str] = ()) -> Scenario:
    """A scenario from nested tables; every problem becomes one sentence that names the field."""
    table = copy.deepcopy(dict(table))
    for override in _names_first(overrides):
        _apply(table, override)
    try:
        return Scenario.model_validate(table)
    except ValidationError as problem:
        raise ScenarioError(explain(problem)) from problem


def _names_first(overrides: Iterable[str]) -> list[str]:
    """Overrides that switch a table to another name come first, since they decide which fields it has."""
    names = {".".join((*path, tag)) for path, (tag, _) in NAMED_TABLES.items()}
    return sorted(overrides, key=lambda override: override.partition("=")[0].strip() not in names)


def _apply(table: dict[str, Any], override: str) -> None:
    field, equals, raw = override.partition("=")
    path = tuple(field.strip().split("."))
    if not equals or len(path) < 2 or not all(path):
        raise ScenarioError(f"'{override}' must read section.field=value, for instance policy.V=0.1")
    *sections, last = path
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ScenarioError(f"{field.strip()}: there is no such field")
    if tuple(sections) in NAMED_TABLES and last == NAMED_TABLES[tuple(sections)][0]:
        _rename(table, tuple(sections), str(_value(raw.strip(), is_text=True)))
    else:
        table[last] = _value(raw.strip(), _is_text(path, table))


def _rename(table: dict[str, Any], sections: tuple[str, ...], name: str) -> None:
    """Another policy, partition, …: the fields that both know stay, the others go."""
    tag, registry = NAMED_TABLES[sections]
    try:
        known = registry.lookup(name).model_fields
    except ScenarioError as problem:
        raise ScenarioError(f"{'.'.join(sections)}.{tag}: {problem}") from problem
    kept = {field: value for field, value in table.items() if field in known}
    table.clear()
    table.update({tag: name, **kept})


def _is_text(path: tuple[str, ...], table: Mapping[str, Any]) -> bool:
    """Whether a field takes text as it stands, so that nobody has to quote it."""
    model: Any = Scenario
    if path[:-1] in NAMED_TABLES:
        tag, registry = NAMED_TABLES[path[:-1]]
        name = table.get(tag)
        try:
            model = registry.lookup(name) if isinstance(name, str) else _default_of(path[:-1])
        except ScenarioError:
            return False  # the name will be refused in due course, with the whole table
    else:
        for section in path[:-1]:
            field = getattr(model, "model_fields", {}).get(section)
            model = field.annotation if field else None
    field = getattr(model, "model_fields", {}).get(path[-1])
    return field is not None and field.annotation is str


def _default_of(sections: tuple[str, ...]) -> type[BaseModel]:
    found: Any = Scenario()
    for section in sections:
        found = getattr(found, section)
    return type(found)


def _value(raw: str, is_text: bool) -> Any:
    if is_text and raw[:1] not in ("'", '"'):
        return raw
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return float(raw)  # .5 and 1. are numbers to everyone but TOML
    except ValueError:
        return raw


def explain(problem: ValidationError, prefix: str = "") -> str:
    """The first problem that pydantic found, as one sentence that names the field."""
    errors = problem.errors()
    # A field of several types has a complaint of each; the one that went deepest into the value is the one to tell.
    same = [error for error in errors if _field(error) == _field(errors[0])]
    error = max(same, key=lambda each: len(each["loc"]))
    field = prefix + _field(error)
    inner = error.get("ctx", {}).get("error")
    if isinstance(inner, ValidationError):
        return explain(inner, f"{field}.")
    if error["type"] == "extra_forbidden":
        return f"{field}: there is no such field{_siblings(field)}"
    if inner is not None:
        message = str(inner)
        if message.startswith("."):  # a check over a whole table names the field itself
            return f"{field}{message}" if field else message[1:]
        return f"{field}: {message}" if field else message
    field += "".join(f"[{part}]" for part in error["loc"] if isinstance(part, int))
    if error["type"] == "missing":
        return f"{field} is missing"
    return f"{field}: must be {_allowed(error)}, not {_shown(error['input'])}"


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


def _siblings(field: str) -> str:
    """What the unknown field may have been meant to be."""
    *sections, last = field.split(".")
    model: Any = Scenario
    for section in sections:
        found = getattr(model, "model_fields", {}).get(section)
        model = found.annotation if found else None
    known = list(getattr(model, "model_fields", {}))
    if not known or issubclass(model, Plugin):
        return ""
    close = did_you_mean(last, known)
    return f"; {close}allowed: {', '.join(known)}"


def to_toml(scenario: Scenario, heading: str = "") -> str:
    """The scenario as a TOML file with every field, its value and what it means."""
    document = tomlkit.document()
    if heading:
        document.add(tomlkit.comment(heading))
    for section in Scenario.model_fields:
        document.add(tomlkit.nl())
        document[section] = _toml_table(getattr(scenario, section))
    return tomlkit.dumps(document).lstrip("\n")


def _toml_table(settings: BaseModel) -> Table:
    table = tomlkit.table()
    if isinstance(settings, Plugin):
        table.add(settings.tag_field, settings.plugin_name())
    tables: dict[str, Any] = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            tables[name] = value
            continue
        if value is None:  # TOML has no such thing; a field left out has its default
            continue
        item = tomlkit.item(list(value) if isinstance(value, tuple) else value)
        if field.description:
            item.comment(" ".join(field.description.split()))
        table.add(name, item)
    for name, value in tables.items():
        table.add(name, _toml_table(value))
    return table
