"""Costs of devices that do not go together with the rest of a scenario."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Reals
from feelstream.errors import ScenarioError
from feelstream.model.costs import CostRule
from feelstream.model.system import System
from feelstream.policies import Policy

MOST_BLOCKS = 1_000_000


def check_costs(system: System, policy: Policy, cycles: Reals) -> None:
    """Deadlines lie within the round and leave some of it after the download; the policy can plan with them.

    cycles: (K,), as classes and tables of devices give them.
    """
    deadline_s = np.broadcast_to(system.round_s if system.deadline_s is None else system.deadline_s, system.devices)
    late = np.flatnonzero(deadline_s > system.round_s)
    if len(late):
        raise ScenarioError(
            f"devices.deadline_s: must be at most system.round_s = {system.round_s:g} s, not {deadline_s[late[0]]:g} s "
            f"of device {late[0]}"
        )
    never = np.flatnonzero(deadline_s <= system.download_s)
    if len(never):
        k, takes_s = never[0], np.broadcast_to(system.download_s, system.devices)
        raise ScenarioError(
            f"costs.download_bits: receiving the model must take less than the {deadline_s[k]:g} s that device {k} "
            f"has, not {takes_s[k]:.3g} s"
        )
    if system.cycles_per_sample and np.ptp(cycles):
        raise ScenarioError(
            "costs.cycles_per_sample: takes the place of all cycles, so no class or table of devices may give others"
        )
    if not np.all(np.asarray(system.download_j) <= 1e100):
        raise ScenarioError("costs.receive_power_w: receiving the model must take at most 1e100 J")
    if system.block_bits and not system.update_bits / system.block_bits <= MOST_BLOCKS:
        raise ScenarioError(
            f"radio.block_bits: an update may have at most {MOST_BLOCKS:,} blocks, so at least "
            f"{system.update_bits / MOST_BLOCKS:.3g}, or 0"
        )
    if policy.one_deadline and isinstance(system.time_s, np.ndarray):
        raise ScenarioError(
            "devices.deadline_s: must be the same for all devices, as must be costs.download_bit_per_s, for the "
            f"policy {policy.plugin_name()}, which plans with one deadline"
        )
    if policy.one_deadline and np.any(system.download_j):
        raise ScenarioError(
            f"costs.receive_power_w: must be 0 for the policy {policy.plugin_name()}, which plans with the energy of "
            "computing and sending alone"
        )
    if policy.one_deadline and system.cycles_per_sample:
        raise ScenarioError(
            f"costs.cycles_per_sample: must be 0 for the policy {policy.plugin_name()}, which plans with fixed cycles"
        )


def check_rule(rule: CostRule, policy: Policy, block_bits: float) -> None:
    """What a rule of the user's own does not go together with."""
    if rule.of_settings:
        return
    if block_bits:
        raise ScenarioError("radio.block_bits: must be 0 with a costs.rule of your own, for updates may differ in size")
    if policy.one_deadline:
        raise ScenarioError(
            f"costs.rule.kind: must be settings for the policy {policy.plugin_name()}, which plans with one deadline "
            "and fixed cycles"
        )
    if policy.asks_reports:
        raise ScenarioError(
            f"costs.rule.kind: must be settings for the policy {policy.plugin_name()}, which asks for reports"
        )
    if policy.equal_updates and not rule.keeps_bits:
        raise ScenarioError(
            f"costs.rule.kind: the policy {policy.plugin_name()} plans with updates of equal size, so the rule must "
            "say keeps_bits = True, and give none"
        )
