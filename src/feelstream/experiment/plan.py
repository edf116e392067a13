"""What to play: arms (a setting under a policy, one curve in a plot) × seeds, and the runs that this comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from feelstream.errors import ScenarioError
from feelstream.scenario import Scenario

MOST_SEED = 2**63 - 1  # that a column of tables holds
MOST_RUNS = 1_000_000  # each has a directory of its own
SHORT = 50_000  # rows of devices × rounds up to which a run without learning is over in moments


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
    seeds: Sequence[int]
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
        if max(self.seeds) > MOST_SEED:
            raise ScenarioError(f"a seed must be at most {MOST_SEED}, not {max(self.seeds)}")
        for what, values in (("configuration", [arm.label for arm in self.arms]), ("seed", self.seeds)):
            value, count = Counter(values).most_common(1)[0]
            if count > 1:
                advice = "; give each a label of its own" if what == "configuration" else ""
                raise ScenarioError(f"the plan '{self.name}' has the {what} '{value}' {count} times{advice}")

    def seeds_of(self, arm: Arm) -> Sequence[int]:
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


@dataclass(frozen=True)
class Job:
    """One run to play, and where it will be stored."""

    scenario: Scenario
    table: dict[str, Any]  # the same as a worker receives it
    seed: int
    directory: Path
    made_with: dict[str, Any] = field(default_factory=dict)  # the identity of its scenario

    def work(self, here: bool) -> tuple[dict[str, Any], int, str | None, dict[str, Any]]:
        """What `worker.play` is given; here: whether it plays on this machine."""
        pinned = {what: self.made_with[what] for what in ("files", "data") if what in self.made_with}
        return self.table, self.seed, str(self.directory) if here else None, pinned


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """The longest first: one that begins last would leave all other workers idle at the end.

    Short ones come last, by seed: runs of one world meet the same arrivals, the last of which a process keeps.
    """
    short, long = list[Job](), list[Job]()
    for job in jobs:
        (short if is_short(job.scenario) else long).append(job)
    return sorted(long, key=lambda job: -expense(job.scenario)) + sorted(short, key=lambda job: job.seed)


def is_short(scenario: Scenario) -> bool:
    """No learning, no device table, and few rounds: the run is over before a checkpoint would be taken."""
    schedule_only = scenario.learning.engine == "none" and scenario.trace.level == "rounds"
    return schedule_only and scenario.system.devices * scenario.system.rounds <= SHORT


def expense(scenario: Scenario) -> float:
    """How long a run takes, roughly: samples that pass through the model, or device-rounds where nothing is learned.

    A sample that is trained on takes about three times as long as one that is tested; a test has about 10,000. A policy
    that may plan fewer devices than its size may also plan all.
    """
    system, policy, learning = scenario.system, scenario.policy, scenario.learning
    decided = system.rounds * system.devices / 100
    if learning.engine == "none":
        return decided
    steps, batch = learning.local.shape or (20, 32)
    scheduled = policy.size if policy.smallest_plan == policy.size else system.devices
    trained = system.rounds * scheduled * steps * batch
    return decided + 3 * trained + 10_000 * system.rounds / learning.eval_every
