"""Scenarios: every setting of a run, frozen and checked, with the paper's values as defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from html import escape
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from feelstream.environment import IndependentChannel, Mobility
from feelstream.errors import ScenarioError
from feelstream.learning.settings import LearningSettings
from feelstream.model import physics
from feelstream.model.system import System
from feelstream.plugins import Inert, Plugin, Promise, Settings
from feelstream.policies import POLICIES, Policy
from feelstream.scenario.costs import check_costs, check_rule
from feelstream.scenario.fields import leaves
from feelstream.scenario.known import population_of, system_of
from feelstream.scenario.magnitudes import check_magnitudes
from feelstream.scenario.overrides import AnyOverride, Override, meant, overridden
from feelstream.scenario.population import DevicesSettings, Population
from feelstream.scenario.problems import explain
from feelstream.scenario.profiles import Profiles, check_profiles
from feelstream.scenario.reports import ReportsSettings, check_deadlines, check_needs, check_slot
from feelstream.scenario.sections import (
    CostsSettings,
    CpuSettings,
    DataSettings,
    RadioSettings,
    SystemSettings,
    TraceSettings,
    WorldSettings,
)


class Scenario(Settings):
    """Every setting of a run, except its seed; `print` shows it as a TOML file.

    Its fields are the sections of that file, as `scenario.system` and `scenario.policy`; docs/scenario.md lists
    what is in them.

    >>> scenario = Scenario().with_(V=0.2, rounds=5)
    >>> scenario
    Scenario(Lyapunov(size=2, V=0.2, cardinality='exact', metric='combined'), 40 devices, 5 rounds)
    >>> scenario.system.rounds
    5
    """

    system: SystemSettings = Field(default_factory=SystemSettings)
    cpu: CpuSettings = Field(default_factory=CpuSettings)
    radio: RadioSettings = Field(default_factory=RadioSettings)
    costs: CostsSettings = Field(default_factory=CostsSettings)
    data: DataSettings = Field(default_factory=DataSettings)
    devices: DevicesSettings = Field(default_factory=DevicesSettings)
    world: WorldSettings = Field(default_factory=WorldSettings)
    policy: Annotated[Policy, POLICIES] = POLICIES.chosen()
    learning: LearningSettings = Field(default_factory=LearningSettings)
    reports: ReportsSettings = Field(default_factory=ReportsSettings)
    trace: TraceSettings = Field(default_factory=TraceSettings)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        """What no single field can tell: the schedule fits the devices and the update fits the round."""
        if any(isinstance(part, Inert) for part in self.plugins()):  # it was checked before the run was made
            return self
        if self.policy.size > self.system.devices:
            raise ScenarioError(
                f"policy.size: must be at most system.devices = {self.system.devices}, not {self.policy.size}"
            )
        self._check_learning()
        check_needs(self)
        if self.autos:  # checked with the numbers, when they are known
            return self
        self._check_world()
        check_deadlines(self)
        check_costs(self.known_system(classes=1), self.policy, self.population.cycles)
        check_rule(self.costs.rule, self.policy, self.radio.block_bits)
        ranges = [self.cpu.frequency_hz, *(each.frequency_hz for each in self.devices.classes)]
        check_profiles(self.profiles, self.cpu.energy, self.population, ranges)
        check_magnitudes(self)
        system, population, n = self.known_system(classes=1), self.population, self.policy.smallest_plan
        needed_s = physics.compute_time_s(system.device_cycles, population.frequency_high_hz)
        needed_s = needed_s + system.surrogate_time_s(n)
        if not (needed_s <= system.time_s).any():
            quickest = int(np.argmin(needed_s - system.time_s))
            fastest = population.frequency_high_hz[quickest]
            needed = (needed_s + system.away_s)[quickest]
            left = "" if system.reports is None else f" of which reports leave {system.round_s:g} s,"
            raise ScenarioError(
                f"system.round_s: no update can ever fit a round of {self.system.round_s:g} s,{left} since computing "
                f"at cpu.frequency_hz = {fastest:g} and sending with {n} on the band takes {needed:.3g} s"
                f"{', with the download and the time after the deadline' if np.any(system.away_s) else ''}"
            )
        check_slot(self)
        return self

    @classmethod
    def of(cls, table: Mapping[str, Any], context: dict[str, Any] | None = None) -> Self:
        """A scenario from nested tables; every problem becomes one sentence that names the field.

        context: that of `plugins.stored_with` if the tables were read from a stored run, which may name no code to
        import.
        """
        try:
            return cls.model_validate(table, context=context)
        except ValidationError as problem:
            # Of a stored scenario nothing is looked up: it may name code.
            other = partial(meant, tables=table) if context is None else None
            raise ScenarioError(explain(problem, model=cls, meant=other)) from problem

    def with_(self, **changes: Any) -> Self:
        """This scenario with some fields changed, checked like any other.

        A field is named alone (`V`, `rounds`, `lr`) or with its section, as `**{"policy.V": 0.2}`; `policy`,
        `partition`, `arrivals` and `buffer` take a name, a class or an object. Another policy keeps the fields that
        both know.

        >>> Scenario().with_(V=0.2, rounds=5).policy
        Lyapunov(size=2, V=0.2, cardinality='exact', metric='combined')
        >>> Scenario().with_(policy="random", **{"policy.size": 4}).policy
        Random(size=4)
        >>> Scenario().with_(V=-5)
        Traceback (most recent call last):
        feelstream.errors.ScenarioError: policy.V: must be greater than 0, not -5
        """
        return self.overridden(Override(name, value) for name, value in changes.items())

    def overridden(self, overrides: Iterable[AnyOverride]) -> Self:
        """This scenario with overrides (`section.field=value`, or the type), checked like any other."""
        return type(self).of(overridden(self.tables(), overrides))

    def tables(self) -> dict[str, Any]:
        """Nested tables, with policy, partition, … as the objects they are: they need not have a name to import."""
        tables = {section: dict(getattr(self, section)) for section in type(self).model_fields if section != "policy"}
        return {**tables, "policy": self.policy}

    def _check_learning(self) -> None:
        """A server update may need what not every policy knows."""
        learning = self.learning
        if learning.engine != "none" and learning.server.needs_probability and not self.policy.knows_probability:
            raise ScenarioError(
                f"learning.server.kind: {learning.server.plugin_name()} needs a policy that knows with which "
                f"probability it schedules each device, such as random, and {self.policy.plugin_name()} does not"
            )

    def _check_world(self) -> None:
        """What the processes of the world do not go together with."""
        if self.radio.fading == "none" and self.world.channel != IndependentChannel():
            raise ScenarioError("world.channel.kind: must be independent where radio.fading = none")
        channel, mobility = self.world.channel, self.world.mobility
        knows = type(mobility).links is not Mobility.links or isinstance(mobility, Inert)
        if channel.needs_links and not knows:
            raise ScenarioError(
                f"world.channel.kind: {channel.plugin_name()} needs a world.mobility that says where devices are and "
                f"which are seen, such as tr38901, and {mobility.plugin_name()} does not"
            )
        says_power = self.policy.equal_shares or type(self.policy).most_power_w is not Policy.most_power_w
        if self.world.harvest.battery_j is not None and not says_power:
            raise ScenarioError(
                "world.harvest.kind: must be none for a policy with its own transmit, unless its most_power_w says "
                "what power no device exceeds; otherwise nothing bounds what a round takes from a battery"
            )

    def plugins(self) -> list[Plugin]:
        """Everything in this scenario that is picked by name."""
        return [leaf.value for leaf in leaves(type(self), self) if isinstance(leaf.value, Plugin)]

    def promises(self) -> dict[str, dict[str, Promise]]:
        """What its plug-ins promise, by group and flag: with this a stored run is understood without their code."""
        found = [(leaf.kind, leaf.value) for leaf in leaves(type(self), self) if isinstance(leaf.value, Plugin)]
        return {kind.group: part.plugin_promises() for kind, part in found if kind and part.plugin_flags}

    @property
    def autos(self) -> tuple[str, ...]:
        """Fields that wait for the model to give them a number."""
        found = {"cpu.cycles": self.cpu.cycles, "radio.update_bits": self.radio.update_bits}
        return tuple(field for field, value in found.items() if value == "auto")

    @cached_property
    def population(self) -> Population:
        """The constants of every device."""

        return population_of(self)

    @cached_property
    def profiles(self) -> Profiles:
        """The CPU core of every device, where it has one."""
        return Profiles.of(self.cpu.profile, self.devices.classes, self.system.devices)

    @property
    def frequency_range_hz(self) -> tuple[float, float]:
        """cpu.frequency_hz in numbers: the lowest and the highest of any device where profiles give the ranges."""
        if self.cpu.frequency_hz != "profile":
            return self.cpu.frequency_hz
        population = self.population
        return float(population.frequency_low_hz.min()), float(population.frequency_high_hz.max())

    @property
    def gain_range_db(self) -> tuple[float, float]:
        """The least and the largest mean gain that any device can have."""
        population = self.population
        return self.world.mobility.gain_range_db(
            float(population.gain_low_db.min()), float(population.gain_high_db.max())
        )

    @property
    def learns_reliability(self) -> bool:
        """Whether a simulated server learns who delivers: only where an update may not arrive."""
        return self.system.reliability == "learned" and not self.world.faults.never_fails

    def known_system(self, classes: int) -> System:
        """The constants that a server knows, as plain numbers and arrays."""
        return system_of(self, classes)

    def __repr__(self) -> str:
        return f"Scenario({self.policy!r}, {self.system.devices} devices, {self.system.rounds} rounds)"

    def __str__(self) -> str:
        from feelstream.scenario.files import to_toml

        return to_toml(self)

    def _repr_html_(self) -> str:
        """For a notebook: the policy in a line, and every section with its fields."""
        shown = escape(repr(self))
        rows = "".join(
            f"<tr><td>{section}</td><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>"
            for section in type(self).model_fields
            for name, value in self.as_dict()[section].items()
        )
        return f"<details><summary><b>{shown}</b></summary><table>{rows}</table></details>"

    def as_dict(self) -> dict[str, Any]:
        """Plain tables, lists, strings and numbers: what a TOML file holds."""
        return self.model_dump(mode="python")
