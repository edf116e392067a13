"""Play the race: one seed of one specification at a time, so that an interruption loses little."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import polars as pl

from feelstream.experiment import Arm, Plan
from feelstream.studies.hu2023 import STUDY, stored
from feelstream.studies.hu2023.multiverse import energy
from feelstream.studies.hu2023.multiverse.race import COLUMNS, KEY, Race, Wanted

ENERGY, LEARNED = "multiverse-energy.csv", "multiverse-learning.csv"


def read(tables: Path) -> Race:
    return Race(energy.Energy(energy.read(tables / ENERGY)), stored.read(tables / LEARNED, COLUMNS))


def play_race(tables: Path, play: energy.Play, say: Callable[[str], None], most: int | None) -> Race:
    """Play at most this many turns, each a seed of a specification; the table grows with every one."""
    race = read(tables)
    for turn in count() if most is None else range(most):
        wanted = race.next_runs()
        if wanted is None:
            say("the race has ended")
            break
        say(f"turn {turn + 1}: {len(wanted)} runs, seed {wanted[0].seed}")
        stored.add(tables / LEARNED, _played(wanted, play), COLUMNS, KEY)
        race = read(tables)
    return race


def _played(wanted: list[Wanted], play: energy.Play) -> Iterable[dict[str, object]]:
    arms = {f"{run.arm} | {run.specification}": run for run in wanted}
    plan = Plan(
        "multiverse-learning",
        tuple(Arm(label, run.specification.scenario(run.arm, learning=True)) for label, run in arms.items()),
        (wanted[0].seed,),
        study=STUDY.name,
    )
    rounds: pl.DataFrame = play(plan).rounds()
    for (label,), rows in rounds.group_by("arm", maintain_order=True):
        run = arms[str(label)]
        key = dict(zip(KEY, (str(run.specification), run.arm, run.seed), strict=True))
        yield key | stored.curves_of(rows)
