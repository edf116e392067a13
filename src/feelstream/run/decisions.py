"""Ask the policy of a stored run again, round by round: what it decides must be what the tables hold.

This covers what no formula of `verify` recomputes: draws, solvers, and what a policy remembers. Whatever the files
state is taken as it stands: what the policy knew, the gains and what earlier rounds came to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feelstream.arrays import Flags, Reals
from feelstream.code import check as check_code
from feelstream.code import named_files
from feelstream.errors import FeelstreamError, RunError, sentence
from feelstream.loop.round import transmit
from feelstream.run.run import Run, read
from feelstream.run.scenes import Scene, Scenes
from feelstream.scenario.files import from_dict

DECIDE = ("policy", "policy.metric", "cpu.energy")  # fields of which a decision asks the code
SPENT = ("t_cmp_s", "e_cmp_j", "bandwidth_share", "power_w", "t_tr_s", "e_tr_j")
CLOSE = 1e-9  # relative to the largest of the round: another machine may add in another order


@dataclass(frozen=True)
class Decisions:
    """What came of it: a sentence for the first difference, if there is one, and why some rounds were not asked."""

    path: str
    asked: int
    rounds: int
    difference: str | None
    not_asked: str | None

    @property
    def ok(self) -> bool:
        return self.difference is None

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "asked": self.asked,
            "rounds": self.rounds,
            "difference": self.difference,
            "not_asked": self.not_asked,
        }

    def __str__(self) -> str:
        if self.difference:
            return f"{self.path}: the policy was asked again, and it DIFFERS: {self.difference}"
        rest = f"; from round {self.asked + 1} on it was not: {self.not_asked}" if self.not_asked else ""
        return (
            f"{self.path}: the policy was asked again in {self.asked} of {self.rounds} rounds: schedule, score and "
            f"importance are the same{rest}"
        )


def ask_again(directory: str | Path, *, trust: bool = False) -> Decisions:
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
    for round in range(1, rounds + 1):
        try:
            scene = scenes.decided(round)
        except FeelstreamError as problem:
            if round == 1:
                raise
            return Decisions(str(path), round - 1, rounds, None, sentence(problem))
        if difference := next(_differences(run, scenes, scene), None):
            return Decisions(str(path), round, rounds, f"round {round}{difference}", None)
    return Decisions(str(path), rounds, rounds, None, None)


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
        ("scheduled", _mask(decision.schedule, len(known.f_hz))),
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


def _mask(ids: Any, K: int) -> Flags:
    found = np.zeros(K, bool)
    found[ids] = True
    return found


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
