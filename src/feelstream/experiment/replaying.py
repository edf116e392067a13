"""Ask the policy of a stored run again, round by round, or repeat all of it: what comes out must be what is stored.

To ask again covers what no formula of `verify` recomputes: draws, solvers, and what a policy remembers. Whatever the
files state is taken as it stands: what the policy knew, the gains and what earlier rounds came to. To repeat the run
also covers the world, the accuracy and a user's own code.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from feelstream.arrays import Flags, Reals
from feelstream.code import check as check_code
from feelstream.code import named_files
from feelstream.errors import FeelstreamError, RunError, sentence
from feelstream.loop.changes import from_list
from feelstream.loop.round import RoundRecord, transmit
from feelstream.run.files import read_table
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.run.play import simulate_in
from feelstream.run.run import Run, read, read_stored
from feelstream.run.scenes import Scene, Scenes
from feelstream.scenario.files import from_dict

DECIDE = ("policy", "policy.metric", "cpu.energy")  # fields of which a decision asks the code
SPENT = ("t_cmp_s", "e_cmp_j", "bandwidth_share", "power_w", "t_tr_s", "e_tr_j")
CLOSE = 1e-9  # relative to the largest of the round: another machine may add in another order


@dataclass(frozen=True)
class Again:
    """What came of it: a sentence for the first difference, None where there is none."""

    path: Path
    done: str  # as in "repeated"
    same: str  # what is said after it where nothing differs
    difference: str | None
    about: dict[str, Any]  # what else JSON says of it

    @property
    def ok(self) -> bool:
        return self.difference is None

    def as_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **self.about, "difference": self.difference}

    def __str__(self) -> str:
        differs = f", and it DIFFERS: {self.difference}"
        return f"{self.path}: {self.done}{self.same if self.ok else differs}"


def ask_again(directory: str | Path, *, trust: bool = False) -> Again:
    """Rebuild what the policy knew in every round of the run in `directory`, and compare what it decides.

    trust: run the code of the user's own that run.json names, which must be as it was.
    """
    path = Path(directory)
    run = read(path)
    if run.devices is None:
        raise RunError(f"{path} stores no devices (trace.level = rounds), from which decisions could be repeated")
    own = [name for name in run.manifest.resolved.own if name in DECIDE]
    scenario = run.scenario
    if own and not trust:
        raise RunError(f"{path} decides by code of the user's own ({', '.join(own)}); add --trust to run that code")
    if own:
        scenario = from_dict(run.manifest.scenario)
        check_code(scenario)
        if named_files(scenario) != run.manifest.files:
            raise RunError(
                f"{path} was made with other files than those that are there now, so it cannot be asked again"
            )
    if scenario.policy.probes:
        what = ", ".join(sorted(scenario.policy.probes))
        raise RunError(f"{path} is of a policy that goes by reports ({what}), which no trace holds")
    scenes, rounds = Scenes(run, scenario), run.rounds.height
    asked, difference, not_asked = rounds, None, None
    for round in range(1, rounds + 1):
        try:
            scene = scenes.decided(round)
        except FeelstreamError as problem:
            if round == 1:
                raise
            asked, not_asked = round - 1, sentence(problem)
            break
        if found := next(_differences(run, scenes, scene), None):
            asked, difference = round, f"round {round}{found}"
            break
    rest = f"; from round {asked + 1} on it was not: {not_asked}" if not_asked else ""
    same = f" in {asked} of {rounds} rounds: schedule, score and importance are the same{rest}"
    about = {"asked": asked, "rounds": rounds, "not_asked": not_asked}
    return Again(path, "the policy was asked again", same, difference, about)


def _differences(run: Run, scenes: Scenes, scene: Scene) -> Iterator[str]:
    """In words, what the policy decides otherwise now."""
    known, decision = scene.observation, scene.decision
    rows = scenes.rows(known.round)
    planned = run.rounds["planned"][known.round - 1]
    if planned != decision.plan.n:
        yield f", planned: stored {planned}, now {decision.plan.n}"
    importance = decision.importance
    if importance is None:
        importance = known.importance("combined", decision.plan)
    for name, now in (
        ("feasible", decision.plan.feasible),
        ("scheduled", np.isin(np.arange(len(known.f_hz)), decision.schedule)),
        ("importance", importance),
        ("score", np.full(len(known.f_hz), np.nan) if decision.score is None else decision.score),
    ):
        yield from _difference(name, rows[name].to_numpy(), now, decision.plan.feasible)
    if scene.policy.equal_shares or {"deployed", "packet_errors"} & {*scenes.facts}:
        return  # recomputed by verify, measured, or drawn
    ids = decision.schedule
    spent = transmit(scene.policy, known, decision, rows["gain"].to_numpy()[ids])
    for name, now in (("transmitted", spent.sent), *((name, getattr(spent, name)) for name in SPENT)):
        yield from _difference(name, rows[name].to_numpy()[ids], now, np.ones(len(ids), bool), ids)


def _difference(name: str, stored: Any, now: Any, where: Flags, ids: Any = None) -> Iterator[str]:
    """Of devices to whom a number applies; what is null, or not a number, must be so now."""
    stored, now = (np.asarray(each, float) for each in (stored, now))
    truth = name in ("feasible", "scheduled", "transmitted")
    different = stored != now if truth else where & ~_close(stored, now, where)
    if different.any():
        first = int(np.argmax(different))
        device = first if ids is None else int(ids[first])
        said = [bool(each[first]) if truth else float(each[first]) for each in (stored, now)]
        yield f", device {device}, {name}: stored {said[0]!r}, now {said[1]!r}"


def _close(stored: Reals, now: Reals, where: Flags) -> Flags:
    both = np.isnan(stored) & np.isnan(now)
    size = np.abs(now[where & np.isfinite(now)]).max(initial=0.0)
    return both | (np.abs(stored - now) <= CLOSE * size)


def replay(directory: str | Path, progress: Callable[[RoundRecord, int], None] = lambda record, rounds: None) -> Again:
    """Repeat the run in `directory`, elsewhere, and compare the bytes of its tables.

    This runs the code that run.json names: a policy, metric, model or data set of the user's own. progress: is told
    each round that was played, and of how many.
    """
    path = Path(directory)
    manifest = Manifest.of_finished(path)
    if "deployed" in manifest.facts:
        raise RunError(f"{path} holds a run of real devices, which cannot be repeated")
    stored = {name: read_stored(path, name, manifest) for name in manifest.digests if name.endswith(".parquet")}
    scenario = from_dict(manifest.scenario)
    changes = from_list(manifest.changes)
    rounds, difference = scenario.system.rounds, None
    with tempfile.TemporaryDirectory(prefix="feelstream-") as elsewhere:
        again = simulate_in(
            elsewhere, scenario, manifest.seed, changes=changes, progress=lambda record: progress(record, rounds)
        ).manifest
        for name, rows in stored.items():
            if again.digests.get(name) != manifest.digests[name]:
                there = _first_difference(name, rows, read_table(Path(elsewhere) / name))
                difference = f"{there}{_other_conditions(path, manifest, again)}"
                break
    return Again(
        path, "repeated", f", and {' and '.join(stored)} are the same bytes", difference, {"tables": [*stored]}
    )


def _first_difference(name: str, stored: pl.DataFrame, again: pl.DataFrame) -> str:
    if stored.schema != again.schema or stored.height != again.height:
        return f"{name} has other columns or rows"
    for column in stored.columns:
        same = stored[column].eq_missing(again[column])
        if not same.all():
            row = int((~same).arg_true()[0])
            who = {key: stored[key][row] for key in ("round", "device") if key in stored.columns}
            where = ", ".join(f"{key} {value}" for key, value in who.items())
            return f"{name}, {where}, {column}: stored {stored[column][row]!r}, now {again[column][row]!r}"
    return f"{name} has the same values in other bytes"


def _other_conditions(path: Path, stored: Manifest, again: Manifest) -> str:
    """Another engine, data set or release explains a difference, and does not prove damage."""
    try:
        check_same_run(path, stored, again.as_dict())
    except RunError as problem:
        return f" (but {str(problem).partition(';')[0]})"
    return ""
