"""One round as a page shows it: the trace's own columns, of all devices or of a sample, and why it went that way."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.arrays import Ids
from feelstream.columns import DEVICE_COLUMNS, columns_of
from feelstream.loop.round import RoundRecord
from feelstream.policies.base import Policy, State
from feelstream.policies.ranking import Ranking
from feelstream.run import trace
from feelstream.run.explaining import Explanation, explain_scene, listed, number, ranked, reason, rule
from feelstream.run.scenes import Scene, counts
from feelstream.scenario import Scenario

ARRAY_BYTES = 150  # of an array beside its numbers, with its place in a dictionary
MOST_DEVICES = 400  # on a map; of more, an even sample is shown, with all that were scheduled
TOLD = ("fresh_features", "used_features", "stored_features")
ASIDE = ("round", "used_labels", "stored_labels", *TOLD)  # columns that no page shows by device, and lists are large
MOST_EXPLAINED = 3  # scheduled devices that are explained one by one
MOST_RANKED = 12  # that are looked at for it


@dataclass(frozen=True)
class RoundView:
    """One round of one lane. `devices` is None where a stored run has no rows of devices."""

    row: dict[str, Any]  # as in rounds.parquet
    devices: dict[str, NDArray] | None  # (n,) each, as in devices.parquet; the column `device` says which they are
    used_labels: NDArray | None  # (m,) label counts of X, the data used before the round
    scene: Scene | None = None  # what the decision follows from, where it can be decided again

    @property
    def round(self) -> int:
        return self.row["round"]

    @property
    def chosen(self) -> NDArray[np.intp]:
        """Positions of the scheduled within `devices`."""
        return np.flatnonzero(self.devices["scheduled"]) if self.devices else np.zeros(0, np.intp)

    def where(self, device: int) -> int | None:
        """The position of a device within `devices`, if it is shown."""
        if self.devices is None:
            return None
        found = np.flatnonzero(self.devices["device"] == device)
        return int(found[0]) if len(found) else None

    def status(self, at: int) -> str:
        """What became of the device at a position."""
        said = self.devices
        assert said is not None
        if said["scheduled"][at]:
            return "sent" if said["transmitted"][at] else "dropped"
        return "idle" if said["feasible"][at] else "too slow" if said["available"][at] else "not available"

    @property
    def bytes(self) -> int:
        """About what the view takes in memory: its arrays, and what Python needs to hold each of them."""
        held = [*(self.devices or {}).values()]
        if self.scene is not None:
            decision = self.scene.decision
            held += [*vars(self.scene.observation).values(), *vars(decision).values(), *vars(decision.plan).values()]
        return sum(each.nbytes + ARRAY_BYTES for each in held if isinstance(each, np.ndarray))


def shown(scheduled: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The devices to show, ascending: all, or evenly spaced ones and the scheduled."""
    K = len(scheduled)
    if K <= MOST_DEVICES:
        return np.arange(K)
    even = np.linspace(0, K - 1, MOST_DEVICES).astype(np.intp)
    return np.union1d(even, np.flatnonzero(scheduled)[:MOST_DEVICES])


def of_record(record: RoundRecord, policy: Policy, state: State, seed: int, facts: Collection[str]) -> RoundView:
    """A round that was just played; nothing of it is a view of the stream's arrays.

    policy and state: with which it was decided; facts: of its run.
    """
    row = trace.round_row(record)
    scheduled = np.zeros(len(record.gain), bool)
    scheduled[record.decision.schedule] = True
    which = shown(scheduled)
    columns = trace.device_rows(record, columns_of(DEVICE_COLUMNS, facts))
    devices = {name: columns[name][which] for name in columns if name not in ASIDE}  # an index array copies
    scene = _scene(record, policy, state, seed) if len(scheduled) <= MOST_DEVICES else None
    return RoundView(row, devices, np.array(record.observation.used_features), scene)


def _scene(record: RoundRecord, policy: Policy, state: State, seed: int) -> Scene:
    known = record.observation
    held = None if known.stored_features is None else known.stored_features.copy()
    observation = replace(known, fresh_features=known.fresh_features.copy(), stored_features=held)
    return Scene(policy, state, observation, seed, record.decision)


