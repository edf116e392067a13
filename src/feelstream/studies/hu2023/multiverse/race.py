"""The second stage: specifications whose savings are the paper's race with learning, seed by seed and figure by figure.

A wave of them begins with a few seeds. In each figure, those with a claim that is impossible by then are dropped, and
of the others the most likely go on. What a stage decides depends on the seeds of that stage alone, so the same table
leads to the same race, and an interrupted one goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product

import numpy as np
import polars as pl

from feelstream.studies.claims import Claim, Measured
from feelstream.studies.claims.verdicts import margin_of
from feelstream.studies.hu2023 import stored
from feelstream.studies.hu2023.claims import figure_claims
from feelstream.studies.hu2023.multiverse.effects import Key, Leads, impossible, leads_of
from feelstream.studies.hu2023.multiverse.energy import Energy
from feelstream.studies.hu2023.multiverse.mixed import fit
from feelstream.studies.hu2023.multiverse.settings import SETTINGS, Specification, already, levels, registration, seeds

KEY = ("specification", "arm", "seed")
COLUMNS = (*KEY, *stored.CURVES)
FIGURES = ("1", "2", "3")


@cache
def claims_of(figure: str) -> list[Claim]:
    """The claims on a figure that need learning."""
    return [claim for claim in figure_claims() if claim.panel[0] == figure and not claim.fitted]


@cache
def arms_of(figure: str) -> list[str]:
    return list(dict.fromkeys(arm for claim in claims_of(figure) for arm in claim.arms))


@dataclass(frozen=True)
class Wanted:
    """A run that a stage needs: an arm of the paper under what it looks at of a specification."""

    specification: Specification
    arm: str
    seed: int


class Race:
    """What the table of runs says, given the outcome of the first stage."""

    def __init__(self, energy: Energy, table: pl.DataFrame) -> None:
        self.kept, self.table = energy.kept or [], table
        self._leads: dict[tuple[Specification, str, int], Leads] = {}
        self._entered: dict[tuple[int, int, str], list[Specification] | None] = {}

    @cached_property
    def played(self) -> set[tuple[str, str, int]]:
        return set(self.table.select(KEY).iter_rows())

    @cached_property
    def candidates(self) -> list[Specification]:
        """Every combination that may enter, in the order in which waves take them."""
        rules = registration()["race"]
        whole = (
            Specification(each.eligible, each.fresh, each.sigma, each.T, *more)
            for each in self.kept
            for more in product(levels("reading"), levels("training"), levels("weight"))
        )
        allowed = [
            each for each in whole
            if each.steps <= rules["most_steps"] and int(each.T) <= rules["most_rounds"] and each not in already()
        ]  # fmt: skip
        return far_apart(tuple(allowed), tuple(sorted(already())), self.shown)

    shown = 48  # candidates that are put in order: more waves than will be played

    def wave(self, index: int) -> list[Specification]:
        size = registration()["race"]["wave"]
        return self.candidates[index * size : (index + 1) * size]

    def leads(self, specification: Specification, figure: str, n: int) -> Leads | None:
        """What each lead of each claim is, seed by seed; None unless the first n seeds are complete."""
        key = specification, figure, n
        if key not in self._leads:
            if self.missing(specification, figure, n):
                return None
            rows = self._rows(specification, arms_of(figure)).filter(pl.col("seed").is_in(seeds()[:n]))
            self._leads[key] = leads_of(claims_of(figure), Measured(stored.long(rows)))
        return self._leads[key]

    def _rows(self, specification: Specification, arms: Iterable[str]) -> pl.DataFrame:
        own = pl.DataFrame(
            {"arm": list(arms), "specification": [str(specification.read_by(arm)) for arm in arms]},
            schema={"arm": pl.String, "specification": pl.String},
        )
        return self.table.join(own, on=["arm", "specification"], how="semi")

    def rounds(self, specification: Specification) -> pl.DataFrame:
        """All its curves."""
        return stored.long(self._rows(specification, [arm for figure in FIGURES for arm in arms_of(figure)]))

    def missing(self, specification: Specification, figure: str, n: int) -> list[Wanted]:
        return [
            Wanted(specification.read_by(arm), arm, seed)
            for seed in seeds()[:n]
            for arm in arms_of(figure)
            if (str(specification.read_by(arm)), arm, seed) not in self.played
        ]

    def seeds_of(self, specification: Specification, figure: str) -> int:
        """How many seeds are complete, of those in order."""
        n = 0
        while n < len(seeds()) and not self.missing(specification, figure, n + 1):
            n += 1
        return n

    def entered(self, wave: int, stage: int, figure: str) -> list[Specification] | None:
        """Those of a wave that a stage plays in a figure; None while the stage before is not complete."""
        if stage == 0:
            return self.wave(wave)
        key = wave, stage, figure
        if key not in self._entered:
            before = self.entered(wave, stage - 1, figure)
            n = self._stages[stage - 1]
            ready = before is not None and all(not self.missing(each, figure, n) for each in before)
            self._entered[key] = self.go_on(before or [], figure, stage) if ready else None
        return self._entered[key]

    def go_on(self, before: Sequence[Specification], figure: str, stage: int) -> list[Specification]:
        """Of those that were played with the seeds before a stage: the possible ones, the most likely first."""
        n = self._stages[stage - 1]
        known = {each: leads for each in before if (leads := self.leads(each, figure, n)) is not None}
        out = impossible(known, claims_of(figure), registration()["race"]["level"])
        left = [each for each in known if not out[each]]
        likely = self.least_chance(known, figure)
        most = registration()["race"]["go_on"]
        ordered = sorted(left, key=lambda each: -likely[each])
        return ordered[: most[stage - 1]] if stage <= len(most) else ordered

    @property
    def _stages(self) -> list[int]:
        return registration()["race"]["stages"]

    def chances(self, known: Mapping[Specification, Leads], figure: str) -> dict[Specification, dict[Key, float]]:
        """P(effect > minus its margin) of every lead, drawn towards what other specifications have."""
        margins = {claim.key: margin_of(claim.test) for claim in claims_of(figure)}
        found: dict[Specification, dict[Key, float]] = {each: {} for each in known}
        keys = next(iter(known.values()), {})
        for key in keys:
            rows = [(each, seed, value) for each, leads in known.items() for seed, value in leads[key].items()]
            model = fit([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
            for each, chance in zip(known, model.chance(list(known), -margins[key[0]]), strict=True):
                found[each][key] = float(chance)
        return found

    def least_chance(self, known: Mapping[Specification, Leads], figure: str) -> dict[Specification, float]:
        """Of all leads, the least likely: no more than this is the chance that all claims of the figure hold."""
        return {each: min(own.values()) for each, own in self.chances(known, figure).items()}

    def next_runs(self) -> list[Wanted] | None:
        """What is to be played next: a seed of a specification in every figure that needs it; None: nothing is left."""
        for index in range(self.shown // registration()["race"]["wave"]):
            for stage, n in enumerate(self._stages):
                found = [self._next(index, stage, n, figure) for figure in FIGURES]
                wanted = [each for own in found for each in own]
                if wanted:
                    first, seed = wanted[0][0], wanted[0][1].seed
                    return list(dict.fromkeys(run for each, run in wanted if each == first and run.seed == seed))
        return None

    def _next(self, wave: int, stage: int, n: int, figure: str) -> list[tuple[Specification, Wanted]]:
        entered = self.entered(wave, stage, figure) or []
        return [(each, run) for each in entered for run in self.missing(each, figure, n)]

    @cached_property
    def begun(self) -> list[Specification]:
        """The specifications that have a complete seed of a figure."""
        return [each for each in self.candidates if any(self.seeds_of(each, figure) for figure in FIGURES)]

    def arrived(self, figure: str) -> list[Specification] | None:
        """Those with all seeds and no impossible claim, in waves whose race is over; None: in no wave it is."""
        waves, last = range(self.shown // registration()["race"]["wave"]), len(self._stages)
        over = [each for wave in waves if (each := self.entered(wave, last, figure)) is not None]
        return [each for wave in over for each in wave] if over else None

    def finalists(self) -> dict[str, Specification]:
        """Of each figure the most likely of those that arrived.

        While a race runs, the only one with all seeds need not be the most likely: others of its stage still run.
        """
        arrived = {figure: self.arrived(figure) for figure in FIGURES}
        return {figure: self.go_on(own, figure, len(self._stages))[0] for figure, own in arrived.items() if own}


@lru_cache(maxsize=8)
def far_apart(
    candidates: tuple[Specification, ...], from_these: tuple[Specification, ...], n: int, seed: int = 0
) -> list[Specification]:
    """n candidates in turn, each the one that differs in the most settings from the nearest so far.

    Ties: the one that differs most on average, then a fixed random order.
    """
    if not candidates:
        return []
    order = np.random.default_rng(seed).permutation(len(candidates))
    mixed = [candidates[index] for index in order]
    codes = np.array([[levels(name).index(getattr(each, name)) for name in SETTINGS] for each in mixed])
    taken: list[int] = []
    least, total = np.full(len(mixed), len(SETTINGS)), np.zeros(len(mixed))
    others = [[levels(name).index(getattr(each, name)) for name in SETTINGS] for each in from_these]
    for other in others:
        distance = (codes != np.array(other)).sum(axis=1)
        least, total = np.minimum(least, distance), total + distance
    while len(taken) < min(n, len(mixed)):
        score = least * 1000.0 + total / (len(taken) + len(others) or 1)
        score[taken] = -1
        best = int(np.argmax(score))
        taken.append(best)
        distance = (codes != codes[best]).sum(axis=1)
        least, total = np.minimum(least, distance), total + distance
    return [mixed[index] for index in taken]
