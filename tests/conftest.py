"""Settings of all property tests, what several rooms share, and what is tested first."""

import atexit
import gc
import os
from pathlib import Path

import one_thread  # noqa: F401
import pytest
from commands import feelstream
from compared import three_arms
from hypothesis import HealthCheck, settings
from single_worker import single_worker, worker_processes
from small_results import learned_results, paper_output, paper_results

__all__ = [  # fixtures
    "feelstream", "learned_results", "paper_output", "paper_results", "single_worker", "three_arms", "worker_processes",
]  # fmt: skip

os.fsync = lambda fd: None  # what tests write need survive no loss of power; those of a failing disk put in their own
gc.disable()  # until all tests are collected: nothing that is imported for them is garbage, in any worker

# Derandomised: a failure is the same failure on every machine. The machine may be slow, so no deadline.
settings.register_profile(
    "feelstream", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("feelstream")

# The files that take longest, those of `make nightly` first: whole files go to free workers in this order, so that none
# of these is begun last and waited for alone.
LONGEST = (
    "flower/test_documented_commands.py",
    "flower/test_real_federations.py",
    "flower/test_loopback.py",
    "flower/test_processes.py",
    "test_benchmarks.py",
    "docs/test_code_blocks.py",
    "experiment/test_killed.py",
    "flower/test_simulation_engine.py",
    "studio/test_browser.py",
    "test_contributing.py",
    "testing/test_kinds.py",
    "policies/test_lyapunov_joint.py",
    "test_inert.py",
    "test_simulation.py",
)


# Cases that are slow wherever they take part: the solver of this policy takes seconds.
SLOW_CASE = "lyapunov_joint"
# Fixtures that take a second or more: whichever test asks first would pay for them.
SLOW_FIXTURES = frozenset({"learned_results", "paper_output", "paper_results", "raced", "worlds"})
# What was measured to take long, by `make times`; tests that start processes, or take seconds, say so themselves.
MEASURED_SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name, _, case = item.nodeid.partition("[")
        if SLOW_CASE in case or name in MEASURED_SLOW or SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    here = Path(__file__).parent
    place = {here / file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay until the end: no collection of garbage need look at them again."""
    gc.enable()
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # what is left when Python ends is taken for a leak by nanobind
