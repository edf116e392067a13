"""The installed studies: entry points of the group `feelstream.studies`, those of this repository among them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from feelstream.errors import ScenarioError, sentence_and_place
from feelstream.studies.contract import Command, Study

if TYPE_CHECKING:
    from feelstream.experiment import Plan

APART = "the package feelstream-studies (in a copy of the repository: pip install . ./studies)"
log = logging.getLogger("feelstream")


def installed() -> list[Study]:
    """By name; one that cannot be imported is named in the log and left out."""
    from importlib.metadata import entry_points  # 20 ms, which few commands need wait for

    found = {}
    for point in sorted(entry_points(group="feelstream.studies"), key=lambda point: point.name):
        try:
            study = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # whatever a module of theirs raises, SystemExit too
            why = sentence_and_place(problem, __file__, "importlib")
            log.warning("the study %s is left out: '%s' cannot be imported: %s", point.name, point.value, why)
            continue
        if isinstance(study, Study):
            found[point.name] = study
        else:
            log.warning("the study %s is left out: '%s' is not a Study", point.name, point.value)
    return list(found.values())


def study_named(name: str) -> Study:
    """A study by its name, or as `file.py:NAME` or `package.module:NAME`."""
    from feelstream.plugins import Kind  # with pydantic, which `feelstream --help` does not need

    kind = Kind("study", "studies", Study, is_one=lambda found: isinstance(found, Study))
    if ":" not in name and not kind.names():
        raise ScenarioError(
            f"the study '{name}' is not installed; those of the repository come with {APART}; one of your own is named "
            "as file.py:NAME"
        )
    return kind.lookup(name)


def study_of(plan: Plan) -> Study | None:
    """The study that a plan belongs to; None where there is none, or where it is not installed.

    Only what is installed is asked: a stored plan cannot name code that is to be run.
    """
    if not plan.study:
        return None
    for study in installed():
        if study.name == plan.study:
            return study
    log.warning(
        "these results are of the study '%s', which is not installed; give it with --study file.py:NAME to see what it "
        "adds to the report",
        plan.study,
    )
    return None


def commands() -> dict[str, Command]:
    """All commands of all studies by name; of two with one name, that of the first study by name."""
    return {command.name: command for study in reversed(installed()) for command in reversed(study.commands)}
