"""A lane of a run that another process plays, such as a deployment: its rounds are shown as they are stored."""

from __future__ import annotations

from pathlib import Path
from time import sleep

from feelstream.run.run import read_so_far
from feelstream.studio.lanes import StoredLane

POLL_S = 0.05  # the race asks again, at its speed


class FollowedLane(StoredLane):
    """A stored run that may still grow, up to the rounds of its scenario."""

    def __init__(self, label: str, directory: Path) -> None:
        self.directory = directory
        super().__init__(label, read_so_far(directory))

    def step(self) -> None:
        """Read what has been stored meanwhile; nothing, if nothing has."""
        run = read_so_far(self.directory)
        if run.rounds.height > self.head:
            super().__init__(self.label, run)
        else:
            sleep(POLL_S)
