"""The first stage: which schedules save what the paper saves. No learning, so all of them are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path

import polars as pl

from feelstream.experiment import Arm, Plan, Results
from feelstream.experiment.significance import Spread, pooled_spread, prediction
from feelstream.experiment.statistics import Interval, t_quantile
from feelstream.run.files import write_atomically
from feelstream.studies.claims.verdicts import holds
from feelstream.studies.hu2023 import STUDY, paper
from feelstream.studies.hu2023.claims.statements import SAVINGS
from feelstream.studies.hu2023.multiverse.settings import SCHEDULE, Specification, registration, schedules, seeds

Play = Callable[[Plan], Results]
COMPARED = tuple((setting, n) for setting in ("iid", "3digit") for n in SAVINGS)
AT_STAGE = (COMPARED[:2], COMPARED)  # i.i.d. data alone first
NAMES = tuple(f"{setting}_n{n}" for setting, n in COMPARED)
SCHEMA = {**dict.fromkeys(SCHEDULE, pl.String()), "seed": pl.Int64(), **dict.fromkeys(NAMES, pl.Float64())}


def read(path: Path) -> pl.DataFrame:
    """The table: a row per schedule and seed, with what was saved, %; empty where there is no file yet."""
    return pl.read_csv(path, schema=SCHEMA) if path.is_file() else pl.DataFrame(schema=SCHEMA)


def add(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """Write the table with more of it, in a fixed order, whatever order it was made in."""
    key = [*SCHEDULE, "seed"]
    both = pl.concat([read(path), pl.DataFrame(list(rows), schema=SCHEMA)])
    after = both.group_by(key).agg(pl.col(NAMES).drop_nulls().last().round(2)).sort(*key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, after.write_csv)


@dataclass(frozen=True)
class Energy:
    """What the table says: at every stage, with the seeds of that stage alone, so that no later seed changes it."""

    table: pl.DataFrame

    @cached_property
    def savings(self) -> dict[Specification, dict[int, list[float | None]]]:
        """Schedule → seed → what was saved, in the order of COMPARED; None: not played."""
        found: dict[Specification, dict[int, list[float | None]]] = {}
        for row in self.table.iter_rows(named=True):
            found.setdefault(Specification(*(row[name] for name in SCHEDULE)), {})[row["seed"]] = [
                row[name] for name in NAMES
            ]
        return found

    def values(self, schedule: Specification, index: int, n: int) -> list[float]:
        own = self.savings.get(schedule, {})
        known = (own[seed][index] for seed in seeds()[:n] if seed in own)
        return [value for value in known if value is not None]

    @cached_property
    def _spreads(self) -> dict[tuple[str, int, int], Spread | None]:
        return {}

    def spread(self, rounds: str, index: int, n: int) -> Spread | None:
        """How much one run differs from another, pooled over the schedules with as many rounds."""
        key = rounds, index, n
        if key not in self._spreads:
            own = [each for each in self.savings if rounds == each.T]
            self._spreads[key] = pooled_spread(self.values(each, index, n) for each in own)
        return self._spreads[key]

    def missing(self, schedule: Specification, stage: int, seed: int) -> list[int]:
        """The comparisons that a stage needs of a schedule and that the table does not hold."""
        own = self.savings.get(schedule, {}).get(seed, [None] * len(COMPARED))
        return [index for index in range(len(AT_STAGE[stage])) if own[index] is None]

    def is_played(self, schedule: Specification, stage: int) -> bool:
        n = registration()["energy"]["stages"][stage]
        return not any(self.missing(schedule, stage, seed) for seed in seeds()[:n])

    def is_possible(self, schedule: Specification, stage: int, level: float) -> bool:
        """Whether each published saving may still be one run's, and each mean above 0."""
        n = registration()["energy"]["stages"][stage]
        for index, (_, size) in enumerate(AT_STAGE[stage]):
            own, spread = self.values(schedule, index, n), self.spread(schedule.T, index, n)
            mean = mean_of(own, spread, level)
            above = mean.high is None or mean.high > 0
            if not above or not holds(prediction(own, level, spread), SAVINGS[size]):
                return False
        return True

    def means(self, schedule: Specification, stage: int, level: float) -> list[Interval]:
        n = registration()["energy"]["stages"][stage]
        return [
            mean_of(self.values(schedule, index, n), self.spread(schedule.T, index, n), level)
            for index in range(len(AT_STAGE[stage]))
        ]

    def is_kept(self, schedule: Specification) -> bool:
        """Whether every mean saving is above 0 beyond chance, and every published one could be a run of ours."""
        level, last = registration()["energy"]["final"], len(AT_STAGE) - 1
        above = (each.low is not None and each.low > 0 for each in self.means(schedule, last, level))
        return self.is_possible(schedule, last, level) and all(above)

    def entered(self, stage: int) -> list[Specification]:
        """The schedules that a stage plays: those that the stage before did not show to be impossible."""
        return list(schedules()) if stage == 0 else self._possible

    @cached_property
    def _possible(self) -> list[Specification]:
        level = registration()["energy"]["level"]
        return [each for each in schedules() if self.is_possible(each, 0, level)]

    @property
    def left(self) -> list[Specification]:
        """Those that are kept, or, while runs are missing, possible so far."""
        return self._possible if self.kept is None else self.kept

    @cached_property
    def kept(self) -> list[Specification] | None:
        """The outcome; None while runs are missing."""
        for stage in range(len(AT_STAGE)):
            if not all(self.is_played(each, stage) for each in self.entered(stage)):
                return None
        return [each for each in self.entered(len(AT_STAGE) - 1) if self.is_kept(each)]


