"""A session: one browser tab's race, draft and choices. It ends with its tab and survives a lost connection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feelstream.data.datasets.catalogue import COLLECTIONS
from feelstream.studio.charts import Options
from feelstream.studio.draft import Draft
from feelstream.studio.lanes import MOST_LANES, Seeds, by_seed, open_runs, side_by_side, stored_runs
from feelstream.studio.race import Race


class Session:
    """What one tab holds; the page reads it and calls it, never the other way round."""

    def __init__(self, start: Sequence[Path] = ()) -> None:
        self.draft, self.note = first_draft()
        self.selected: int | None = None
        self.dark = False
        self.talk = False  # whether all is drawn large, for a talk
        self.title = ""
        self.drawings: list[tuple[int, Options, bool]] = []  # of charts, by element: what the page was not sent yet
        self.seeds: Seeds = {}  # of stored runs: those of each seed, by policy
        self.seed: int | None = None  # the one that is shown
        self.race: Race
        if start:
            self.open(start)
        else:
            self.begin()

    def begin(self) -> None:
        """Start the race that is drafted, in place of the present one."""
        self._replace(Race(self.draft.lanes, speed=self._speed()))
        self.title = f"{self.draft.preset}, seed {self.draft.seed_number()}"

    def open(self, start: Sequence[Path]) -> None:
        """Stored runs side by side; a comparison with a lane for each policy, of its first seed."""
        title = ", ".join(_named(path) for path in start)
        if len(start) > 1:
            return self.replay({None: side_by_side(start)}, None, title)
        stored = stored_runs(start[0])
        names = list(dict.fromkeys(name for name, _ in stored))
        seeds = by_seed(stored, names[:MOST_LANES])
        self.replay(seeds, next(iter(seeds)), title)
        if len(names) > MOST_LANES:
            self.note = f"The first {MOST_LANES} of {len(names)} runs are shown; open stored runs to choose others."
        return None

    def replay(self, seeds: Seeds, seed: int | None, title: str, *, at: int = 0, playing: bool = True) -> None:
        """Show the stored runs of one seed in place of the present race; the worker reads them."""
        self._replace(Race(lambda: open_runs(seeds[seed]), speed=self._speed(), playing=playing, at=at))
        self.seeds, self.seed, self.title, self.note = seeds, seed, title, ""

    def choose_seed(self, seed: int) -> None:
        """The same policies with another seed, in the same round."""
        if seed != self.seed and seed in self.seeds:
            note, device = self.note, self.selected
            self.replay(self.seeds, seed, self.title, at=self.race.shown, playing=self.race.playing)
            self.note, self.selected = note, device

    def _speed(self) -> float:
        present = getattr(self, "race", None)
        return present.speed if present else 5.0

    def _replace(self, race: Race) -> None:
        self.close()
        self.race, self.selected, self.seeds, self.seed = race, None, {}, None

    def close(self) -> None:
        """End the worker; nothing of the session goes on after that."""
        if present := getattr(self, "race", None):
            present.close()


def _named(start: Path) -> str:
    """As a page and a picture name it: where it lies is nobody's business there."""
    return start.resolve().name or str(start)


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
