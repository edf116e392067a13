"""Scenarios: every setting of a run, frozen and checked, with the paper's values as defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from html import escape
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from feelstream.data.features import Labels
from feelstream.errors import ScenarioError
from feelstream.learning.settings import LearningSettings
from feelstream.model import physics
from feelstream.model.system import System
from feelstream.plugins import Plugin, Settings, Trait, as_table
from feelstream.policies import POLICIES, Policy
from feelstream.scenario.checks import problems
from feelstream.scenario.devices import DevicesSettings, Population, Profiles, known_number
from feelstream.scenario.fields import first_problem, leaves
from feelstream.scenario.overrides import AnyOverride, Override, meant, overridden
from feelstream.scenario.sections import (
    CostsSettings,
    CpuSettings,
    DataSettings,
    RadioSettings,
    ReportsSettings,
    SystemSettings,
    TraceSettings,
    WorldSettings,
)
from feelstream.stored import Inert


class Scenario(Settings):
    """Every setting of a run, except its seed; `print` shows it as a TOML file.

    Its fields are the sections of that file, as `scenario.system` and `scenario.policy`; docs/reference/scenario.md
    lists what is in them.

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
        if not any(isinstance(part, Inert) for part in self.plugins()):  # those were checked before the run was made
            for problem in problems(self):
                raise ScenarioError(problem)
        return self

    @classmethod
    def of(cls, table: Mapping[str, Any], stored: Mapping[str, Any] | None = None) -> Self:
        """A scenario from nested tables; every problem becomes one sentence that names the field.

        stored: the traits of its plug-ins, if the tables were read from a stored run, which may name no code to
        import.
        """
        try:
            return cls.model_validate(table, context=stored)
        except ValidationError as problem:
            # Of a stored scenario nothing is looked up: it may name code.
            other = partial(meant, tables=table) if stored is None else None
            raise ScenarioError(first_problem(problem, model=cls, meant=other)) from problem

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

    def tables(self) -> Mapping[str, Any]:
        """Its sections by name, as the objects that they are."""
        return as_table(self)

    def plugins(self) -> list[Plugin]:
        """Everything in this scenario that is picked by name."""
        return [leaf.value for leaf in leaves(type(self), self) if isinstance(leaf.value, Plugin)]

    def traits(self) -> dict[str, dict[str, Trait]]:
        """The traits of its plug-ins, by group and name: with these a stored run is understood without their code."""
        found = [(leaf.kind, leaf.value) for leaf in leaves(type(self), self) if isinstance(leaf.value, Plugin)]
        return {kind.group: part.stated_traits() for kind, part in found if kind and part.plugin_traits}

    @property
    def autos(self) -> tuple[str, ...]:
        """Fields that wait for the model to give them a number."""
        found = {"cpu.cycles": self.cpu.cycles, "radio.update_bits": self.radio.update_bits}
        return tuple(field for field, value in found.items() if value == "auto")

    @cached_property
    def population(self) -> Population:
        """The constants of every device, by [devices]."""
        return Population.of(self)

    @cached_property
    def profiles(self) -> Profiles:
        """The CPU core of every device, where it has one."""
        return Profiles.of(self.cpu.profile, self.devices.classes, self.system.devices)

    @property
    def frequency_range_hz(self) -> tuple[float, float]:
        """The lowest and the highest CPU frequency of any device."""
        return float(self.population.frequency_low_hz.min()), float(self.population.frequency_high_hz.max())

    @property
    def gain_range_db(self) -> tuple[float, float]:
        """The least and the largest mean gain that any device can have."""
        low_db, high_db = self.population.gain_low_db, self.population.gain_high_db
        return self.world.mobility.gain_range_db(float(low_db.min()), float(high_db.max()))

    @property
    def learns_reliability(self) -> bool:
        """Whether a simulated server learns who delivers: only where an update may not arrive."""
        return self.system.reliability == "learned" and not self.world.faults.never_fails

    @property
    def deployed(self) -> Scenario:
        """The same where devices count features as they count labels, and report them with their replies: no slot."""
        if not self.data.features.reported:
            return self
        return Scenario.of({**self.tables(), "data": self.data.model_copy(update={"features": Labels()})})

    def known_system(self, classes: int) -> System:
        """What a server knows of it, as plain numbers and arrays."""
        population, slot = self.population, self.reports.slot(self.policy, self.data, classes)
        before_s, per_sample = slot.slot_s if slot else 0.0, self.costs.cycles_per_sample
        devices, update_bits = self.system.devices, known_number("radio.update_bits", self.radio.update_bits)
        download_s = self.costs.download_bits / population.download_bit_per_s
        return System(
            devices=devices,
            rounds=self.system.rounds,
            classes=classes,
            features=self.data.features.size(classes),
            round_s=self.system.round_s - before_s,
            energy_budget_j=population.energy_budget_j,
            cycles=np.broadcast_to(per_sample, devices) if per_sample else population.cycles,
            power_coefficient=self.cpu.power_coefficient,
            frequency_hz=self.frequency_range_hz,
            bandwidth_hz=self.radio.bandwidth_hz,
            noise_w_per_hz=self.radio.noise_w_per_hz,
            received_power_w=physics.watts(self.radio.received_power_dbm),
            rate_discount=self.radio.rate_discount,
            link_margin=self.radio.link_margin,
            admission=self.radio.admission,
            update_bits=update_bits,
            device_bits=np.broadcast_to(update_bits, devices),
            eligible=self.data.eligible,
            empty_used=self.data.empty_used,
            empty_fresh=self.data.empty_fresh,
            priority=population.priority,
            energy=self.cpu.energy,
            cores=self.profiles.cores,
            core=self.profiles.which if self.profiles.cores else None,
            deadline_s=population.deadline_s - before_s,
            download_s=download_s,
            download_j=self.costs.receive_power_w * download_s,
            power_max_w=population.power_max_w,
            cycles_per_sample=per_sample,
            reports=slot,
            block_bits=self.radio.block_bits,
            code_overhead=self.radio.code_overhead,
            signed_queues=self.system.queue == "signed",
        )

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
