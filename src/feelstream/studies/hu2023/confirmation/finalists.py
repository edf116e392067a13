"""What the search over readings and settings ended with, to be judged on the seeds that it never touched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from feelstream.scenario import Scenario
from feelstream.studies.hu2023.multiverse import playing
from feelstream.studies.hu2023.multiverse.race import arms_of
from feelstream.studies.hu2023.multiverse.settings import Specification


@dataclass(frozen=True)
class Finalist:
    """The specification that the race found most likely for a figure."""

    figure: str
    specification: Specification

    def __str__(self) -> str:
        return f"finalist of figure {self.figure}: {self.specification}"

    @property
    def settings(self) -> str:
        return str(self.specification)

    @property
    def fresh(self) -> str:
        return self.specification.fresh

    @property
    def arms(self) -> list[str]:
        return arms_of(self.figure)

    def scenario(self, label: str) -> Scenario:
        return self.specification.scenario(label, learning=True)


def finalists(tables: Path) -> list[Finalist]:
    """Those of the race so far; none until a specification has all of its seeds."""
    return [Finalist(figure, each) for figure, each in playing.read(tables).finalists().items()]
