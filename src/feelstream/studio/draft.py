"""The race that someone is setting up: a preset, overrides as after --set, two to four policies, a seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter

from feelstream.errors import FeelstreamError, ScenarioError
from feelstream.scenario import Scenario
from feelstream.scenario.files import preset
from feelstream.scenario.overrides import Override, as_text
from feelstream.studio.fields import FormField, field_named_in, policy_form, world_forms
from feelstream.studio.lanes import LiveLane

FEWEST, MOST = 2, 4


Entries = dict[str, str]  # section.field → what was typed for it
NAME = "policy.name"


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

    def base(self) -> Scenario:
        """The preset as it is, from which a form takes its defaults."""
        return preset(self.preset)

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
            number, unused = 2, label
            while unused in labels:
                unused, number = f"{label} ({number})", number + 1
            labels.append(unused)
        return labels

    def lanes(self) -> list[LiveLane]:
        """The lanes of the race, ready for the first round; slow where a data set must be read."""
        seed = self.seed_number()
        return [LiveLane(label, self.scenario(number), seed) for number, label in enumerate(self.labels())]

    def forms(self) -> tuple[dict[str, list[FormField]], list[list[FormField]]]:
        """(forms of the world, forms of each policy) with present values as defaults, where these are lawful."""
        return world_forms(self._shown(None)), [policy_form(self._shown(n)) for n in range(len(self.policies))]

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
