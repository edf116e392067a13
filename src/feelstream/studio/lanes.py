"""Lanes of a race: one policy's run each, played here (LiveLane) or read from a run directory (StoredLane)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from operator import itemgetter
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Any

from feelstream.arrays import Nested, flatten
from feelstream.columns import SPENT, spent_j
from feelstream.display.quantities import introduce
from feelstream.errors import RunError
from feelstream.experiment.store import load as load_results
from feelstream.loop.changes import Change, from_list, in_order, scenario_in
from feelstream.run import Run, read
from feelstream.run.preparing import prepare, with_numbers
from feelstream.run.run import is_unfinished, read_so_far
from feelstream.run.scenes import Scenes
from feelstream.scenario import Scenario
from feelstream.studio.views import MOST_DEVICES, RoundView, of_record, of_tables

HISTORY_BYTES = 48 * 2**20  # of views, per lane
SNAPSHOT_BYTES = 48 * 2**20  # of states to go on from, per lane
PAST = ("queue_next_j", "stored", "scheduled", *SPENT)  # columns of a device by round
POLL_S = 0.05  # before a race asks again for rounds of a run that is followed
MOST_LANES = 6  # four policies and their forks
LOADING = Lock()  # a data set is read once, whoever asks first


def unused(label: str, taken: Collection[str]) -> str:
    """The label, or with the first number that makes it another than these."""
    return next(each for n in count(1) if (each := label if n == 1 else f"{label} ({n})") not in taken)


class Lane:
    """What a race and a page ask of a lane."""

    live = False  # whether it can be played, changed and forked
    oldest = 1  # the first round of which the devices can still be shown
    is_ahead = True  # whether the round after the head is played already, or there is none to play

    def __init__(self, label: str, scenario: Scenario, seed: int, changes: tuple[Change, ...]) -> None:
        self.label, self.scenario, self.seed, self.changes = label, scenario, seed, changes
        self.rows: list[dict[str, Any]] = []  # of all rounds so far, as in rounds.parquet
        self.schedule: list[tuple[int, int, bool]] = []  # (round, device, sent) of all that were scheduled so far
        self._views: dict[int, RoundView] = {}
        self._past: tuple[int, list[dict[str, Any]]] | None = None  # of the device last asked for
        self.in_force: dict[tuple[Change, ...], Scenario] = {}  # the scenario by the changes that are in force

    @property
    def head(self) -> int:
        """The last round that can be shown; 0 before the first."""
        return len(self.rows)

    def view(self, round: int) -> RoundView:
        return self._views[round]

    def step(self) -> None:
        """Play the next round, or read what was stored meanwhile."""
        raise NotImplementedError

    def look_ahead(self) -> None:
        """Play the next round already; nobody sees it before `step`."""

    def _device(self, round: int, device: int) -> dict[str, Any] | None:
        """What the table of devices says of one in a round from `oldest` on; None where it is not kept."""
        raise NotImplementedError

    def past(self, device: int) -> list[dict[str, Any]]:
        """One device by round, as far as the rounds are kept; what it spent and was granted adds up over them."""
        if self._past is None or self._past[0] != device:
            self._past = device, []
        rows = self._past[1]  # goes on where it ended, since a race may be long
        for round in range(max(rows[-1]["round"] + 1 if rows else 1, self.oldest), self.head + 1):
            if (row := self._device(round, device)) is not None:
                last = rows[-1] if rows else {"spent_j": 0.0, "granted_j": 0.0}
                granted = float(scenario_at(self, round).population.energy_budget_j[device])
                sums = {"spent_j": last["spent_j"] + spent_j(row), "granted_j": last["granted_j"] + granted}
                rows.append({"round": round, **row, **sums})
        del rows[: bisect_left(rows, self.oldest, key=itemgetter("round"))]
        return rows


def scenario_at(lane: Lane, round: int) -> Scenario:
    """The lane's scenario with the changes that are in force in a round."""
    due = tuple(change for change in lane.changes if change.round <= round)
    if due not in lane.in_force:
        lane.in_force[due] = scenario_in(lane.scenario, due, round)
    return lane.in_force[due]


