"""A session: one browser tab's race and what is chosen in it. It ends with its tab and survives a lost connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feelstream.data.datasets.catalogue import COLLECTIONS
from feelstream.errors import ScenarioError
from feelstream.experiment import Arm
from feelstream.experiment.comparison import arms
from feelstream.studio.charts import Options
from feelstream.studio.lanes import MOST_LANES, LiveLane, open_runs, side_by_side
from feelstream.studio.race import Race

MOST_POLICIES = 4  # which leaves room for forks


@dataclass
class Draft:
    """A race as `feelstream compare` takes it: a preset, policies, and what follows `--set`, a line each."""

    preset: str = "paper-iid"
    seed: str = "0"
    policies: str = "lyapunov, random"
    settings: str = ""

    def arms(self) -> tuple[Arm, ...]:
        """The policies, each with its label and scenario; ScenarioError says in a sentence what is wrong."""
        found = arms(self.preset, [self.policies], filter(None, map(str.strip, self.settings.splitlines())))
        if len(found) > MOST_POLICIES:
            raise ScenarioError(f"policies: at most {MOST_POLICIES} race at once, not {len(found)}")
        return found

    def check(self) -> None:
        """Complain, in a sentence, about what is wrong."""
        self.seed_number()
        self.arms()

    def seed_number(self) -> int:
        text = self.seed.strip()
        if not text.isdecimal() or int(text) >= 2**63:
            raise ScenarioError(f"seed: must be a whole number from 0 to 2^63 - 1, not '{text}'")
        return int(text)

    def lanes(self) -> list[LiveLane]:
        """The lanes of the race, ready for the first round; slow where a data set must be read."""
        return [LiveLane(arm.label, arm.scenario, self.seed_number()) for arm in self.arms()]


class Session:
    """What one tab holds; the page reads it and calls it, never the other way round."""

    race: Race

    def __init__(self, start: Sequence[Path] = ()) -> None:
        self.draft, self.note = first_draft()
        self.selected: int | None = None
        self.title = ""
        self.drawings: list[tuple[int, Options]] = []  # of charts, by element: what the page was not sent yet
        if start:
            self.open(start)
        else:
            self.begin()

    def begin(self) -> None:
        """Start the race that is drafted, in place of the present one."""
        self._replace(Race(self.draft.lanes, speed=self._speed()), f"{self.draft.preset}, seed {self.draft.seed}")

    def open(self, start: Sequence[Path]) -> None:
        """Stored runs side by side; a comparison with a lane for each policy, of its first seed."""
        runs = side_by_side(start)
        names = list(runs)[:MOST_LANES]
        # Where they lie is nobody's business on a page or a picture.
        self.replay({name: runs[name] for name in names}, ", ".join(path.resolve().name or str(path) for path in start))
        if len(names) < len(runs):
            self.note = f"The first {len(names)} of {len(runs)} runs are shown; open stored runs to choose others."

    def replay(self, runs: Mapping[str, Path], title: str) -> None:
        """Show stored runs in place of the present race; the worker reads them."""
        self._replace(Race(lambda: open_runs(runs), speed=self._speed()), title)
        self.note = ""

    def _speed(self) -> float:
        return self.race.speed if hasattr(self, "race") else 5.0

    def _replace(self, race: Race, title: str) -> None:
        self.close()
        self.race, self.title, self.selected = race, title, None

    def close(self) -> None:
        """End the worker; nothing of the session goes on after that."""
        if hasattr(self, "race"):
            self.race.close()


def first_draft() -> tuple[Draft, str]:
    """The prepared race: the paper's setting, on the synthetic data set as long as MNIST is not on this machine."""
    mnist = COLLECTIONS["mnist"]
    if all((mnist.folder / file.name).is_file() for file in mnist.files):
        return Draft(), ""
    return Draft(settings="data.dataset = synthetic"), (
        "MNIST is not on this machine yet, so this first race learns the synthetic data set. "
        "A new race with data.dataset = mnist fetches it."
    )
