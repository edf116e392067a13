"""The sections of a scenario, [system] to [trace]: each field with its meaning, unit, range and the paper's value.

A field's description is its documentation: it is written as the comment beside the field when a scenario is printed as
TOML.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from feelstream.data.datasets import NAMES
from feelstream.data.datasets.dataset import Normalise
from feelstream.data.features import FEATURES, Features
from feelstream.data.streaming.arrivals import Arrivals
from feelstream.data.streaming.buffers import BUFFERS, Buffer
from feelstream.data.streaming.partition import PARTITIONS, Partition
from feelstream.data.streaming.processes import ARRIVALS
from feelstream.environment.availability import AVAILABILITIES, FAULTS, Availability, Faults
from feelstream.environment.channel import CHANNELS, Channel
from feelstream.environment.frequency import FREQUENCIES, Frequency
from feelstream.environment.harvest import HARVESTS, Harvest
from feelstream.environment.mobility import MOBILITIES, Mobility
from feelstream.model.energy import ENERGY_LAWS, EnergyLaw
from feelstream.model.system import COST_RULES, CostRule
from feelstream.plugins import Count, Magnitude, NonNegative, Positive, Settings, near_or_all
from feelstream.policies import Policy
from feelstream.policies.base import TRAINING
from feelstream.resolved import Admission, Eligible, EmptySet, Fresh, Slot

Decibels = Annotated[float, Field(strict=True, ge=-1000, le=1000)]
FromModel = Positive | Literal["auto"]  # auto: what learning.model asks for; a number by the time that it is run
Share = Annotated[float, Field(strict=True, gt=0, le=1)]
Priority = Annotated[float, Field(strict=True, gt=0, le=1000)]


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise ValueError(f"must be [lowest, highest], but {pair[0]:g} > {pair[1]:g}")
    return pair


FrequencyRange = Annotated[tuple[Positive, Positive], AfterValidator(_ordered)] | Literal["profile"]
GainRange = Annotated[tuple[Decibels, Decibels], AfterValidator(_ordered)]


class SystemSettings(Settings):
    """[system]"""

    devices: Count = Field(default=40, description="K, number of devices; ≥ 1")
    rounds: Count = Field(default=40, description="T, number of rounds; ≥ 1")
    round_s: Positive = Field(default=4.0, description="T_rd, length and deadline of a round, s; > 0")
    energy_budget_j: NonNegative | tuple[NonNegative, ...] = Field(
        default=5e-4, description="E_avg, energy budget per device and round, J; ≥ 0; one number, or one per device"
    )

    queue: Literal["from_zero", "signed"] = Field(
        default="from_zero",
        description="energy queues: from_zero: never below 0; signed: without max[·, 0], as printed in Algorithm 1",
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
    energy: Annotated[EnergyLaw, ENERGY_LAWS] = ENERGY_LAWS.chosen()


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
    admission: Admission = Field(
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
    rule: Annotated[CostRule, COST_RULES] = COST_RULES.chosen()


def _known_dataset(name: str) -> str:
    if name not in NAMES and not name.lower().endswith(".npz"):
        raise ValueError(f"{name!r} is not known; {near_or_all(name, list(NAMES), ', or the path of an .npz file')}")
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
        default="auto", description="auto: inputs have mean 0 and deviation 1; none: floats as they are, x/255 of uint8"
    )
    eligible: Eligible = Field(
        default="any",
        description="who may be scheduled: any device (the paper), or with_data: those that hold a sample",
    )
    fresh: Fresh = Field(
        default="since_use",
        description="fresh data: since_use: arrived since the device was last used; per_round: this round",
    )
    empty_used: EmptySet = Field(
        default="zero",
        description="dissimilarity while nothing was used after round 1: zero: 0; vector: to the zero vector (1)",
    )
    empty_fresh: EmptySet = Field(
        default="zero",
        description="dissimilarity of a device with nothing fresh: zero: 0; vector: of the zero vector (1)",
    )
    partition: Annotated[Partition, PARTITIONS] = PARTITIONS.chosen()
    arrivals: Annotated[Arrivals, ARRIVALS] = ARRIVALS.chosen()
    buffer: Annotated[Buffer, BUFFERS] = BUFFERS.chosen()
    features: Annotated[Features, FEATURES] = FEATURES.chosen()


class WorldSettings(Settings):
    """[world]"""

    frequency: Annotated[Frequency, FREQUENCIES] = FREQUENCIES.chosen()
    channel: Annotated[Channel, CHANNELS] = CHANNELS.chosen()
    mobility: Annotated[Mobility, MOBILITIES] = MOBILITIES.chosen()
    availability: Annotated[Availability, AVAILABILITIES] = AVAILABILITIES.chosen()
    harvest: Annotated[Harvest, HARVESTS] = HARVESTS.chosen()
    faults: Annotated[Faults, FAULTS] = FAULTS.chosen()


class ReportsSettings(Settings):
    """[reports]"""

    slot_s: Positive = Field(
        default=0.5,
        description="length of the slot at the start of a round in which devices report, s; > 0, below system.round_s",
    )
    cycles: NonNegative = Field(
        default=20966400.0, description="CPU cycles of a report, beside those of training where it takes that; ≥ 0"
    )
    bits: Positive = Field(
        default=32.0, description="size of a device's report, bit, and of each number of a feature vector; > 0"
    )
    samples: Count = Field(default=32, description="samples that a device's report is made of, at most; ≥ 1")
    pace: Literal["full", "slow"] = Field(
        default="full",
        description="frequency of computing a report: full: all that the device has; slow: the least that is in time",
    )
    least_fading: NonNegative = Field(
        default=0.0, description="|g|²/β below which a device does not report, so that its cost is bounded; ≥ 0"
    )

    def slot(self, policy: Policy, data: DataSettings, classes: int) -> Slot | None:
        """The slot, where the policy asks for reports, or feature vectors are reported."""
        features, numbers = data.features, 1 if policy.probes else 0
        if features.reported:
            size = features.size(classes)  # where nothing is deleted, what is stored follows from what is new
            numbers += size if data.buffer.keeps and not features.of_model else 2 * size
        if not numbers:
            return None
        return Slot(
            slot_s=self.slot_s,
            cycles=self.cycles,
            bits=self.bits * numbers,
            trains=TRAINING in policy.needs,
            slow=self.pace == "slow",
            least_fading=self.least_fading,
            every=1 if policy.probes else features.every,
        )


class TraceSettings(Settings):
    """[trace]"""

    level: Literal["full", "rounds"] = Field(
        default="full", description="full: a row per device and round too; rounds: a row per round only"
    )
