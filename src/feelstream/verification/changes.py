"""Runs whose V, size or budget change on the way: each phase between two changes has settings of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from feelstream.verification.settings import Settings


class Phase(NamedTuple):
    """The rounds first, …, end − 1 and what was set in them."""

    first: int
    end: int
    settings: Settings


def phases(s: Settings) -> list[Phase]:
    """All phases in order; a run without changes is one."""
    firsts = sorted({1, *(change.round for change in s.changes)})
    return [Phase(first, end, _in_force(s, first)) for first, end in zip(firsts, [*firsts[1:], s.T + 1], strict=True)]


def _in_force(s: Settings, round: int) -> Settings:
    return replace(s, **{change.setting: change.value for change in s.changes if change.round <= round})
