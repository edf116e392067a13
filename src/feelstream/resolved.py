"""What the settings of a run came to, in numbers: `resolved` in run.json; constants.parquet has what devices differ in.

A run states it when it is prepared (run/resolving.py), simulated and deployed alike. Who reads a run goes by these
numbers and need not know how classes of devices, profiles, tables and "auto" become them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# Readings of the paper (docs/model.md), as a scenario picks them.
Admission = Literal["paper", "largest"]
Eligible = Literal["any", "with_data"]
EmptySet = Literal["zero", "vector"]
Fresh = Literal["since_use", "per_round"]

Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeast0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1)]


class Part(BaseModel):
    """Fields as stored: none but these, each of its type."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Radio(Part):
    bandwidth_hz: Above0
    noise_w_per_hz: Above0
    received_power_w: Above0  # P0
    fading: Literal["rayleigh", "none"]
    rate_discount: Above0
    link_margin: Above0
    admission: Admission
    update_bits: Above0  # S, of one update
    block_bits: AtLeast0  # information in a block; 0: no update is lost by packet errors
    code_overhead: AtLeast0


class Slot(Part):
    """For reports, at the start of a round."""

    slot_s: Above0
    cycles: AtLeast0  # c_r of a report, beside those of training
    bits: Above0  # b
    trains: bool  # a report takes a whole local training
    slow: bool  # computed at the least frequency that is in time, else at all that the device has
    least_fading: AtLeast0  # |g|²/β below which a device does not report
    every: Whole  # devices are asked in rounds 1, 1 + every, …


class Core(Part):
    """Operating points of a kind of CPU core, the lowest first."""

    frequency_hz: Annotated[tuple[Above0, ...], Field(min_length=1)]
    voltage_v: Annotated[tuple[Above0, ...], Field(min_length=1)]
    capacitance_f: Above0  # C_eff, J/V² per cycle
    leakage_w: AtLeast0


class Law(Part):
    """What computing costs. own: a user's, of which nothing is stored."""

    kind: Literal["cubic", "voltage", "own"]
    power_coefficient: AtLeast0  # λ
    discrete: bool  # no voltages but those of the operating points
    cores: tuple[Core, ...]


class Data(Part):
    """Who may be scheduled by its data, and what a buffer promises."""

    classes: Whole | None
    eligible: Eligible
    empty_used: EmptySet
    empty_fresh: EmptySet
    fresh: Fresh
    keeps: bool  # what came in never leaves, except all at once where it `empties_on_use`
    empties_on_use: bool
    most_held: AtLeast0 | None  # samples; None: no limit
    passes: bool  # a deployment on static data, which may count all of it as fresh again


class Features(Part):
    """What devices report of their data, where the server does not have label counts at no cost."""

    size: Whole | None  # m, where the classes are known
    reference: tuple[Above0, ...] | None  # q, the mix that balance is measured against; None: even
    noise: AtLeast0  # ε of each report; 0: none
    of_model: bool  # they depend on the model


class World(Part):
    comes_and_goes: bool  # not every device can be reached in every round
    moves: bool  # mean gains change
    fails: bool  # updates may not arrive, whatever the channel
    battery_j: AtLeast0 | None  # what a battery holds; None: there are none
    charge_j: AtLeast0  # before the first round


class Policy(Part):
    """Traits of the policy, and the fields that decide how its rounds are checked; None where it has no such field."""

    name: str
    equal_shares: bool  # the scenario's admission decides who sends, each with an equal share of the band at P0/β
    by_score: bool  # it schedules the feasible devices with the lowest scores, as many as it planned for
    asks: bool  # it goes by what devices report to it
    metric: str
    cardinality: str | None
    gain: str | None  # which gains it goes by
    power: str | None  # whether it controls the power
    pace: str | None  # of the budgets that it promises to keep
    power_max_w: Above0 | None
    least_share: Above0 | None


class Learning(Part):
    learns: bool
    eval_every: Whole
    evaluators: tuple[str, ...]


class Phase(Part):
    """What holds from a round on until the next phase: a run without changes has one."""

    first: Whole
    V: Annotated[float, Field(ge=0)] | None  # a number where it is auto; infinite: blind to energy
    auto: bool  # it follows from the budgets, and the fleet has a queue
    size: Annotated[int, Field(ge=0)]
    smallest_plan: Annotated[int, Field(ge=0)]  # the fewest devices, above none, that it plans for
    energy_budget_j: AtLeast0 | None  # None: devices differ, and constants.parquet has it


class Resolved(Part):
    """Everything that a run came to, but for the constants in which devices differ."""

    devices: Whole
    rounds: Whole
    round_s: Above0  # T_rd, less the slot for reports
    period_s: Above0  # from the beginning of one round to that of the next
    alike: dict[str, float]  # the constants that all devices share, by column
    signed_queues: bool  # below 0 a queue is credit
    cycles_per_sample: AtLeast0  # above 0: c follows what a device holds
    radio: Radio
    slot: Slot | None
    law: Law
    data: Data
    features: Features | None
    world: World
    policy: Policy
    learning: Learning
    trace: Literal["full", "rounds"]
    phases: Annotated[tuple[Phase, ...], Field(min_length=1)]
    own: tuple[str, ...]  # fields of the scenario that name code of the user's own