def mean_of(values: Sequence[float], spread: Spread | None, level: float) -> Interval:
    """x̄ ± t s/√n with a spread that is known better than from these values alone."""
    n = len(values)
    mean = sum(values) / n if n else float("nan")
    if spread is None or not n:
        return Interval(mean, None, None, n)
    half = float(t_quantile(spread.freedom + 1, level)) * spread.s / sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def play_all(path: Path, play: Play, say: Callable[[str], None]) -> Energy:
    """Play what the table lacks, stage by stage and seed by seed; it grows with every seed."""
    for stage, n in enumerate(registration()["energy"]["stages"]):
        entered = Energy(read(path)).entered(stage)
        for seed in seeds()[:n]:
            known = Energy(read(path))
            wanted = {each: missing for each in entered if (missing := known.missing(each, stage, seed))}
            if wanted:
                say(f"energy, stage {stage + 1}: {len(wanted)} schedules, seed {seed}")
                add(path, _played(wanted, seed, play))
    return Energy(read(path))


def _label(schedule: Specification, label: str) -> str:
    own = schedule.read_by(label)
    if " random " in label and own.eligible == "any":  # it never looks at what has arrived
        own = Specification("any", own.fresh, schedules()[0].sigma, own.T)
    return f"{label} | {own}"


def _played(wanted: Mapping[Specification, Sequence[int]], seed: int, play: Play) -> Iterable[dict[str, object]]:
    """The rows of schedules, each with the comparisons that are wanted of it."""
    arms: dict[str, Arm] = {}
    for schedule, indices in wanted.items():
        for index in indices:
            for label in (paper.proposed(*COMPARED[index]), paper.random(*COMPARED[index])):
                name = _label(schedule, label)
                if name not in arms:
                    arms[name] = Arm(name, schedule.scenario(label, learning=False))
    results = play(Plan("multiverse-energy", tuple(arms.values()), (seed,), study=STUDY.name))
    last = results.rounds().group_by("arm").agg(pl.col("energy_mean_cum_j").sort_by("round").last())
    spent = dict(last.iter_rows())
    for schedule, indices in wanted.items():
        row: dict[str, object] = {name: getattr(schedule, name) for name in SCHEDULE}
        row |= {"seed": seed, **dict.fromkeys(NAMES)}
        for index in indices:
            one, other = (_label(schedule, arm(*COMPARED[index])) for arm in (paper.proposed, paper.random))
            if one in spent and other in spent:
                row[NAMES[index]] = 100 * (1 - spent[one] / spent[other])
        yield row