def of_tables(row: dict[str, Any], devices: pl.DataFrame | None, scene: Scene | None = None) -> RoundView:
    """A round of a stored run: its row, and its devices' rows if they are stored."""
    if devices is None or devices.is_empty():
        return RoundView(row, None, None)
    used = counts(devices["used_labels"]).sum(axis=0)
    some = devices[shown(devices["scheduled"].to_numpy())]
    columns: dict[str, NDArray] = {}
    for name in (name for name in some.columns if name not in ASIDE):
        series = some[name]
        if series.dtype == pl.Null:
            columns[name] = np.full(len(series), np.nan)
        else:
            columns[name] = counts(series) if name == "fresh_labels" else series.to_numpy()
    return RoundView(row, columns, used, scene)


def why(view: RoundView, scenario: Scenario) -> str:
    """The sentence under a policy; `scenario` is the one in force in the round."""
    row, devices = view.row, view.devices
    if not row["scheduled"]:
        few = f"the rule took none of {row['feasible']} feasible devices"
        return f"Nobody was scheduled: {few if row['feasible'] else 'no device met the deadline'}."
    if devices is None:
        return f"{row['scheduled']} of {row['feasible']} feasible devices were scheduled; this run stores no devices."
    chosen = view.chosen
    were, scores = "was" if len(chosen) == 1 else "were", devices["score"][chosen]
    sentence = f"{_who(devices['device'][chosen])} {were} scheduled out of {row['feasible']} feasible devices"
    if np.isfinite(scores).any():
        sentence += f" by the lowest scores ({listed([number(float(score)) for score in scores], 4)})"
    said = rule(scenario.policy)
    sentence += f".{_decided(view, chosen) or (said and f' The rule: {said}.')}"
    lost = row["scheduled"] - row["transmitted"]
    if lost:
        dropped = devices["device"][chosen[~devices["transmitted"][chosen]]]
        late = _who(dropped) if len(dropped) == lost else f"{lost} of them"
        sentence += f" {late} {'was' if lost == 1 else 'were'} dropped: with this round's channel too late."
    return sentence


def _who(ids: NDArray) -> str:
    return f"Device{'s' if len(ids) > 1 else ''} {listed(ids.tolist())}"


def explained(view: RoundView, at: int, *, with_thresholds: bool = False) -> Explanation | None:
    """Why the device at position `at` was scheduled, or not, from the terms of its score; None where none are known."""
    if view.scene is None or view.devices is None:
        return None
    figures = {name: view.devices[name][at] for name in ("available", "feasible", "transmitted", "f_hz")}
    return explain_scene(view.scene, figures, int(view.devices["device"][at]), with_thresholds=with_thresholds)


def ranking_of(view: RoundView) -> Ranking | None:
    """What the candidates of the round were ranked by; where the rule judges sets, for the place of a member."""
    if view.scene is None:
        return None
    schedule = view.scene.decision.schedule
    device = int(schedule[0]) if len(schedule) else int(np.argmax(view.scene.decision.plan.feasible))
    return ranked(view.scene, device)


def place(ranking: Ranking, schedule: Ids) -> str:
    """Which place the candidates compete for, where the rule judges sets; nothing where each is ranked by itself."""
    rest = [int(device) for device in schedule if not np.isfinite(ranking.total[device])]
    return f"For a place beside {_who(np.array(rest)).lower()}." if rest else ""


def _decided(view: RoundView, chosen: np.ndarray) -> str:
    """What put the scheduled before the others: of each, or of the closest to the cut where they are many."""
    found = [each for at in chosen[:MOST_RANKED] if (each := explained(view, at)) is not None]
    contests = [(each.contest.margin, each.device, each.contest) for each in found if each.contest is not None]
    if len(contests) > MOST_EXPLAINED:
        contests = [min(contests, key=lambda each: each[0])]
    return "".join(f" Device {device}: {reason(contest, scheduled=True)}" for _, device, contest in contests)
