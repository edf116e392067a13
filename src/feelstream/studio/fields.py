"""Forms from settings: what a page must know of each field is taken from the settings' own types and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic import BaseModel

from feelstream.plugins import Plugin
from feelstream.scenario import Scenario
from feelstream.scenario.fields import kinds
from feelstream.scenario.overrides import as_text


@dataclass(frozen=True)
class FormField:
    """One field of a form; `choices` where only these texts are allowed."""

    path: str  # section.field, as in --set
    description: str
    default: str  # as it would be typed
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def fields_of(settings: BaseModel, path: str) -> list[FormField]:
    """The plain fields of a settings object, with its values; tables within it have forms of their own."""
    found = []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, BaseModel) or value is None:
            continue
        choices = tuple(map(str, get_args(field.annotation))) if get_origin(field.annotation) is Literal else ()
        described = " ".join((field.description or "").split())
        found.append(FormField(f"{path}.{name}", described, as_text(value), choices))
    return found


def named_choice(path: tuple[str, ...], settings: Plugin) -> FormField:
    """The choice of a policy, partition, arrival process or buffer by name."""
    name, names = settings.plugin_name(), kinds()[path].names()
    choices = tuple(names if name in names else [*names, name])
    return FormField(".".join((*path, settings.tag_field)), f"which {path[-1]}", name, choices)


def world_forms(scenario: Scenario) -> dict[str, list[FormField]]:
    """The forms of everything that all policies of a race share, by section."""
    data = scenario.data
    forms = {
        "system": fields_of(scenario.system, "system"),
        "data": fields_of(data, "data"),
        "cpu": fields_of(scenario.cpu, "cpu"),
        "radio": fields_of(scenario.radio, "radio"),
        "costs": fields_of(scenario.costs, "costs"),
        "learning": fields_of(scenario.learning, "learning"),
        "reports": fields_of(scenario.reports, "reports"),
    }
    for name in ("arrivals", "partition", "buffer"):
        plugin, path = getattr(data, name), ("data", name)
        forms[name] = [named_choice(path, plugin), *fields_of(plugin, f"data.{name}")]
    law = scenario.cpu.energy
    forms["cpu"] += [named_choice(("cpu", "energy"), law), *fields_of(law, "cpu.energy")]
    rule = scenario.costs.rule
    forms["costs"] += [named_choice(("costs", "rule"), rule), *fields_of(rule, "costs.rule")]
    for name in ("local", "server"):
        plugin, path = getattr(scenario.learning, name), ("learning", name)
        forms["learning"] += [named_choice(path, plugin), *fields_of(plugin, f"learning.{name}")]
    order = ("system", "arrivals", "partition", "data", "buffer", "learning", "cpu", "radio", "costs", "reports")
    return {section: forms[section] for section in order}


def policy_form(scenario: Scenario) -> list[FormField]:
    """The form of one policy: its name, then its own fields."""
    return [named_choice(("policy",), scenario.policy), *fields_of(scenario.policy, "policy")]


def field_named_in(sentence: str, paths: Mapping[str, object] | set[str]) -> str | None:
    """The field that a complaint begins with, if it is one of these; else the last field of the same table."""
    path = sentence.partition(":")[0].partition("[")[0].strip()
    if path in paths:
        return path
    inner = [known for known in paths if known.startswith(f"{path}.") or path.startswith(known)]
    return inner[0] if inner else None
