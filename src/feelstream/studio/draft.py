"""The race that someone is setting up: a preset, overrides as after --set, two to four policies, a seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from feelstream.errors import FeelstreamError, ScenarioError
from feelstream.scenario import Scenario
from feelstream.scenario.files import preset
from feelstream.studio.fields import FormField, as_text, field_named_in, policy_form, world_forms
from feelstream.studio.lanes import LiveLane

FEWEST, MOST = 2, 4


@dataclass
class PolicyDraft:
    """One policy: its name and the fields that were set, `V` → `0.1`."""

    name: str
    fields: dict[str, str] = field(default_factory=dict)

    def overrides(self) -> list[str]:
        return [f"policy.name={self.name}", *(f"policy.{name}={value}" for name, value in self.fields.items())]


@dataclass
class Draft:
    """Everything as text: it becomes a scenario by the very code that reads the command line."""

    preset: str = "paper-iid"
    seed: str = "0"
    world: dict[str, str] = field(default_factory=dict)  # section.field → value
    policies: list[PolicyDraft] = field(default_factory=lambda: [PolicyDraft("lyapunov"), PolicyDraft("random")])

    def base(self) -> Scenario:
        """The preset as it is, from which a form takes its defaults."""
        return preset(self.preset)

    def scenario(self, policy: int) -> Scenario:
        """The scenario of one policy; ScenarioError says in a sentence what is wrong."""
        world = [f"{path}={value}" for path, value in self.world.items()]
        return preset(self.preset, [*world, *self.policies[policy].overrides()])

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
                own = {f"policy.{name}" for name in (*self.policies[number].fields, "name")}
                sentence = str(wrong)
                if sentence.startswith("policy"):
                    return number, field_named_in(sentence, own), sentence
                return None, field_named_in(sentence, self.world), sentence
        return None

    def labels(self) -> list[str]:
        """A name for each lane: the policy's, with the fields that tell equal ones apart."""
        many = Counter(policy.name for policy in self.policies)
        labels: list[str] = []
        for policy in self.policies:
            label = policy.name.rpartition(":")[2]
            if many[policy.name] > 1 and policy.fields:
                label += " " + " ".join(f"{name}={value}" for name, value in policy.fields.items())
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
        names = [f"{path}={value}" for path, value in self.world.items() if path.endswith(".kind")]
        if policy is not None:
            names.append(f"policy.name={self.policies[policy].name}")
        try:
            return preset(self.preset, names)
        except FeelstreamError:
            return preset(self.preset)


def value_in(scenario: Scenario, path: str) -> str:
    """The value of a field, as it would be typed."""
    found: object = scenario
    for part in path.split("."):
        found = getattr(found, part)
    return as_text(found)
