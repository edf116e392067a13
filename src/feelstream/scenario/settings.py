"""Scenarios: every setting of a run, frozen and checked, with the paper's values as defaults.

A field's description is its documentation: it states meaning, unit and range, and is written as the comment beside
the field when a scenario is printed as TOML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from html import escape
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, ValidationError, model_validator

from feelstream.arrays import Reals
from feelstream.data.datasets import NAMES
from feelstream.data.datasets.dataset import Normalise
from feelstream.data.streaming import ARRIVALS, BUFFERS, PARTITIONS
from feelstream.data.streaming.arrivals import Arrivals, TruncatedNormal
from feelstream.data.streaming.buffers import Buffer, Keep
from feelstream.data.streaming.partition import IID, Partition
from feelstream.environment import (
    AVAILABILITIES,
    CHANNELS,
    FAULTS,
    FREQUENCIES,
    HARVESTS,
    MOBILITIES,
    Always,
    Availability,
    Channel,
    Faults,
    Frequency,
    Harvest,
    IndependentChannel,
    Mobility,
    NoFaults,
    NoHarvest,
    Static,
    UniformFrequency,
)
from feelstream.errors import ScenarioError
from feelstream.learning.settings import LearningSettings
from feelstream.model import physics
from feelstream.model.energy import ENERGY_LAWS, Cubic, EnergyLaw
from feelstream.model.system import System
from feelstream.plugins import (
    Count,
    Inert,
    Magnitude,
    NonNegative,
    Plugin,
    PluginRegistry,
    Positive,
    Promise,
    Settings,
    did_you_mean,
    from_table,
)
from feelstream.policies import POLICIES, Lyapunov, Policy
from feelstream.scenario.costs import check_costs
from feelstream.scenario.magnitudes import check_magnitudes
from feelstream.scenario.overrides import AnyOverride, from_keywords, overridden
from feelstream.scenario.population import (
    Decibels,
    DevicesSettings,
    FrequencyRange,
    FromModel,
    GainRange,
    Population,
    known_number,
)  # fmt: skip
from feelstream.scenario.problems import explain
from feelstream.scenario.profiles import Profiles, check_profiles, check_ranges, range_hz, with_numbers
from feelstream.scenario.reports import ReportsSettings, check_deadlines, check_needs, check_slot


class SystemSettings(Settings):
    """[system]"""

    devices: Count = Field(default=40, description="K, number of devices; ≥ 1")
    rounds: Count = Field(default=40, description="T, number of rounds; ≥ 1")
    round_s: Positive = Field(default=4.0, description="T_rd, length and deadline of a round, s; > 0")
    energy_budget_j: NonNegative | tuple[NonNegative, ...] = Field(
        default=5e-4, description="E_avg, energy budget per device and round, J; ≥ 0; one number, or one per device"
    )

    reliability: Literal["learned", "ignored"] = Field(
        default="learned",
        description="where updates may not arrive: learned: who delivers counts, and who fails rests; ignored: neither",
    )

    @model_validator(mode="after")
    def _one_budget_each(self) -> Self:
        if isinstance(self.energy_budget_j, tuple) and len(self.energy_budget_j) != self.devices:
            raise ValueError(
                f".energy_budget_j: must be one number or a list of {self.devices}, one per device, "
                f"not a list of {len(self.energy_budget_j)}"
            )
        return self


class CpuSettings(Settings):
    """[cpu]"""

    cycles: FromModel = Field(
        default=419328000.0,
        description="c, CPU cycles of one round of local training; > 0, or auto: by model, steps and batch",
    )
    power_coefficient: Positive = Field(
        default=1e-27, description="λ in the energy λ c f² of the cubic law, J s² per cycle³; > 0"
    )
    frequency_hz: FrequencyRange = Field(
        default=(2e7, 1.52e9),
        description="range of the frequency a device has in a round, Hz; [lowest, highest], > 0, or profile",
    )
    profile: str = Field(
        default="",
        description="a real core, by name (docs/energy-laws.md) or as the path of a .toml file: operating points and "
        "coefficient of the voltage law; empty: none",
    )
    energy: Annotated[SerializeAsAny[EnergyLaw], _table(ENERGY_LAWS, Cubic)] = Field(default_factory=Cubic)


class RadioSettings(Settings):
    """[radio]"""

    bandwidth_hz: Positive = Field(default=20e6, description="B, shared by all that transmit in a round, Hz; > 0")
    noise_w_per_hz: Positive = Field(default=1e-13, description="N0, noise power density, W/Hz; > 0")
    received_power_dbm: Decibels = Field(
        default=28.0, description="P0, mean power that arrives from a device, dBm; -1000 to 1000"
    )
    gain_db: GainRange = Field(
        default=(-5.0, 3.0),
        description="range of the mean channel gain β of a device, dB; [lowest, highest], -1000 to 1000",
    )
    power_max_w: Positive | None = Field(
        default=None,
        description="greatest transmit power of a device, W; > 0; a device that needs more for P0 is not available; "
        "unset: no limit",
    )
    fading: Literal["rayleigh", "none"] = Field(
        default="rayleigh", description="rayleigh: the gain of a round is β·Exp(1); none: it is β"
    )
    rate_discount: Positive = Field(
        default=1.0, description="γ, factor on the planned rate that allows for fading; > 0, usually ≤ 1"
    )
    link_margin: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False), Magnitude] = Field(
        default=3.0,
        description="admission tests the deadline at this fraction of the SNR: 3 in the paper, 1 is exact; ≥ 1",
    )
    block_bits: NonNegative = Field(
        default=0.0,
        description="bits of information in a block of an update, which may fail and is sent again while there is time "
        "(finite blocklength, docs/worlds.md); ≥ 0; 0: nothing fails",
    )
    code_overhead: NonNegative = Field(
        default=0.05, description="by which share update_bits are more than the information in them; ≥ 0"
    )
    admission: Literal["paper", "largest"] = Field(
        default="paper",
        description="paper: drop late devices one by one; largest: keep the largest set that is on time",
    )
    update_bits: FromModel = Field(
        default=698880.0,
        description="S, size of a model update, bit; > 0, or auto: what learning.server has devices send of the model",
    )


class CostsSettings(Settings):
    """[costs]"""

    download_bits: NonNegative = Field(
        default=0.0, description="bits of the model that a scheduled device receives before it computes; ≥ 0"
    )
    download_bit_per_s: Positive = Field(default=1e8, description="rate at which a device receives them, bit/s; > 0")
    receive_power_w: NonNegative = Field(default=0.0, description="power of a device while it receives, W; ≥ 0")
    cycles_per_sample: NonNegative = Field(
        default=0.0,
        description="CPU cycles of a round for each sample that a device holds, in place of cpu.cycles; ≥ 0; 0: not so",
    )


def _table(registry: PluginRegistry, default: type[Plugin]) -> BeforeValidator:
    return BeforeValidator(from_table(registry, default))


def _known_dataset(name: str) -> str:
    if name not in NAMES and not name.lower().endswith(".npz"):
        raise ValueError(
            f"{name!r} is not known; {did_you_mean(name, list(NAMES))}allowed: {', '.join(NAMES)}, "
            "or the path of an .npz file"
        )
    return name


class DataSettings(Settings):
    """[data]"""

    dataset: Annotated[str, AfterValidator(_known_dataset)] = Field(
        default="mnist", description=f"{', '.join(NAMES)}, or the path of an .npz file"
    )
    samples: Count = Field(
        default=6000, description="training samples of the synthetic data set (others: ignored); ≥ 1"
    )
    normalise: Normalise = Field(
        default="auto",
        description="auto: inputs have mean 0 and deviation 1; none: floats as they are, x/255 of uint8",
    )
    eligible: Literal["any", "with_data"] = Field(
        default="any",
        description="who may be scheduled: any device (the paper), or with_data: those that hold a sample",
    )
    fresh: Literal["since_use", "per_round"] = Field(
        default="since_use",
        description="fresh data: since_use: arrived since the device was last used; per_round: this round",
    )
    empty_used: Literal["zero", "vector"] = Field(
        default="zero",
        description="dissimilarity while nothing was used after round 1: zero: 0; vector: to the zero vector (1)",
    )
    empty_fresh: Literal["zero", "vector"] = Field(
        default="zero",
        description="dissimilarity of a device with nothing fresh: zero: 0; vector: of the zero vector (1)",
    )
    partition: Annotated[SerializeAsAny[Partition], _table(PARTITIONS, IID)] = Field(default_factory=IID)
    arrivals: Annotated[SerializeAsAny[Arrivals], _table(ARRIVALS, TruncatedNormal)] = Field(
        default_factory=TruncatedNormal
    )
    buffer: Annotated[SerializeAsAny[Buffer], _table(BUFFERS, Keep)] = Field(default_factory=Keep)


class WorldSettings(Settings):
    """[world]"""

    frequency: Annotated[SerializeAsAny[Frequency], _table(FREQUENCIES, UniformFrequency)] = Field(
        default_factory=UniformFrequency
    )
    channel: Annotated[SerializeAsAny[Channel], _table(CHANNELS, IndependentChannel)] = Field(
        default_factory=IndependentChannel
    )
    mobility: Annotated[SerializeAsAny[Mobility], _table(MOBILITIES, Static)] = Field(default_factory=Static)
    availability: Annotated[SerializeAsAny[Availability], _table(AVAILABILITIES, Always)] = Field(
        default_factory=Always
    )
    harvest: Annotated[SerializeAsAny[Harvest], _table(HARVESTS, NoHarvest)] = Field(default_factory=NoHarvest)
    faults: Annotated[SerializeAsAny[Faults], _table(FAULTS, NoFaults)] = Field(default_factory=NoFaults)


class TraceSettings(Settings):
    """[trace]"""

    level: Literal["full", "rounds"] = Field(
        default="full", description="full: a row per device and round too; rounds: a row per round only"
    )


class Scenario(Settings):
    """Every setting of a run, except its seed."""

    system: SystemSettings = Field(default_factory=SystemSettings)
    cpu: CpuSettings = Field(default_factory=CpuSettings)
    radio: RadioSettings = Field(default_factory=RadioSettings)
    costs: CostsSettings = Field(default_factory=CostsSettings)
    data: DataSettings = Field(default_factory=DataSettings)
    devices: DevicesSettings = Field(default_factory=DevicesSettings)
    world: WorldSettings = Field(default_factory=WorldSettings)
    policy: Annotated[SerializeAsAny[Policy], _table(POLICIES, Lyapunov)] = Field(default_factory=Lyapunov)
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
        ranges = [self.cpu.frequency_hz, *(each.frequency_hz for each in self.devices.classes)]
        check_profiles(self.profiles, self.cpu.energy, self.population, ranges)
        check_magnitudes(self)
        system, population, n = self.known_system(classes=1), self.population, self.policy.smallest_plan
        computing_s = physics.compute_time_s(system.device_cycles, population.frequency_high_hz) + system.away_s
        quickest = int(np.argmin(computing_s))
        fastest = population.frequency_high_hz[quickest]
        needed = computing_s[quickest] + system.surrogate_time_s(n)
        if not needed <= system.round_s:
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
            raise ScenarioError(explain(problem, model=cls)) from problem

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
        return self.overridden(from_keywords(changes, self.tables(), type(self)))

    def overridden(self, overrides: Iterable[AnyOverride]) -> Self:
        """This scenario with overrides (`section.field=value`, or the type), checked like any other."""
        return type(self).of(overridden(self.tables(), overrides, type(self)))

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
        says_power = self.policy.equal_shares or type(self.policy).most_power_w is not Policy.most_power_w
        if self.world.harvest.battery_j is not None and not says_power:
            raise ScenarioError(
                "world.harvest.kind: must be none for a policy with its own transmit, unless its most_power_w says "
                "what power no device exceeds; otherwise nothing bounds what a round takes from a battery"
            )

    def plugins(self) -> list[Plugin]:
        """Everything in this scenario that is picked by name."""
        sections = (getattr(self, section) for section in type(self).model_fields)
        parts = [part for section in sections for part in (section, *dict(section).values())]
        return [part for part in parts if isinstance(part, Plugin)]

    def promises(self) -> dict[str, dict[str, Promise]]:
        """What its plug-ins promise, by group and flag: with this a stored run is understood without their code."""
        return {part.plugin_group: part.plugin_promises() for part in self.plugins() if part.plugin_flags}

    @property
    def autos(self) -> tuple[str, ...]:
        """Fields that wait for the model to give them a number."""
        found = {"cpu.cycles": self.cpu.cycles, "radio.update_bits": self.radio.update_bits}
        return tuple(field for field, value in found.items() if value == "auto")

    @cached_property
    def population(self) -> Population:
        """The constants of every device."""

        def everyone(value: Any) -> np.ndarray:
            return np.broadcast_to(np.asarray(value, float), self.system.devices)

        cpu = self.cpu
        low_hz, high_hz = range_hz(cpu.frequency_hz, cpu.profile)
        population = with_numbers(self.devices, cpu.frequency_hz, cpu.profile).applied_to(
            Population(
                cycles=everyone(known_number("cpu.cycles", self.cpu.cycles)),
                energy_budget_j=everyone(self.system.energy_budget_j),
                frequency_low_hz=everyone(low_hz),
                frequency_high_hz=everyone(high_hz),
                gain_low_db=everyone(self.radio.gain_db[0]),
                gain_high_db=everyone(self.radio.gain_db[1]),
                arrivals=everyone(1.0),
                priority=everyone(1.0),
                deadline_s=everyone(self.system.round_s),
                power_max_w=everyone(np.inf if self.radio.power_max_w is None else self.radio.power_max_w),
                download_bit_per_s=everyone(self.costs.download_bit_per_s),
            )
        )
        check_ranges(population)
        return population

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
        population, slot = self.population, self.reports.slot(self.policy)
        before_s = slot.slot_s if slot else 0.0
        download_s = self.costs.download_bits / population.download_bit_per_s
        return System(
            devices=self.system.devices,
            rounds=self.system.rounds,
            classes=classes,
            round_s=self.system.round_s - before_s,
            energy_budget_j=population.energy_budget_j,
            cycles=self.costs.cycles_per_sample or _one_if_alike(population.cycles),
            power_coefficient=self.cpu.power_coefficient,
            frequency_hz=(float(population.frequency_low_hz.min()), float(population.frequency_high_hz.max())),
            bandwidth_hz=self.radio.bandwidth_hz,
            noise_w_per_hz=self.radio.noise_w_per_hz,
            received_power_w=physics.watts(self.radio.received_power_dbm),
            rate_discount=self.radio.rate_discount,
            link_margin=self.radio.link_margin,
            admission=self.radio.admission,
            update_bits=known_number("radio.update_bits", self.radio.update_bits),
            eligible=self.data.eligible,
            empty_used=self.data.empty_used,
            empty_fresh=self.data.empty_fresh,
            priority=_one_if_alike(population.priority),
            energy=self.cpu.energy,
            cores=self.profiles.cores,
            core=self.profiles.which if self.profiles.cores else None,
            deadline_s=_one_if_alike(population.deadline_s - before_s),
            download_s=_one_if_alike(download_s),
            download_j=_one_if_alike(self.costs.receive_power_w * download_s),
            power_max_w=_one_if_alike(population.power_max_w),
            cycles_per_sample=self.costs.cycles_per_sample,
            reports=slot,
            block_bits=self.radio.block_bits,
            code_overhead=self.radio.code_overhead,
        )

    def _repr_html_(self) -> str:
        """For a notebook: the policy in a line, and every section with its fields."""
        shown = escape(f"Scenario({self.policy!r}, {self.system.devices} devices, {self.system.rounds} rounds)")
        rows = "".join(
            f"<tr><td>{section}</td><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>"
            for section in type(self).model_fields
            for name, value in self.as_dict()[section].items()
        )
        return f"<details><summary><b>{shown}</b></summary><table>{rows}</table></details>"

    def as_dict(self) -> dict[str, Any]:
        """Plain tables, lists, strings and numbers: what a TOML file holds."""
        return self.model_dump(mode="python")


def _one_if_alike(values: Reals) -> float | Reals:
    """The number that all devices share, or (K,)."""
    return float(values[0]) if (values == values[0]).all() else values
