"""What fields of a scenario must not say together, though each is right by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feelstream.arrays import Reals
from feelstream.environment.channel import IndependentChannel
from feelstream.environment.mobility import Mobility
from feelstream.errors import ScenarioError
from feelstream.learning.probes import PROBES
from feelstream.model import physics
from feelstream.model.energy import AT_A_POINT, Cubic
from feelstream.model.reporting import needed_s
from feelstream.model.system import System
from feelstream.plugins import LEAST, MOST
from feelstream.policies import Policy
from feelstream.policies.base import EQUAL_UPDATES, QUEUES_FROM_ZERO

if TYPE_CHECKING:
    from feelstream.scenario.settings import Scenario

MOST_BLOCKS = 1_000_000
PLANS_ALIKE = "which plans with one deadline, fixed cycles, and the energy of computing and sending alone"
WEIGHS_BY_QUEUES = "which needs weights of at least 0"
ASKS_REPORTS = "where devices report: what they receive for that is not charged"


def problems(scenario: Scenario) -> Iterator[str]:
    """What fields cannot say together, a sentence each."""
    devices, size = scenario.system.devices, scenario.policy.size
    if size > devices:
        yield f"policy.size: must be at most system.devices = {devices}, not {size}"
    yield from _of_needs(scenario)
    if scenario.autos:  # checked with the numbers, when they are known
        return
    system = scenario.known_system(classes=1)
    yield from _of_world(scenario)
    yield from _of_costs(scenario, system)
    yield from _of_plans(scenario, system)
    yield from _of_profiles(scenario)
    yield from _of_magnitudes(scenario, system)
    yield from _of_times(scenario, system)


def _of_needs(scenario: Scenario) -> Iterator[str]:
    """What the policy and the server's update need must be known, and found in this scenario."""
    policy, learning = scenario.policy, scenario.learning
    needs, name = policy.needs, policy.plugin_name()
    if learning.engine != "none" and learning.server.needs_probability and not policy.knows_probability:
        yield (
            f"learning.server.kind: {learning.server.plugin_name()} needs a policy that knows with which "
            f"probability it schedules each device, such as random, and {name} does not"
        )
    if not isinstance(needs, frozenset | set) or not all(isinstance(need, str) for need in needs):
        yield f"policy '{name}': needs must be a set of names, not {needs!r:.60}"
    for need in sorted(policy.probes):
        try:
            probe = PROBES.instance(need)
        except ScenarioError as problem:
            raise ScenarioError(f"policy '{name}' needs something that does not exist: {problem}") from problem
        if need not in PROBES.ours and need not in _named_with(policy):
            yield (
                f"policy '{name}' needs '{need}', which must be in the policy's own file or be named in one of its "
                "fields, so that a run knows its code"
            )
        if probe.needs_learner and learning.engine == "none":
            yield (
                f"learning.engine: must not be none for policy '{name}', which asks devices for {need}, and that "
                "takes a model"
            )
    features = scenario.data.features
    reports = f"policy '{name}', which asks for reports" if policy.probes else "features that devices report"
    if (policy.probes or features.reported) and not scenario.reports.slot_s < scenario.system.round_s:
        yield (
            f"reports.slot_s: must be below system.round_s = {scenario.system.round_s:g} for {reports}, "
            f"not {scenario.reports.slot_s:g}"
        )
    if policy.probes and features.every > 1:
        yield f"data.features.every: must be 1 for {reports} in every round"
    if features.of_model and learning.engine == "none":
        yield f"learning.engine: must not be none for features '{features.plugin_name()}', which a model computes"
    if features.noise and not features.of_model and not scenario.data.buffer.keeps:
        yield (
            f"data.features.noise: must be 0 with the buffer {scenario.data.buffer.plugin_name()}, for what it deletes "
            "would be told without noise"
        )


def _named_with(policy: Policy) -> list[str]:
    """Names of code that a run knows by the policy's name and fields."""
    here = _place(policy.plugin_name())
    own = [need for need in policy.probes if here and _place(need) == here]
    return [*own, *(value for value in dict(policy).values() if isinstance(value, str))]


def _place(name: str) -> str:
    """The file or module in which the object of a name is."""
    where = name.rpartition(":")[0]
    return str(Path(where).resolve()) if where.endswith(".py") else where