class LiveLane(Lane):
    """A simulation under way, with a bounded history of what was shown and of states to fork from."""

    live = True

    def __init__(self, label: str, scenario: Scenario, seed: int, changes: Sequence[Change] = ()) -> None:
        with LOADING:
            scenario = with_numbers(scenario)
            super().__init__(label, scenario, seed, in_order(scenario, changes))
            self._player, self._manifest = prepare(scenario, seed, None, self.changes)
        self._snapshots: dict[int, Nested] = {0: self._player.snapshot()}
        self._stride = 1
        self._ahead: tuple[Nested, RoundView] | None = None  # the state before a round that was played ahead, and it

    @property
    def oldest(self) -> int:
        return next(iter(self._views), 1)

    def _device(self, round: int, device: int) -> dict[str, Any] | None:
        view = self._views.get(round)  # the race goes on meanwhile, and forgets the oldest
        if view is None or view.devices is None or (at := view.where(device)) is None:
            return None
        return {name: view.devices[name][at].item() for name in PAST if name in view.devices}

    @property
    def is_ahead(self) -> bool:
        return self._ahead is not None or self.head >= self.scenario.system.rounds

    def look_ahead(self) -> None:
        if not self.is_ahead:
            self._ahead = self._player.snapshot(), self._played()

    def _played(self) -> RoundView:
        state = self._player.server.policy_state  # as the round begins
        return of_record(self._player.step(), self._player.policy, state, self.seed, self._manifest.facts)

    def step(self) -> None:
        """Play the next round, unless it was played ahead, and keep what a page may show of it."""
        view, self._ahead = (self._played() if self._ahead is None else self._ahead[1]), None
        spent = self.rows[-1]["energy_mean_cum_j"] * self.head if self.rows else 0.0
        view.row["energy_mean_cum_j"] = (spent + view.row["energy_mean_j"]) / (self.head + 1)
        introduce(view.row, self._manifest.quantities)
        self._views[view.round] = view
        self.rows.append(view.row)
        assert view.devices is not None
        ids, sent = (view.devices[name][view.chosen].tolist() for name in ("device", "transmitted"))
        self.schedule += [(view.round, device, went) for device, went in zip(ids, sent, strict=True)]
        while len(self._views) > 20 and len(self._views) * view.bytes > HISTORY_BYTES:
            del self._views[next(iter(self._views))]
        if self.head % self._stride == 0:
            self._keep(self._player.snapshot())

    def _keep(self, state: Nested) -> None:
        self._snapshots[self.head] = state
        each = sum(array.nbytes for array in flatten(state).values())
        while len(self._snapshots) > 4 and len(self._snapshots) * each > SNAPSHOT_BYTES:
            self._stride *= 2
            self._snapshots = {t: kept for t, kept in self._snapshots.items() if t % self._stride == 0}

    def check(self, round: int, field: str, value: str) -> bool:
        """Whether a change would be one from the round on; complains, in a sentence, where it is not possible."""
        others = [change for change in self.changes if change.round < round]
        changed = in_order(self.scenario, [*others, Change(round, field, value)])
        return scenario_in(self.scenario, changed, round) != scenario_at(self, round)

    def change(self, field: str, value: str) -> None:
        """Another value from the next round on."""
        change = Change(self.head + 1, field, value)
        if self._ahead is not None:  # played under a setting that changes
            (before, _), self._ahead = self._ahead, None
            self._player.restore(before)
        self.changes = self._player.changes = in_order(self.scenario, (*self.changes, change))

    def fork(self, label: str, after: int, field: str, value: str) -> LiveLane:
        """Another future: the same run up to a round, then with one more change; it stands where this lane stands."""
        kept = [change for change in self.changes if change.round <= after]
        other = LiveLane(label, self.scenario, self.seed, [*kept, Change(after + 1, field, value)])
        start = max(t for t in self._snapshots if t <= after)
        for round in range(1, start + 1):
            other.rows.append(dict(self.rows[round - 1]))
            if round in self._views:
                other._views[round] = self._views[round]
        other.schedule = [entry for entry in self.schedule if entry[0] <= start]
        if start:
            other._player.restore(self._snapshots[start])
        other._snapshots = {t: state for t, state in self._snapshots.items() if t <= start}
        return other


