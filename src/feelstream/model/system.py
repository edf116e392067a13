"""The constants of a run, as the server knows them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from feelstream.arrays import Frozen, Ids, Reals, frozen
from feelstream.guard import ask
from feelstream.model import physics
from feelstream.model.energy import Core, Cpus, Cubic, EnergyLaw, Pieces
from feelstream.model.reporting import Slot


@dataclass(frozen=True)
class System(Frozen):
    """What does not change from round to round: the devices' number and budgets, CPU and radio constants.

    Attributes:
        devices: K.
        rounds: T.
        classes: m, of the labels.
        round_s: T_rd, for training and sending: what reports leave of the round, where the policy asks for them.
        energy_budget_j: (K,) E_k^avg, per round.
        cycles: c, of one round of training; one for all or (K,).
        power_coefficient: λ of the cubic law, E = λ c f².
        frequency_hz: The least and the greatest CPU frequency.
        bandwidth_hz: Of the whole band.
        noise_w_per_hz: N0.
        received_power_w: P0: every device sends with P0/β_k.
        rate_discount: γ, on the planned rate, for fading.
        link_margin: Admission tests the deadline at this fraction of the SNR.
        admission: paper: late devices are dropped one by one; largest: the largest set that is on time stays.
        update_bits: S, of one update.
        eligible: Who may be scheduled: a reading of the paper (docs/model.md, "Readings"), like the next two.
        empty_used: The dissimilarity of labels while nothing was used yet: 0, or to the zero vector.
        empty_fresh: That of a device with nothing fresh: 0, or of the zero vector.
        priority: Factor on a device's importance; one for all or (K,).
        energy: What computing costs.
        cores: Profiles of CPU cores that occur.
        core: (K,) which of them each device has; None: all the first, where there is one.
        deadline_s: Until when an update must have arrived; one for all or (K,); None: the round's end.
        download_s: Of receiving the model, before computing; one for all or (K,).
        download_j: Of the same.
        power_max_w: What a device can send with; one for all or (K,).
        block_bits: Information in a block of an update; 0: no update is lost by packet errors.
        code_overhead: `update_bits` are this share more than the information in them.
        cycles_per_sample: Above 0: c is this times |S_k|, at least 1, and `cycles` is that of one sample.
        device_bits: (K,) S_k of this round where a cost rule of the user's own gives the costs.
        reports: The slot for reports, where the policy asks for them.
        energy_factor: On what the law says, from what devices measured; one for all or (K,).
    """

    devices: int
    rounds: int
    classes: int
    round_s: float
    energy_budget_j: Reals
    cycles: float | Reals
    power_coefficient: float
    frequency_hz: tuple[float, float]
    bandwidth_hz: float
    noise_w_per_hz: float
    received_power_w: float
    rate_discount: float
    link_margin: float
    admission: Literal["paper", "largest"]
    update_bits: float
    eligible: Literal["any", "with_data"] = "any"
    empty_used: Literal["zero", "vector"] = "zero"
    empty_fresh: Literal["zero", "vector"] = "zero"
    priority: float | Reals = 1.0
    energy: EnergyLaw = field(default_factory=Cubic)
    cores: tuple[Core, ...] = ()
    core: Ids | None = None
    deadline_s: float | Reals | None = None
    download_s: float | Reals = 0.0
    download_j: float | Reals = 0.0
    power_max_w: float | Reals = np.inf
    block_bits: float = 0.0
    code_overhead: float = 0.0
    cycles_per_sample: float = 0.0
    device_bits: Reals | None = None
    reports: Slot | None = None
    energy_factor: float | Reals = 1.0

    def learned(self, time_factor: Reals, energy_factor: Reals) -> System:
        """With computing that takes these factors, (K,), on the model's time and energy at any frequency.

        Time is c/f, so its factor is one on c, to which the energy of a frequency is proportional.
        """
        factor = self.energy_factor * energy_factor / time_factor
        return replace(self, cycles=self.device_cycles * time_factor, energy_factor=factor)

    @cached_property
    def device_cycles(self) -> Reals:
        """(K,) c of each device."""
        return np.broadcast_to(np.asarray(self.cycles, float), self.devices)

    @cached_property
    def device_priority(self) -> Reals:
        """(K,) priority of each device."""
        return np.broadcast_to(np.asarray(self.priority, float), self.devices)

    @cached_property
    def time_s(self) -> float | Reals:
        """T_k, of the round: what computing and sending may take together; one for all, T_rd by default, or (K,)."""
        return frozen((self.round_s if self.deadline_s is None else self.deadline_s) - self.download_s)

    @cached_property
    def away_s(self) -> float | Reals:
        """T_rd − T_k: the rest of the round; 0 by default."""
        return frozen(self.round_s - self.time_s)

    def time_of(self, ids: Ids) -> float | Reals:
        """T_k of these devices."""
        return _of(self.time_s, ids)

    def download_of(self, ids: Ids) -> tuple[float | Reals, float | Reals]:
        """Seconds and joules of receiving the model, of these devices."""
        return _of(self.download_s, ids), _of(self.download_j, ids)

    @cached_property
    def downloads(self) -> bool:
        """Whether receiving the model takes time, or may do so in some round."""
        return self.own_costs or bool(np.any(self.download_s))

    @property
    def own_costs(self) -> bool:
        """Whether the costs of this round are those of a rule of the user's own."""
        return self.device_bits is not None

    def bits_of(self, ids: Ids) -> float | Reals:
        """S_k of these devices."""
        return self.update_bits if self.device_bits is None else self.device_bits[ids]

    @cached_property
    def limits_power(self) -> bool:
        return bool(np.any(np.isfinite(self.power_max_w)))

    @property
    def noise_w(self) -> float:
        """B N0: the noise on the whole band."""
        return self.bandwidth_hz * self.noise_w_per_hz

    @property
    def airtime_s(self) -> float:
        """a = S_bits ln 2 / B: sending takes a / (ρ ln(1 + SNR)) on the share ρ of the band."""
        return self.update_bits * np.log(2) / self.bandwidth_hz

    @property
    def period_s(self) -> float:
        """From the beginning of one round to that of the next."""
        return self.round_s if self.reports is None else self.round_s + self.reports.slot_s

    def compute_energy_j(self, f_hz: Reals, ids: Ids | None = None, cycles: float | None = None) -> Reals:
        """E_cmp by the energy law, at these frequencies: of all devices, or of `ids`.

        cycles: of what is computed, above 0 or nothing; None: of one round of local training.
        """
        cpus, training = self._asked(ids)
        if cycles is not None:
            if cycles == 0:
                return np.zeros(len(training))
            training = np.full(len(training), cycles)
        energy_j = ask(self.energy, "energy_j", cpus, training, f_hz, n=len(training))
        if isinstance(self.energy_factor, np.ndarray):
            return energy_j * (self.energy_factor if ids is None else self.energy_factor[ids])
        return energy_j if self.energy_factor == 1.0 else energy_j * self.energy_factor

    def most_compute_energy_j(self, f_hz: Reals) -> Reals:
        """(K,) what computing exceeds at no frequency up to f_hz that leaves a device on time: c/T_k and above."""
        time_s = np.where(self.time_s > 0, self.time_s, self.round_s)  # who has none left is not available
        slowest_hz = self.device_cycles / time_s
        return self.energy_factor * ask(self.energy, "most_j", *self._asked(None), slowest_hz, f_hz, n=self.devices)

    def compute_pieces(self) -> Pieces | None:
        """The energy law piece by piece, (K, M), where it can be given so."""
        pieces = ask(self.energy, "pieces", *self._asked(None))
        if pieces is None or (not isinstance(self.energy_factor, np.ndarray) and self.energy_factor == 1.0):
            return pieces
        return pieces.times(np.broadcast_to(np.asarray(self.energy_factor, float), self.devices))

    def _asked(self, ids: Ids | None) -> tuple[Cpus, Reals]:
        """What the law asks of these devices: their CPUs and cycles."""
        cpus, cycles = Cpus(self.power_coefficient, self.cores, self.core), self.device_cycles
        return (cpus, cycles) if ids is None else (cpus.take(ids), cycles[ids])

    def surrogate_time_s(self, n: int) -> float:
        """T~(n): the planned transmission time when n devices share the band."""
        radio = self.received_power_w, self.bandwidth_hz, self.noise_w_per_hz
        return physics.surrogate_time_s(n, *radio, self.rate_discount, self.update_bits)

    def planned_time_s(self, n: int) -> float | Reals:
        """The same for each device, (K,), where updates differ in size."""
        alike_s = self.surrogate_time_s(n)
        return alike_s if self.device_bits is None else alike_s * (self.device_bits / self.update_bits)


def _of(values: float | Reals, ids: Ids) -> float | Reals:
    return values[ids] if isinstance(values, np.ndarray) else values