def _of_world(scenario: Scenario) -> Iterator[str]:
    """What the processes of the world do not go together with."""
    world, policy = scenario.world, scenario.policy
    channel, mobility = world.channel, world.mobility
    if scenario.radio.fading == "none" and channel != IndependentChannel():
        yield "world.channel.kind: must be independent where radio.fading = none"
    if channel.needs_links and type(mobility).links is Mobility.links:
        yield (
            f"world.channel.kind: {channel.plugin_name()} needs a world.mobility that says where devices are and "
            f"which are seen, such as tr38901, and {mobility.plugin_name()} does not"
        )
    says_power = policy.equal_shares or type(policy).most_power_w is not Policy.most_power_w
    if world.harvest.battery_j is not None and not says_power:
        yield (
            "world.harvest.kind: must be none for a policy with its own transmit, unless its most_power_w says "
            "what power no device exceeds; otherwise nothing bounds what a round takes from a battery"
        )


def _of_costs(scenario: Scenario, system: System) -> Iterator[str]:
    """Deadlines lie within the round and leave some of it after the slot for reports and the download."""
    deadline_s, round_s = scenario.population.deadline_s, scenario.system.round_s
    latest, earliest = int(np.argmax(deadline_s)), int(np.argmin(deadline_s))
    if deadline_s[latest] > round_s:
        yield (
            f"devices.deadline_s: must be at most system.round_s = {round_s:g} s, not {deadline_s[latest]:g} s of "
            f"device {latest}"
        )
    if system.reports and not deadline_s[earliest] > system.reports.slot_s:
        yield (
            f"devices.deadline_s: must be above reports.slot_s = {system.reports.slot_s:g} s for a policy that asks "
            f"for reports, not {deadline_s[earliest]:g} s of device {earliest}"
        )
    for k in np.flatnonzero(system.time_s <= 0):
        yield (
            f"costs.download_bits: receiving the model must take less than the {deadline_s[k]:g} s that device {k} "
            f"has, not {system.download_s[k]:.3g} s"
        )
    if system.cycles_per_sample and np.ptp(scenario.population.cycles):
        yield "costs.cycles_per_sample: takes the place of all cycles, so no class or table of devices may give others"
    if system.block_bits and not system.update_bits / system.block_bits <= MOST_BLOCKS:
        yield (
            f"radio.block_bits: an update may have at most {MOST_BLOCKS:,} blocks, so at least "
            f"{system.update_bits / MOST_BLOCKS:.3g}, or 0"
        )
    if system.block_bits and not scenario.costs.rule.of_settings:
        yield "radio.block_bits: must be 0 with a costs.rule of your own, for updates may differ in size"


def _of_plans(scenario: Scenario, system: System) -> Iterator[str]:
    """Costs that the policy does not plan with."""
    policy, rule, costs = scenario.policy, scenario.costs.rule, scenario.costs
    alike = "the same for all devices, as must be costs.download_bit_per_s,"
    for concerns, field, wanted, fits, why in (
        (policy.fills_round, "costs.rule.kind", "settings", rule.of_settings, PLANS_ALIKE),
        (policy.fills_round, "devices.deadline_s", alike, not system.deadlines_differ, PLANS_ALIKE),
        (policy.fills_round, "costs.receive_power_w", "0", not system.download_j.any(), PLANS_ALIKE),
        (policy.fills_round, "costs.cycles_per_sample", "0", not system.cycles_per_sample, PLANS_ALIKE),
        (QUEUES_FROM_ZERO in policy.needs, "system.queue", "from_zero", not system.signed_queues, WEIGHS_BY_QUEUES),
        (system.reports, "costs.rule.kind", "settings", rule.of_settings, ASKS_REPORTS),
        (system.reports, "costs.download_bits", "0", not costs.download_bits, ASKS_REPORTS),
    ):
        if concerns and not fits:
            yield f"{field}: must be {wanted} for the policy {policy.plugin_name()}, {why}"
    if EQUAL_UPDATES in policy.needs and not rule.keeps_bits:
        yield (
            f"costs.rule.kind: the policy {policy.plugin_name()} plans with updates of equal size, so the rule must "
            "say keeps_bits = True, and give none"
        )