class StoredLane(Lane):
    """A run from its directory, a deployment's too. follow: the directory of one that another process still plays."""

    def __init__(self, label: str, run: Run, follow: Path | None = None) -> None:
        super().__init__(label, run.scenario, run.seed, in_order(run.scenario, from_list(run.manifest.changes)))
        self._follow = follow
        self._take(run)

    def _take(self, run: Run) -> None:
        chosen = None if run.devices is None else run.devices.filter("scheduled")
        self._scenes = None if run.devices is None else Scenes(run)
        self.schedule = [] if chosen is None else chosen.select("round", "device", "transmitted").rows()
        self.rows = run.rounds.to_dicts()

    def view(self, round: int) -> RoundView:
        if (view := self._views.get(round)) is None:
            row, scenes, K = self.rows[round - 1], self._scenes, self.scenario.system.devices
            devices = None if scenes is None else scenes.rows(round)
            scene = scenes.scene(round) if scenes and K <= MOST_DEVICES else None
            view = of_tables(row, devices, scene)
            self._views = {round: view}  # only the last one is kept
        return view

    def _device(self, round: int, device: int) -> dict[str, Any] | None:
        if self._scenes is None:
            return None
        rows = self._scenes.rows(round)
        return {name: rows[name][device] for name in PAST if name in rows.columns}

    def step(self) -> None:
        """Read what has been stored meanwhile, if the run is followed; nothing, if nothing has."""
        if self._follow is None:
            raise RunError(f"{self.label} is a stored run and has ended")
        run = read_so_far(self._follow)
        if run.rounds.height > self.head:
            self._take(run)
        else:
            sleep(POLL_S)


Stored = dict[tuple[str, int | None], Path]  # run directories by name and, in a comparison, by seed


def stored_runs(path: Path) -> Stored:
    """The runs in a run directory or in a directory of results."""
    if (path / "plan.json").is_file():
        results = load_results(path)
        if not results.finished:
            raise RunError(f"{path} holds no finished run yet")
        return {(arm, seed): results.directories[arm, seed] for arm, seed in results.finished}
    if (path / "run.json").is_file():
        return {(path.name or str(path), None): path}
    inside = sorted(each.parent for each in path.glob("*/run.json")) if path.is_dir() else []
    if not inside:
        raise RunError(f"{path} holds neither a run (run.json) nor results (plan.json)")
    return {(each.name, None): each for each in inside}


def first_seeds(stored: Stored) -> dict[str, Path]:
    """Of a comparison each policy that has the first seed, with it."""
    first = next(iter(stored))[1]
    return {name: directory for (name, seed), directory in stored.items() if seed == first}


def side_by_side(paths: Sequence[Path]) -> dict[str, Path]:
    """Labels and directories of the runs of several directories; of a comparison each policy with its first seed."""
    runs: dict[str, Path] = {}
    for path in paths:
        for label, directory in first_seeds(stored_runs(path)).items():
            runs[f"{label} in {path}" if label in runs else label] = directory
    return runs


def open_runs(runs: Mapping[str, Path]) -> list[StoredLane]:
    """Lanes of stored runs, at most as many as a race has; what is unfinished is followed."""
    if not 1 <= len(runs) <= MOST_LANES:
        raise RunError(f"choose from 1 to {MOST_LANES} runs, not {len(runs)}")
    return [
        StoredLane(label, read_so_far(path), path) if is_unfinished(path) else StoredLane(label, read(path))
        for label, path in runs.items()
    ]
