"""The claims of the paper as numbers per seed.

A claim says that something is ahead of something else, or gives a number. It becomes one number per seed and rival,
positive where the seed speaks for the claim. The paper's text is paraphrased, but for its abstract, which is quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from feelstream.experiment import paper as reproduce
from feelstream.experiment.claims.series import SPANS, Series, Span, series
from feelstream.experiment.claims.verdicts import Ahead, Published, Test

PerSeed = dict[int, float]
Effects = dict[str, PerSeed]  # rival → number per seed

ABSTRACT = (
    "Our proposed algorithm based on the Lyapunov optimization framework outperforms alternative methods without "
    "considering time-varying data importance, especially when the generation of training data shows strong temporal "
    "correlation."
)
SAVINGS = {2: 16.0, 4: 35.0}  # %, by devices a round
SCALE = {"accuracy": 100.0, "loss": -1.0}  # to percentage points and nat; the lower loss is ahead
UNIT = {"accuracy": "pp", "loss": "nat"}


class Measured:
    """The per-seed series of a set of runs, read once each."""

    def __init__(self, rounds: pl.DataFrame) -> None:
        self._arms = {str(arm): table for (arm,), table in rounds.group_by("arm", maintain_order=True)}
        self._known: dict[tuple[str, str], Series | None] = {}

    def series(self, arm: str, column: str) -> Series | None:
        if (arm, column) not in self._known:
            rows = self._arms.get(arm)
            self._known[arm, column] = None if rows is None else series(rows, arm, column)
        return self._known[arm, column]

    def over(self, arm: str, column: str, span: Span) -> PerSeed | None:
        found = self.series(arm, column)
        return None if found is None else found.over(span)

    def lead(self, ahead: str, behind: str, column: str, span: Span) -> PerSeed | None:
        """By how much one arm is better than another, per seed, in pp or nat; positive is better."""
        a, b = self.over(ahead, column, span), self.over(behind, column, span)
        if a is None or b is None:
            return None
        return {seed: SCALE[column] * (a[seed] - b[seed]) for seed in a if seed in b} or None

    def distance(self, one: str, other: str, column: str) -> PerSeed | None:
        """Mean over the tested rounds of |difference| of two curves, per seed, in pp or nat."""
        a, b = self.series(one, column), self.series(other, column)
        if a is None or b is None or not np.array_equal(a.rounds, b.rounds):
            return None
        rows = dict(zip(b.seeds, b.values, strict=True))
        return {
            seed: abs(SCALE[column]) * float(np.abs(row - rows[seed]).mean())
            for seed, row in zip(a.seeds, a.values, strict=True)
            if seed in rows
        } or None


@dataclass(frozen=True)
class Claim:
    """One statement of the paper: what must be above 0, seed by seed, for it to be true."""

    key: str
    panel: str
    statement: str  # in our words
    paper: str  # what the paper reports
    measure: str
    unit: str
    test: Test
    arms: tuple[str, ...]
    effects: Callable[[Measured], Effects | None]
    fitted: bool = False  # used to choose T and σ, therefore no evidence
    wording: str = "paraphrase"


def all_claims() -> list[Claim]:
    """The paper's claims, in the order of its panels."""
    return [*_accuracy(), *_saving(), *_metrics(), *_gap()]


def remaining_claims() -> list[Claim]:
    """Those on figure 1, with only devices eligible that hold data: what is left without random's empty slots."""
    return [*_accuracy(reproduce.with_data), *_saving(reproduce.with_data)]


def energy_claims() -> list[Claim]:
    """Those that need no learning."""
    return list(_saving())


def _same(label: str) -> str:
    return label


def _accuracy(arm: Callable[[str], str] = _same) -> Iterable[Claim]:
    spans: tuple[tuple[Span, str], ...] = (("mean", "over the whole run"), ("end", "at the end"))
    for panel, setting in (("1a", "iid"), ("1b", "3digit")):
        for n in reproduce.SIZES:
            ours, other = arm(reproduce.proposed(setting, n)), arm(reproduce.random(setting, n))
            for span, words in spans:
                yield Claim(
                    key=f"{panel}-n{n}-{span}",
                    panel=panel,
                    statement=f"{reproduce.IN_WORDS[setting]}, n = {n}: proposed more accurate than random {words}",
                    paper="ahead",
                    measure=f"accuracy, proposed − random, {SPANS[span]}",
                    unit="pp",
                    test=Ahead(),
                    arms=(ours, other),
                    effects=_lead(ours, {"random": other}, "accuracy", span),
                )