def _of_profiles(scenario: Scenario) -> Iterator[str]:
    """Every device has a profile where the law needs one, no frequency is above its highest point, none is in vain."""
    profiles, highest_hz, law = scenario.profiles, scenario.population.frequency_high_hz, scenario.cpu.energy
    if not law.needs_cores:
        ranges = [scenario.cpu.frequency_hz, *(each.frequency_hz for each in scenario.devices.classes)]
        if any(profiles.names) and "profile" not in ranges:
            yield (
                f"cpu.profile: changes nothing under cpu.energy.kind = {law.plugin_name()} with frequencies in "
                "numbers; set cpu.energy.kind = voltage, or cpu.frequency_hz = profile"
            )
    elif not profiles.cores:
        yield f"cpu.profile: every device must have one under cpu.energy.kind = {law.plugin_name()}"
    else:
        points_hz: Reals = np.array([each.frequency_hz[-1] for each in profiles.cores])
        points_hz = np.broadcast_to(points_hz[0 if profiles.which is None else profiles.which], highest_hz.shape)
        for k in np.flatnonzero(highest_hz > points_hz * (1 + AT_A_POINT)):
            yield (
                f"cpu.frequency_hz: must be at most {points_hz[k]:g}, the highest operating point of its profile, for "
                f"device {k}, not {highest_hz[k]:g}; or write profile for the range of its points"
            )


def _of_magnitudes(scenario: Scenario, system: System) -> Iterator[str]:
    """Energies and SNR are within what can be squared, summed and divided without overflow."""
    radio, population = scenario.radio, scenario.population
    power_w, lowest_db = system.received_power_w, scenario.gain_range_db[0]
    ends = (population.frequency_low_hz, population.frequency_high_hz)
    law = "power_coefficient" if isinstance(scenario.cpu.energy, Cubic) else "energy"
    energies = [
        (f"cpu.{law}", "computing for a round", max(np.max(system.compute_energy_j(f_hz)) for f_hz in ends)),
        (
            "radio.received_power_dbm",
            f"sending for a round at a gain of {lowest_db:g} dB",
            power_w / physics.ratio(lowest_db) * scenario.system.round_s,
        ),
        ("costs.receive_power_w", "receiving the model", system.download_j.max()),
    ]
    if slot := system.reports:
        report_j = system.compute_energy_j(population.frequency_high_hz, cycles=slot.cycles).max()
        energies.append(("reports.cycles", "computing for a report", report_j))
    for field, what, energy_j in energies:
        if not energy_j <= MOST:
            yield f"{field}: {what} must take at most {MOST:g} J, not {energy_j:g} J"
    snr = power_w / (radio.bandwidth_hz * radio.noise_w_per_hz)
    if not LEAST <= snr <= MOST:
        yield (
            f"radio.received_power_dbm: the mean SNR over the whole band must be between {LEAST:g} and {MOST:g}, "
            f"not {snr:g}"
        )


def _of_times(scenario: Scenario, system: System) -> Iterator[str]:
    """At the highest frequency and the mean gain, some device can compute and send in a round, and report in a slot."""
    slot, fastest_hz, n = system.reports, scenario.population.frequency_high_hz, scenario.policy.smallest_plan
    takes_s = physics.compute_time_s(system.cycles, fastest_hz) + system.surrogate_time_s(n)
    if not (takes_s <= system.time_s).any():
        quickest = int(np.argmin(takes_s - system.time_s))
        left = "" if slot is None else f" of which reports leave {system.round_s:g} s,"
        yield (
            f"system.round_s: no update can ever fit a round of {scenario.system.round_s:g} s,{left} since computing "
            f"at cpu.frequency_hz = {fastest_hz[quickest]:g} and sending with {n} on the band takes "
            f"{(takes_s + system.away_s)[quickest]:.3g} s"
            f"{', with the download and the time after the deadline' if system.away_s.any() else ''}"
        )
    if slot is not None:
        report_s = float(np.min(needed_s(slot, system, fastest_hz, np.ones(system.devices))))
        if not report_s <= slot.slot_s:
            yield (
                f"reports.slot_s: no report can ever fit a slot of {slot.slot_s:g} s, since computing at the highest "
                f"frequency and sending with {system.devices} on the band takes {report_s:.3g} s"
            )
