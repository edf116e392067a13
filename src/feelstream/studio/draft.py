"""The race that someone is setting up: a preset, overrides as after --set, two to four policies, a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal, get_args, get_origin

from feelstream.errors import FeelstreamError, ScenarioError
from feelstream.plugins import Plugin
from feelstream.scenario import Scenario
from feelstream.scenario.fields import leaves
from feelstream.scenario.files import preset
from feelstream.scenario.overrides import Override, as_text
from feelstream.studio.lanes import LiveLane, unused

FEWEST, MOST = 2, 4
Entries = dict[str, str]  # section.field → what was typed for it
NAME = "policy.name"
UNTYPED = ("devices", "trace")  # sections without a form: tables of devices, and what only stored runs have


@dataclass(frozen=True)
class FormField:
    """One field of a form; `choices` where only these texts are allowed."""

    path: str  # section.field, as in --set
    description: str
    default: str  # as it would be typed
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Within the form of its section."""
        return self.path.partition(".")[2]


def forms_of(scenario: Scenario) -> dict[str, list[FormField]]:
    """The fields of each section, those of the plug-ins that it picks among them, with the scenario's values."""
    found: dict[str, list[FormField]] = {}
    for leaf in leaves(Scenario, scenario):
        path, about, value = leaf
        form, dotted, choices = found.setdefault(path[0], []), ".".join(path), ()
        if leaf.kind is not None and isinstance(value, Plugin):
            name, names = value.plugin_name(), leaf.kind.names()
            offered = tuple(names if name in names else [*names, name])
            form.append(FormField(f"{dotted}.{value.tag_field}", f"which {path[-1]}", name, offered))
        elif leaf.model is None and value is not None:
            if get_origin(about.annotation) is Literal:
                choices = tuple(map(str, get_args(about.annotation)))
            form.append(FormField(dotted, " ".join((about.description or "").split()), as_text(value), choices))
    return {section: form for section, form in found.items() if section not in UNTYPED}


def field_named_in(sentence: str, paths: Iterable[str]) -> str | None:
    """The field that a complaint begins with, if it is one of these; else the first field of the same table."""
    path = sentence.partition(":")[0].partition("[")[0].strip()
    inner = [known for known in paths if known.startswith(f"{path}.") or path.startswith(known)]
    return path if path in paths else next(iter(inner), None)


def overrides(entries: Entries) -> list[Override]:
    return [Override(field, text, typed=True) for field, text in entries.items()]


def _two_policies() -> list[Entries]:
    return [{NAME: "lyapunov"}, {NAME: "random"}]


@dataclass
class Draft:
    """Everything as text: it becomes a scenario by the very code that reads the command line."""

    preset: str = "paper-iid"
    seed: str = "0"
    world: Entries = field(default_factory=dict)
    policies: list[Entries] = field(default_factory=_two_policies)  # each with its NAME

    def scenario(self, policy: int) -> Scenario:
        """The scenario of one policy; ScenarioError says in a sentence what is wrong."""
        return preset(self.preset, overrides(self.world | self.policies[policy]))

    def seed_number(self) -> int:
        text = self.seed.strip()
        if not text.isdecimal() or int(text) >= 2**63:
            raise ScenarioError(f"seed: must be a whole number from 0 to 2^63 - 1, not '{text}'")
        return int(text)

    def problem(self) -> tuple[int | None, str | None, str] | None:
        """(policy or None, field, sentence) of the first thing that is wrong; None if the race can start."""
        try:
            self.seed_number()
        except FeelstreamError as wrong:
            return None, "seed", str(wrong)
        if not FEWEST <= len(self.policies) <= MOST:
            return None, None, f"a race has from {FEWEST} to {MOST} policies, not {len(self.policies)}"
        for number in range(len(self.policies)):
            try:
                self.scenario(number)
            except FeelstreamError as wrong:
                sentence = str(wrong)
                if sentence.startswith("policy"):
                    return number, field_named_in(sentence, self.policies[number]), sentence
                return None, field_named_in(sentence, self.world), sentence
        return None

    def labels(self) -> list[str]:
        """A name for each lane: the policy's, with the fields that tell equal ones apart."""
        many = Counter(policy[NAME] for policy in self.policies)
        labels: list[str] = []
        for policy in self.policies:
            label = policy[NAME].rpartition(":")[2]
            if many[policy[NAME]] > 1:
                own = (f"{path.removeprefix('policy.')}={text}" for path, text in policy.items() if path != NAME)
                label = " ".join((label, *own))
            labels.append(unused(label, labels))
        return labels

    def lanes(self) -> list[LiveLane]:
        """The lanes of the race, ready for the first round; slow where a data set must be read."""
        seed = self.seed_number()
        return [LiveLane(label, self.scenario(number), seed) for number, label in enumerate(self.labels())]

    def forms(self) -> tuple[dict[str, list[FormField]], list[list[FormField]]]:
        """(forms of the world, forms of each policy) with present values as defaults, where these are lawful."""
        world = {section: form for section, form in forms_of(self._shown(None)).items() if section != "policy"}
        return world, [forms_of(self._shown(n))["policy"] for n in range(len(self.policies))]

    def _shown(self, policy: int | None) -> Scenario:
        """The scenario whose names decide which fields a form has; wrong values do not matter to that."""
        entries = self.world if policy is None else self.world | self.policies[policy]
        names = [override for override in overrides(entries) if override.names_a_table]
        try:
            return preset(self.preset, names)
        except FeelstreamError:
            return preset(self.preset)


def value_in(scenario: Scenario, path: str) -> str:
    """The value of a field, as it would be typed."""
    return as_text(attrgetter(path)(scenario))
