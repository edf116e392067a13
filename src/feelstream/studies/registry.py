"""The known studies: ours, and those of installed packages (entry points of the group `feelstream.studies`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from feelstream.errors import FeelstreamError
from feelstream.studies.contract import Command, Study

if TYPE_CHECKING:
    from feelstream.experiment import Plan

# By reference, so that nothing here depends on any of them.
OURS = {
    "hu2023": "feelstream.studies.hu2023:STUDY",
    "leaderboard": "feelstream.studies.leaderboard:STUDY",
    "silicon": "feelstream.studies.silicon:STUDY",
    "within-budget": "feelstream.studies.within_budget:STUDY",
}
log = logging.getLogger("feelstream")


def ours() -> list[Study]:
    return [resolve_name(reference) for reference in OURS.values()]


def installed() -> list[Study]:
    """Studies of other packages; one that cannot be imported is named in the log and left out."""
    from importlib.metadata import entry_points  # 20 ms, which no command of ours need wait for

    found = []
    for name in sorted({point.name for point in entry_points(group="feelstream.studies")} - OURS.keys()):
        try:
            found.append(study_named(name))
        except FeelstreamError as problem:
            log.warning("the study %s is left out: %s", name, problem)
    return found


def study_named(name: str) -> Study:
    """A study by its name, or as `file.py:NAME` or `package.module:NAME`."""
    from feelstream.plugins import Kind  # pydantic comes with it, and `feelstream --help` does not need it

    known = {study.name: study for study in ours()}
    return Kind("study", "studies", Study, known, lambda found: isinstance(found, Study)).lookup(name)


def study_of(plan: Plan) -> Study | None:
    """The study that a plan belongs to; None where there is none, or where it is not installed.

    Only what is installed is asked: a stored plan cannot name code that is to be run.
    """
    for study in ours():
        if study.owns(plan):
            return study
    if not plan.study:
        return None
    for study in installed():
        if study.owns(plan):
            return study
    log.warning(
        "these results are of the study '%s', which is not installed; give it with --study file.py:NAME to see what it "
        "adds to the report",
        plan.study,
    )
    return None


def commands() -> dict[str, Command]:
    """All commands of all studies by name, ours first; a name that ours have is ours."""
    mine = _by_name(ours())
    return mine | _by_name(installed()) | mine


def command(name: str) -> Command | None:
    """The command of that name; other packages are asked only where it is none of ours."""
    return _by_name(ours()).get(name) or _by_name(installed()).get(name)


def _by_name(studies: Iterable[Study]) -> dict[str, Command]:
    return {command.name: command for study in studies for command in study.commands}