def _saving(arm: Callable[[str], str] = _same) -> Iterable[Claim]:
    for panel, setting in (("1c", "iid"), ("1d", "3digit")):
        for n, saving in SAVINGS.items():
            ours, other = arm(reproduce.proposed(setting, n)), arm(reproduce.random(setting, n))
            yield Claim(
                key=f"{panel}-n{n}-saving",
                panel=panel,
                statement=f"{reproduce.IN_WORDS[setting]}, n = {n}: proposed saves energy against random",
                paper=f"{saving:g} %",
                measure="1 − proposed / random, energy per device over the whole run",
                unit="%",
                test=Published(saving, "%"),
                arms=(ours, other),
                effects=_share_saved(ours, other),
                fitted=arm is _same,
            )


def _metrics() -> Iterable[Claim]:
    for panel, setting, column in (
        ("2a", "iid", "accuracy"),
        ("2b", "2digit", "accuracy"),
        ("3a", "minority", "loss"),
        ("3b", "minority-uniform", "loss"),
    ):
        combined, amount, dissimilarity = (reproduce.metric(setting, name) for name in reproduce.METRICS)
        where, better = reproduce.IN_WORDS[setting], {"accuracy": "higher accuracy", "loss": "lower loss"}[column]
        if panel != "3b":
            yield Claim(
                key=f"{panel}-early",
                panel=panel,
                statement=f"{where}: amount alone ahead of dissimilarity alone early ({better})",
                paper="ahead",
                measure=f"{column}, lead of amount over dissimilarity, {SPANS['early']}",
                unit=UNIT[column],
                test=Ahead(),
                arms=(amount, dissimilarity),
                effects=_lead(amount, {"dissimilarity": dissimilarity}, column, "early"),
            )
        yield Claim(
            key=f"{panel}-late",
            panel=panel,
            statement=f"{where}: dissimilarity alone ahead of both others late ({better})",
            paper="ahead of both",
            measure=f"{column}, lead of dissimilarity over amount and over combined, {SPANS['late']}",
            unit=UNIT[column],
            test=Ahead(),
            arms=(dissimilarity, amount, combined),
            effects=_lead(dissimilarity, {"amount": amount, "combined": combined}, column, "late"),
        )


def _gap() -> Iterable[Claim]:
    normal = tuple(reproduce.metric("minority", name) for name in ("amount", "dissimilarity"))
    uniform = tuple(reproduce.metric("minority-uniform", name) for name in ("amount", "dissimilarity"))

    def shrinkage(measured: Measured) -> Effects | None:
        before = measured.distance(normal[0], normal[1], "loss")
        after = measured.distance(uniform[0], uniform[1], "loss")
        if before is None or after is None:
            return None
        shared = {seed: before[seed] - after[seed] for seed in before if seed in after}
        return {"truncated-normal arrivals": shared} if shared else None

    yield Claim(
        key="3b-gap",
        panel="3b",
        statement="minority digits: the gap between amount alone and dissimilarity alone is smaller under uniform "
        "arrivals",
        paper="smaller",
        measure="loss, distance between the curves of amount and dissimilarity (absolute difference, mean over the "
        "rounds), under truncated-normal minus under uniform arrivals",
        unit="nat",
        test=Ahead(),
        arms=(*normal, *uniform),
        effects=shrinkage,
        wording=f"paraphrase; the abstract says: “{ABSTRACT}”",
    )


def _lead(ahead: str, rivals: dict[str, str], column: str, span: Span) -> Callable[[Measured], Effects | None]:
    """The lead over each rival; None unless all of them were measured."""

    def effects(measured: Measured) -> Effects | None:
        leads = {name: measured.lead(ahead, rival, column, span) for name, rival in rivals.items()}
        known = {name: lead for name, lead in leads.items() if lead is not None}
        return known if len(known) == len(rivals) else None

    return effects


def _share_saved(ours: str, other: str) -> Callable[[Measured], Effects | None]:
    """100 (1 − E_ours/E_other) per seed, %; a seed in which the other spent nothing does not count."""

    def effects(measured: Measured) -> Effects | None:
        spent = measured.over(ours, "energy_mean_cum_j", "final")
        base = measured.over(other, "energy_mean_cum_j", "final")
        if spent is None or base is None:
            return None
        saved = {seed: 100 * (1 - spent[seed] / base[seed]) for seed in spent if base.get(seed, 0.0) > 0}
        return {"random": saved} if saved else None

    return effects
