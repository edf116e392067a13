"""Scenarios from presets and TOML files, with overrides, and back to TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import BaseModel
from tomlkit.items import Table

from feelstream.errors import RunError, ScenarioError
from feelstream.plugins import Plugin, Trait, near_or_all
from feelstream.scenario.overrides import AnyOverride, overridden
from feelstream.scenario.settings import Scenario

# A folder, not a package: importing one of that name would hide the function that users call.
PRESETS = resources.files("feelstream.scenario").joinpath("presets")
LONGEST_NAME = 200  # characters that are shown of a name that is neither a preset nor a file


def presets() -> dict[str, str]:
    """Name and one-line description of every preset.

    >>> presets()["tiny"]
    'Seconds, synthetic data: for a first look and for tests.'
    """
    files = sorted(PRESETS.iterdir(), key=lambda file: file.name)
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        for file in files
        if file.name.endswith(".toml")
    }


def preset(name: str, overrides: Iterable[AnyOverride] = ()) -> Scenario:
    """A scenario that comes with the package.

    Args:
        name: One of `presets()`.
        overrides: Fields to change, as `--set` takes them: `"V=0.1"` or `"policy.V=0.1"`.

    >>> preset("paper-iid", ["policy.V=0.2"]).policy.V
    0.2
    """
    if not isinstance(name, str):
        raise ScenarioError(f"a preset is a name, as in preset('tiny'), not {name!r:.60}")
    if name not in presets():
        raise ScenarioError(f"there is no preset '{name}'; {near_or_all(name, list(presets()))}")
    text = PRESETS.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return from_dict(tomllib.loads(text), overrides)


def load(source: str | Path, overrides: Iterable[AnyOverride] = ()) -> Scenario:
    """A scenario from a preset's name or a TOML file.

    Args:
        source: The name of a preset, or the path of a TOML file.
        overrides: Fields to change, as `--set` takes them: `"V=0.1"` or `"policy.V=0.1"`.

    >>> load("tiny").system.devices
    10
    """
    if not isinstance(source, str | Path):
        raise ScenarioError(f"a scenario is a preset's name or a TOML file, as in load('tiny'), not {source!r:.60}")
    if str(source) in presets():
        return preset(str(source), overrides)
    path = Path(source)
    if path.suffix != ".toml" and not os.path.exists(path):
        shown = text if len(text := str(source)) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"
        meant = near_or_all(str(source), list(presets()))
        raise ScenarioError(f"'{shown}' is neither a preset nor a file; {meant}")
    if path.is_dir():
        read = f"; fs.read('{path}') reads what is stored there" if any(path.glob("*.json")) else ""
        raise ScenarioError(f"{path} is a directory; a scenario is a preset (feelstream presets) or a TOML file{read}")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        meant = f"; did you mean the preset '{path.stem}'?" if str(path.with_suffix("")) in presets() else ""
        raise ScenarioError(f"cannot read the scenario {path}: {reason}{meant}") from problem
    except tomllib.TOMLDecodeError as problem:
        raise ScenarioError(f"{path} is not a TOML file: {problem}") from problem
    except (ValueError, RecursionError) as problem:  # thousands of digits, or of brackets
        raise ScenarioError(f"{path} holds a value that is too long or too deep for any field") from problem
    return from_dict(table, overrides)


def from_dict(table: Mapping[str, Any], overrides: Iterable[AnyOverride] = ()) -> Scenario:
    """A scenario from nested tables; every problem becomes one sentence that names the field."""
    return Scenario.of(overridden(table, overrides))


def stored_scenario(
    table: Mapping[str, Any], where: Path, traits: Mapping[str, Mapping[str, Trait]] | None = None
) -> Scenario:
    """The scenario that a stored file holds. Reading runs no code: what is not ours is kept by name and fields alone,
    as settings that can be shown, compared and stored, and only refuse to be run (`stored.Inert`).

    traits: what `Scenario.traits` said of it when it was stored.
    """
    try:
        return Scenario.of(table, traits or {})
    except ScenarioError as problem:
        raise RunError(f"{where} is damaged: {problem}") from problem


def to_toml(scenario: Scenario, heading: str = "") -> str:
    """The scenario as the text of a TOML file with every field, its value and what it means.

    Args:
        scenario: What to write.
        heading: A comment for the first line.

    >>> print(to_toml(preset("tiny")).splitlines()[0])
    [system]
    """
    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"to_toml: give a Scenario, as in to_toml(preset('tiny')), not {scenario!r:.60}")
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
        if isinstance(value, tuple):
            value = [
                entry.model_dump(mode="python", exclude_none=True) if isinstance(entry, BaseModel) else entry
                for entry in value
            ]
        item = tomlkit.item(value)
        if field.description:
            item.comment(" ".join(field.description.split()))
        table.add(name, item)
    for name, value in tables.items():
        table.add(name, _toml_table(value))
    return table
