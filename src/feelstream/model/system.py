"""The constants of a run, as the server knows them, and the rule that says what a round costs each device.

Costs are cycles, bits of the update, time and energy of receiving the model. A rule is picked by name,
`[costs.rule] kind = "…"`. Ours, `settings`, says what the fields of a scenario say; a user's own may say anything of
each device and round.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from feelstream.arrays import Frozen, Ids, Ints, LabelCounts, Reals, read_only
from feelstream.guard import Array, One, Out, ask
from feelstream.model import physics
from feelstream.model.energy import Core, Cpus, Cubic, EnergyLaw, Pieces
from feelstream.plugins import LEAST, MOST, Kind, Plugin
from feelstream.resolved import Admission, Eligible, EmptySet, Slot


@dataclass(frozen=True)
class System(Frozen):
    """What does not change from round to round: the devices' number and budgets, CPU and radio constants.

    What is one for all devices is a view of (K,).

    Attributes:
        devices: K.
        rounds: T.
        classes: Of the labels.
        features: m, numbers in a feature vector: `classes`, unless `data.features` picks others.
        round_s: T_rd, for training and sending: what reports leave of the round, where the policy asks for them.
        energy_budget_j: (K,) E_k^avg, per round.
        cycles: (K,) c, of one round of training.
        power_coefficient: λ of the cubic law, E = λ c f².
        frequency_hz: The least and the greatest CPU frequency.
        bandwidth_hz: Of the whole band.
        noise_w_per_hz: N0.
        received_power_w: P0: every device sends with P0/β_k.
        rate_discount: γ, on the planned rate, for fading.
        link_margin: Admission tests the deadline at this fraction of the SNR.
        admission: paper: late devices are dropped one by one; largest: the largest set that is on time stays.
        update_bits: S, of one update, as the scenario says.
        device_bits: (K,) S_k of this round: S, unless a cost rule of the user's own says otherwise.
        deadline_s: (K,) until when an update must have arrived; the round's end, where nothing else is said.
        download_s: (K,) of receiving the model, before computing.
        download_j: (K,) of the same.
        power_max_w: (K,) what a device can send with.
        priority: (K,) factor on a device's importance.
        eligible: Who may be scheduled: a reading of the paper (docs/model.md, "Readings"), like the next two.
        empty_used: The dissimilarity of labels while nothing was used yet: 0, or to the zero vector.
        empty_fresh: That of a device with nothing fresh: 0, or of the zero vector.
        energy: What computing costs.
        cores: Profiles of CPU cores that occur.
        core: (K,) which of them each device has; None: all the first, where there is one.
        block_bits: Information in a block of an update; 0: no update is lost by packet errors.
        code_overhead: `update_bits` are this share more than the information in them.
        cycles_per_sample: Above 0: c is this times |S_k|, at least 1, and `cycles` is that of one sample.
        own_costs: Whether the costs of this round are those of a rule of the user's own.
        reports: The slot for reports, where the policy asks for them.
        energy_factor: (K,) on what the law says, from what devices measured; None: 1.
        signed_queues: Whether energy queues may fall below 0.
        reference: (m,) q, the mix of features against which balance is measured; above 0, sum 1; None: 1/m.
    """

    devices: int
    rounds: int
    classes: int
    features: int
    round_s: float
    energy_budget_j: Reals
    cycles: Reals
    power_coefficient: float
    frequency_hz: tuple[float, float]
    bandwidth_hz: float
    noise_w_per_hz: float
    received_power_w: float
    rate_discount: float
    link_margin: float
    admission: Admission
    update_bits: float
    device_bits: Reals
    deadline_s: Reals
    download_s: Reals
    download_j: Reals
    power_max_w: Reals
    priority: Reals
    eligible: Eligible = "any"
    empty_used: EmptySet = "zero"
    empty_fresh: EmptySet = "zero"
    energy: EnergyLaw = field(default_factory=Cubic)
    cores: tuple[Core, ...] = ()
    core: Ids | None = None
    block_bits: float = 0.0
    code_overhead: float = 0.0
    cycles_per_sample: float = 0.0
    own_costs: bool = False
    reports: Slot | None = None
    energy_factor: Reals | None = None
    signed_queues: bool = False
    reference: Reals | None = None

    @property
    def balanced_mix(self) -> Reals:
        """(m,) q, an array also where the mix is even."""
        return np.full(self.features, 1.0 / self.features) if self.reference is None else self.reference

    def learned(self, time_factor: Reals, energy_factor: Reals) -> System:
        """With computing that takes these factors, (K,), on the model's time and energy at any frequency.

        Time is c/f, so its factor is one on c, to which the energy of a frequency is proportional.
        """
        so_far = 1.0 if self.energy_factor is None else self.energy_factor
        factor = so_far * energy_factor / time_factor
        return replace(self, cycles=self.cycles * time_factor, energy_factor=factor)

    @cached_property
    def time_s(self) -> Reals:
        """(K,) T_k, of the round: what computing and sending may take together; T_rd by default."""
        return read_only(self.deadline_s - self.download_s)

    @property
    def away_s(self) -> Reals:
        """(K,) T_rd − T_k: the rest of the round; 0 by default."""
        return self.round_s - self.time_s

    @cached_property
    def deadlines_differ(self) -> bool:
        """Whether some devices have more of the round than others."""
        return bool((self.time_s != self.time_s[0]).any())

    @cached_property
    def downloads(self) -> bool:
        """Whether receiving the model takes time, or may do so in some round."""
        return self.own_costs or bool(self.download_s.any())

    @cached_property
    def limits_power(self) -> bool:
        return bool(np.isfinite(self.power_max_w).any())

    @cached_property
    def prefers(self) -> bool:
        """Whether the importance of any device has a factor other than 1."""
        return bool((self.priority != 1.0).any())

    @cached_property
    def cpus(self) -> Cpus:
        """What the energy law knows of all devices."""
        return Cpus(self.power_coefficient, self.cores, self.core)

    @property
    def noise_w(self) -> float:
        """B N0: the noise on the whole band."""
        return self.bandwidth_hz * self.noise_w_per_hz

    @property
    def airtime_s(self) -> float:
        """a = S_bits ln 2 / B: sending takes a / (ρ ln(1 + SNR)) on the share ρ of the band."""
        return self.update_bits * np.log(2) / self.bandwidth_hz

    @cached_property
    def period_s(self) -> float:
        """From the beginning of one round to that of the next."""
        return self.round_s if self.reports is None else self.round_s + self.reports.slot_s

    def compute_energy_j(self, f_hz: Reals, ids: Ids | slice = slice(None), cycles: float | None = None) -> Reals:
        """E_cmp by the energy law, at these frequencies: of all devices, or of `ids`.

        cycles: of what is computed, above 0 or nothing; None: of one round of local training.
        """
        training = self.cycles[ids]
        if cycles is not None:
            if cycles == 0:
                return np.zeros(len(training))
            training = np.full(len(training), cycles)
        cpus = self.cpus if self.core is None else self.cpus.take(ids)
        energy_j = ask(self.energy, "energy_j", cpus, training, f_hz, n=len(training))
        return energy_j if self.energy_factor is None else energy_j * self.energy_factor[ids]

    def most_compute_energy_j(self, f_hz: Reals, slowest_hz: Reals | None = None, cycles: float | None = None) -> Reals:
        """(K,) what computing exceeds at no frequency from slowest_hz to f_hz.

        slowest_hz: None: c/T_k, at which a device is just on time. cycles: as in `compute_energy_j`.
        """
        if cycles == 0:
            return np.zeros(self.devices)
        needed = self.cycles if cycles is None else np.full(self.devices, cycles)
        if slowest_hz is None:
            time_s = np.where(self.time_s > 0, self.time_s, self.round_s)  # who has none left is not available
            slowest_hz = self.cycles / time_s
        most_j = ask(self.energy, "most_j", self.cpus, needed, slowest_hz, f_hz, n=self.devices)
        return most_j if self.energy_factor is None else self.energy_factor * most_j

    def compute_pieces(self) -> Pieces | None:
        """The energy law piece by piece, (K, M), where it can be given so."""
        pieces = ask(self.energy, "pieces", self.cpus, self.cycles)
        return pieces if pieces is None or self.energy_factor is None else pieces.times(self.energy_factor)

    def planned_time_s(self, n: int) -> float | Reals:
        """T~(n): the planned transmission time when n devices share the band; (K,) where updates differ in size."""
        alike_s = self.surrogate_time_s(n)
        return alike_s * (self.device_bits / self.update_bits) if self.own_costs else alike_s

    def surrogate_time_s(self, n: int) -> float:
        """T~(n) = S_bits / R~(n), R~(n) = γ R at the mean received power P0: the same for all devices, as P_k β_k = P0.

        Of an update of update_bits. Infinite where the rate is too small for a floating-point number.
        """
        rate = physics.rate_bit_per_s(n, self.received_power_w, self.bandwidth_hz, self.noise_w_per_hz)
        planned = self.rate_discount * float(rate)
        return self.update_bits / planned if planned > 0 else math.inf


@dataclass(frozen=True)
class CostContext(Frozen):
    """What is known when a round begins.

    Attributes:
        system: Constants of the run, as the fields of the scenario give them.
        round: t, from 1.
        f_hz: (K,) frequencies that devices have in this round.
        beta: (K,) mean gains.
        stored: (K,) |S_k|.
        fresh: (K,) |B_k|.
        fresh_labels: (K, m) the fresh samples by class.
    """

    system: System
    round: int
    f_hz: Reals
    beta: Reals
    stored: Ints
    fresh: Ints
    fresh_labels: LabelCounts


@dataclass(frozen=True)
class RoundCosts:
    """What a round costs, (K,) each; None: as the fields of the scenario say.

    Attributes:
        cycles: c_k of local training; > 0.
        update_bits: S_k of the update; > 0.
        download_s: T_down,k of receiving the model; ≥ 0. A device with no time left is not available.
        download_j: E_down,k of the same; ≥ 0.
    """

    cycles: Reals | None = None
    update_bits: Reals | None = None
    download_s: Reals | None = None
    download_j: Reals | None = None


WORK, SPENT = Array(least=LEAST, most=MOST, none=True), Array(least=0, most=MOST, none=True)


def is_as_stated(rule: CostRule, found: RoundCosts, seen: CostContext, rng: np.random.Generator) -> str | None:
    """What its traits say to other code."""
    if rule.keeps_bits and found.update_bits is not None:
        return "says keeps_bits, and gave update_bits"
    if not rule.of_settings:
        return None
    usual = cycles_by_data(seen.system, seen.stored)
    alike = found.cycles is usual if usual is None or found.cycles is None else np.array_equal(found.cycles, usual)
    others = (found.update_bits, found.download_s, found.download_j)
    if alike and all(each is None for each in others):
        return None
    return "says of_settings, and gave what the fields of the scenario do not say"


def cycles_by_data(system: System, stored: Ints) -> Reals | None:
    """(K,) c_k of devices that hold so many samples, at least one; None where c does not follow them."""
    return system.cycles_per_sample * np.maximum(stored, 1) if system.cycles_per_sample else None


class CostRule(Plugin):
    """What a round costs each device, as a function of what is known when it begins."""

    plugin_field: ClassVar[str] = "costs.rule"
    contract: ClassVar[Mapping[str, Out]] = {
        "costs": Out(One(RoundCosts, cycles=WORK, update_bits=WORK, download_s=SPENT, download_j=SPENT), is_as_stated)
    }
    plugin_traits: ClassVar[tuple[str, ...]] = ("of_settings", "keeps_bits")

    of_settings: ClassVar[bool] = False  # the fields of a scenario say it all, so nothing of it is stored
    keeps_bits: ClassVar[bool] = False  # never gives update_bits: policies that plan with equal updates may be used

    @abstractmethod
    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        """Of this round. rng: keyed by seed and round, the only source of chance."""


class AsSettings(CostRule):
    """What the fields of the scenario say: c_k(t) = cycles_per_sample·max(|S_k|, 1) where that field is above 0."""

    of_settings: ClassVar[bool] = True
    keeps_bits: ClassVar[bool] = True

    def costs(self, seen: CostContext, rng: np.random.Generator) -> RoundCosts:
        return RoundCosts(cycles=cycles_by_data(seen.system, seen.stored))


COST_RULES = Kind("cost", "cost_rules", CostRule, {"settings": AsSettings})


def system_of_round(rule: CostRule, seen: CostContext, rng: np.random.Generator) -> System:
    """The system as it is in this round."""
    found = ask(rule, "costs", seen, rng, at=seen.round, K=seen.system.devices)
    return with_costs(seen.system, found, own=not rule.of_settings, stored=seen.stored)


def with_costs(system: System, found: RoundCosts, own: bool, stored: Ints) -> System:
    """The system with these costs. own: whether a rule of the user's own gave them."""
    given = {
        "cycles": cycles_by_data(system, stored) if found.cycles is None else found.cycles,
        "device_bits": found.update_bits,
        "download_s": found.download_s,
        "download_j": found.download_j,
    }
    given = {name: values.astype(float) for name, values in given.items() if values is not None}
    return replace(system, own_costs=own, **given) if own or given else system
