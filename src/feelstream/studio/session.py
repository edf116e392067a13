"""A session: one browser tab's race, draft and choices. It ends with its tab and survives a lost connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from feelstream.data.datasets.catalogue import COLLECTIONS
from feelstream.studio.draft import Draft
from feelstream.studio.lanes import StoredLane, open_runs, stored_runs
from feelstream.studio.race import Race

SESSIONS: dict[str, Session] = {}  # by the tab's client id


class Session:
    """What one tab holds; the page reads it and calls it, never the other way round."""

    def __init__(self, start: Path | None = None) -> None:
        self.draft, self.note = first_draft()
        self.selected: int | None = None
        self.dark = False
        self.title = ""
        self.race: Race
        if start is None:
            self.begin()
        else:
            self.replay(lambda: open_runs(dict(list(stored_runs(start).items())[:4])), str(start))

    def begin(self, *, speed: float | None = None, playing: bool = True) -> None:
        """Start the race that is drafted, in place of the present one."""
        lanes = self.draft.lanes
        self._replace(Race(lanes, speed=speed or self._speed(), playing=playing))
        self.title = f"{self.draft.preset}, seed {self.draft.seed_number()}"

    def replay(self, lanes: Callable[[], Sequence[StoredLane]], title: str) -> None:
        """Show stored runs in place of the present race; the worker reads them."""
        self._replace(Race(lanes, speed=self._speed()))
        self.title, self.note = title, ""

    def _speed(self) -> float:
        present = getattr(self, "race", None)
        return present.speed if present else 5.0

    def _replace(self, race: Race) -> None:
        self.close()
        self.race, self.selected = race, None

    def close(self) -> None:
        """End the worker; nothing of the session goes on after that."""
        if present := getattr(self, "race", None):
            present.close()


def first_draft() -> tuple[Draft, str]:
    """The prepared race: the paper's setting, on the synthetic data set as long as MNIST is not on this machine."""
    draft = Draft()
    mnist = COLLECTIONS["mnist"]
    if all((mnist.folder / file.name).is_file() for file in mnist.files):
        return draft, ""
    draft.world["data.dataset"] = "synthetic"
    return draft, (
        "MNIST is not on this machine yet, so this first race learns the synthetic data set. "
        "A new race with data.dataset = mnist fetches it."
    )
