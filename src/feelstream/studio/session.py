"""A session: one browser tab's race, draft and choices. It ends with its tab and survives a lost connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from feelstream.data.datasets.catalogue import COLLECTIONS
from feelstream.studio.draft import Draft
from feelstream.studio.lanes import (
    MOST_LANES,
    LiveLane,
    StoredLane,
    open_runs,
    runs_by_seed,
    side_by_side,
    stored_runs,
)
from feelstream.studio.race import Race

SESSIONS: dict[str, Session] = {}  # by the tab's client id
PREPARED: dict[str, Future[list[LiveLane]]] = {}  # lanes of the first race, by its draft: for the first tab


class Session:
    """What one tab holds; the page reads it and calls it, never the other way round."""

    def __init__(self, start: Sequence[Path] = ()) -> None:
        self.draft, self.note = first_draft()
        self.selected: int | None = None
        self.dark = False
        self.talk = False  # whether all is drawn large, for a talk
        self.title = ""
        self.wake: Callable[[], None] = lambda: None  # the race calls it, from any thread, when it has something new
        self.drawings: list[tuple[int, list]] = []  # changes of charts, by element, that the page was not sent yet
        self.seeds: dict[int, dict[str, Path]] = {}  # of a comparison: the runs of each seed, by policy
        self.seed: int | None = None  # the one that is shown
        self.race: Race
        if len(start) == 1:
            self.open(start[0])
        elif start:
            self.replay(lambda: open_runs(side_by_side(start)), ", ".join(_named(path) for path in start))
        else:
            self.begin()

    def begin(self, *, speed: float | None = None, playing: bool = True) -> None:
        """Start the race that is drafted, in place of the present one."""
        prepared = PREPARED.pop(repr(self.draft), None)
        self._replace(
            Race(prepared.result if prepared else self.draft.lanes, speed=speed or self._speed(), playing=playing)
        )
        self.title = f"{self.draft.preset}, seed {self.draft.seed_number()}"

    def open(self, start: Path) -> None:
        """A comparison with a lane for each policy, of its first seed; of other runs the first few."""
        if seeds := runs_by_seed(start):
            self.compare(seeds, next(iter(seeds)), _named(start))
        else:
            self.replay(lambda: open_runs(dict(list(stored_runs(start).items())[:4])), _named(start))

    def compare(self, seeds: dict[int, dict[str, Path]], seed: int, title: str) -> None:
        """The runs of one seed side by side; the others can be chosen."""
        runs = seeds[seed]
        self.replay(lambda: open_runs(dict(list(runs.items())[:MOST_LANES])), title)
        self.seeds, self.seed = seeds, seed
        if len(runs) > MOST_LANES:
            self.note = f"The first {MOST_LANES} of {len(runs)} policies are shown; open stored runs to choose others."

    def choose_seed(self, seed: int) -> None:
        """The same policies with another seed, in the same round."""
        if seed == self.seed or seed not in self.seeds:
            return
        seeds, title, race, note, device = self.seeds, self.title, self.race, self.note, self.selected
        runs = dict(list(seeds[seed].items())[:MOST_LANES])
        self._replace(Race(lambda: open_runs(runs), speed=race.speed, playing=race.playing, at=race.shown))
        self.seeds, self.seed, self.title, self.note, self.selected = seeds, seed, title, note, device

    def replay(self, lanes: Callable[[], Sequence[StoredLane]], title: str) -> None:
        """Show stored runs in place of the present race; the worker reads them."""
        self._replace(Race(lanes, speed=self._speed()))
        self.title, self.note = title, ""

    def _speed(self) -> float:
        present = getattr(self, "race", None)
        return present.speed if present else 5.0

    def _replace(self, race: Race) -> None:
        self.close()
        race.wake = lambda: self.wake()
        self.race, self.selected, self.seeds, self.seed = race, None, {}, None

    def close(self) -> None:
        """End the worker; nothing of the session goes on after that."""
        if present := getattr(self, "race", None):
            present.close()


def _named(start: Path) -> str:
    """As a page and a picture name it: where it lies is nobody's business there."""
    return start.resolve().name or str(start)


def prepare_first() -> Callable[[], None]:
    """Promise the lanes of the first race to its page; what is returned makes them, with their first round.

    What is wrong with them the page will say.
    """
    draft, _ = first_draft()
    prepared = PREPARED[repr(draft)] = Future()
    return lambda: _fulfil(prepared, draft)


def _fulfil(prepared: Future[list[LiveLane]], draft: Draft) -> None:
    try:
        lanes = draft.lanes()
        for lane in lanes:
            lane.look_ahead()
        prepared.set_result(lanes)
    except Exception as problem:  # whoever waits for the lanes is told, whatever it is
        prepared.set_exception(problem)


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
