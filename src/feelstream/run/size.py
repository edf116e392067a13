"""How much memory a scenario or a plan will need, estimated from its settings before anything is allocated."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from feelstream.errors import ScenarioError
from feelstream.run.trace import MANY
from feelstream.scenario import Scenario

# Bytes per device: some thirty columns of a round in float64, with temporaries of policy and trace.
DEVICE_BYTES, CLASS_BYTES = 1000, 24
ROW_BYTES = 400  # of a device and round in memory, when the tables of a whole run are put together
ROUND_BYTES = 500
DRAW_BYTES = 12  # of a sample of a mini-batch: its number and its loss, which a round's training holds all at once
CLASSES = 10
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int:
    """The memory of this machine, or of the container that we are in."""
    limits = []
    for file in CGROUPS:
        try:
            text = Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            limits.append(int(text))
    with suppress(ValueError, OSError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=2**63)


def run_bytes(scenario: Scenario) -> int:
    """A rough estimate, from below: devices now, rows at the end."""
    devices, rounds = scenario.system.devices, scenario.system.rounds
    present = devices * (DEVICE_BYTES + CLASS_BYTES * CLASSES)
    rows = devices * rounds * ROW_BYTES if scenario.trace.level == "full" else min(devices, MANY)
    return present + rows + rounds * ROUND_BYTES


def training_bytes(scenario: Scenario) -> int:
    """Of the mini-batches of one round, from below."""
    learning, shape = scenario.learning, scenario.learning.local.shape
    return 0 if learning.engine == "none" or shape is None else DRAW_BYTES * shape[0] * shape[1]


def check_fits(scenario: Scenario) -> None:
    """Refuse what cannot fit into the memory, with the estimate, instead of trying."""
    needed, there = training_bytes(scenario), memory_bytes()
    if needed > there:
        steps, batch = scenario.learning.local.shape or (1, 1)
        raise ScenarioError(
            f"learning.local.batch: {steps:,} steps of {batch:,} samples need about "
            f"{_shown(needed)} of memory, and there are {_shown(there)}; take fewer"
        )
    needed = run_bytes(scenario)
    if needed > there:
        full = scenario.trace.level == "full"
        hint = ", or set trace.level to rounds" if full and needed > 2 * run_bytes(_rounds_only(scenario)) else ""
        raise ScenarioError(
            f"system.devices: {scenario.system.devices:,} devices and {scenario.system.rounds:,} rounds need about "
            f"{_shown(needed)} of memory, and there are {_shown(there)}; take fewer{hint}"
        )


def _rounds_only(scenario: Scenario) -> Scenario:
    return scenario.model_copy(update={"trace": scenario.trace.model_copy(update={"level": "rounds"})})


def _shown(size: int) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e13 else f"{size / 1e12:,.0f} TB"
