"""What to play: arms (a setting under a policy, one curve in a plot) × seeds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from feelstream.errors import ScenarioError
from feelstream.scenario import Scenario

MOST_RUNS = 1_000_000  # each has a directory of its own


@dataclass(frozen=True)
class Arm:
    """One curve in a plot: a setting under a policy."""

    label: str
    scenario: Scenario
    most_seeds: int | None = None  # only the first so many of the plan's seeds: a costly setting may have fewer


@dataclass(frozen=True)
class Plan:
    """Every arm with every seed. The same seed gives all arms the same world, so they compare in pairs."""

    name: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    command: str = field(default="", compare=False)  # that makes the same plan again, if it was one
    study: str = field(default="", compare=False)  # name of the study that it belongs to, if any: who reports on it

    def __post_init__(self) -> None:
        runs = len(self.arms) * len(self.seeds)  # before a tuple is made of a range
        if runs > MOST_RUNS:
            raise ScenarioError(
                f"the plan '{self.name}' has {len(self.arms):,} configurations and {len(self.seeds):,} seeds, "
                f"which are {runs:,} runs; at most {MOST_RUNS:,} are possible"
            )
        object.__setattr__(self, "arms", tuple(self.arms))
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if not self.arms or not self.seeds:
            raise ScenarioError(f"the plan '{self.name}' needs at least one configuration and one seed")
        for arm in self.arms:
            if arm.most_seeds is not None and not range(arm.most_seeds):  # of what is no number: TypeError
                raise ScenarioError(f"the configuration '{arm.label}' needs at least one seed, not {arm.most_seeds}")
        if min(self.seeds) < 0:
            raise ScenarioError(f"a seed must be 0 or more, not {min(self.seeds)}")
        for what, values in (("configuration", [arm.label for arm in self.arms]), ("seed", self.seeds)):
            value, count = Counter(values).most_common(1)[0]
            if count > 1:
                raise ScenarioError(f"the plan '{self.name}' has the {what} '{value}' {count} times")

    def seeds_of(self, arm: Arm) -> tuple[int, ...]:
        """The seeds that an arm is played with."""
        return self.seeds[: arm.most_seeds]

    @cached_property
    def _by_label(self) -> dict[str, Arm]:
        return {arm.label: arm for arm in self.arms}

    def arm(self, label: str) -> Arm:
        if label in self._by_label:
            return self._by_label[label]
        raise ScenarioError(
            f"the plan '{self.name}' has no configuration '{label}'; it has: "
            + ", ".join(arm.label for arm in self.arms)
        )
