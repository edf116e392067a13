"""`make times`: write the tests whose cases together take long to tests/slow.txt, which `make quick` leaves out.

Those that are there already do not run and stay; empty the file to measure all of them. `make times TESTS="-m ''"` runs
everything, and only says which files take most. What counts is CPU time, of the test and of the processes that it waits
for, so that other work of the machine changes little.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

SLOW_S = 0.5
QUICK = "not slow and not nightly"  # what `make quick` runs
SHOWN = 30
TABLE = Path(__file__).parents[1] / "slow.txt"
spent: defaultdict[str, float] = defaultdict(float)


def _cpu_s() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = _cpu_s()
    result = yield
    spent[item.nodeid.partition("[")[0]] += _cpu_s() - before
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    files: defaultdict[str, float] = defaultdict(float)
    for name, seconds in spent.items():
        files[name.partition("::")[0]] += seconds
    terminalreporter.write_line(f"{sum(files.values()) / 60:.1f} minutes of CPU time in {len(files)} files:")
    for name in sorted(files, key=files.__getitem__, reverse=True)[:SHOWN]:
        terminalreporter.write_line(f"{files[name]:8.1f} s  {name}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.option.markexpr != QUICK:
        return
    known = set(TABLE.read_text(encoding="utf-8").split()) if TABLE.is_file() else set()
    slow = {name for name, seconds in spent.items() if seconds >= SLOW_S}
    names = sorted((known - spent.keys()) | slow)  # what did not run stays as it was
    TABLE.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
