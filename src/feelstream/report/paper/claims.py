"""What the paper claims, what our runs say, and whether the two agree.

Each claim is a number per seed (a difference between arms that met the same world, or a saving), its 95 % interval and
a stated test. Only claims whose arms were run and measured are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from feelstream.experiment import Plan
from feelstream.experiment import paper as reproduce
from feelstream.experiment.statistics import Interval, interval
from feelstream.report.drawing.quantities import QUANTITIES
from feelstream.report.numbers import with_interval
from feelstream.report.paper.reasons import reason
from feelstream.report.paper.series import SPANS, Series, Span, series
from feelstream.report.paper.verdicts import Ahead, NotBehind, Size, Test, Verdict, judge

PerSeed = dict[int, float]

# "Level" needs a margin: differences below it are of no practical weight on MNIST.
LEVEL = {"accuracy": 1.0, "loss": 0.05}
DIFFERENCE_UNIT = {"accuracy": "pp", "loss": "nat"}


class Measured:
    """The per-seed series of a set of runs, read once each."""

    def __init__(self, rounds: pl.DataFrame) -> None:
        self._rounds = rounds
        self._known: dict[tuple[str, str], Series | None] = {}

    def over(self, arm: str, column: str, span: Span) -> PerSeed | None:
        if (arm, column) not in self._known:
            self._known[arm, column] = series(self._rounds, arm, column)
        found = self._known[arm, column]
        return None if found is None else found.over(span)

    def lead(self, ahead: str, behind: str, column: str, span: Span) -> PerSeed | None:
        """By how much one arm is better than another, per seed, in the quantity's unit; positive is better."""
        a, b = self.over(ahead, column, span), self.over(behind, column, span)
        if a is None or b is None:
            return None
        quantity = QUANTITIES[column]
        sign = quantity.scale if quantity.better == "higher" else -quantity.scale
        return {seed: sign * (a[seed] - b[seed]) for seed in a if seed in b} or None


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper as a number per seed and a test on it."""

    key: str
    panel: str
    statement: str
    paper: str
    measure: str
    unit: str
    test: Test
    arms: tuple[str, ...]
    values: Callable[[Measured], PerSeed | None]


@dataclass(frozen=True)
class Finding:
    """A claim, judged."""

    claim: Claim
    ours: Interval
    verdict: Verdict
    reason: str

    @property
    def ours_in_words(self) -> str:
        digits = {"nat": 3, "pp": 2}.get(self.claim.unit, 1)
        return with_interval(self.ours, digits, self.claim.unit, signed=not isinstance(self.claim.test, Size))

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.claim.key,
            "panel": self.claim.panel,
            "claim": self.claim.statement,
            "paper": self.claim.paper,
            "measure": self.claim.measure,
            "unit": self.claim.unit,
            "test": str(self.claim.test),
            "mean": self.ours.mean,
            "low": self.ours.low,
            "high": self.ours.high,
            "seeds": self.ours.n,
            "verdict": str(self.verdict),
            "reason": self.reason,
        }


def judged(plan: Plan, rounds: pl.DataFrame) -> list[Finding]:
    """Every claim on the figures of a plan that its runs can speak to."""
    scenarios = {arm.label: arm.scenario for arm in plan.arms}
    panels = {panel.key for figure in reproduce.figures_of(plan) for panel in figure.panels}
    measured = Measured(rounds)
    findings = []
    for claim in all_claims():
        if claim.panel not in panels or not all(arm in scenarios for arm in claim.arms):
            continue
        values = claim.values(measured)
        if values is None:
            continue
        ours = interval(list(values.values()))
        verdict = judge(claim.test, ours)
        findings.append(Finding(claim, ours, verdict, reason(claim, ours, verdict, scenarios[claim.arms[0]])))
    return findings


def all_claims() -> list[Claim]:
    return [*_accuracy_claims(), *_energy_claims(), *_metric_claims(), *_uniform_claim()]


def _accuracy_claims() -> Iterable[Claim]:
    for panel, setting in (("1a", "iid"), ("1b", "3digit")):
        for n in reproduce.SIZES:
            ours, other = reproduce.proposed(setting, n), reproduce.random(setting, n)
            spans: tuple[tuple[Span, str], ...] = (("final", "at the end"), ("mean", "over the whole run"))
            for span, words in spans:
                yield Claim(
                    f"{panel}-n{n}-{span}",
                    panel,
                    f"{reproduce.IN_WORDS[setting]}, n = {n}: proposed more accurate than random {words}",
                    "ahead",
                    f"accuracy, proposed − random, {SPANS[span]}",
                    "pp",
                    Ahead(),
                    (ours, other),
                    _lead(ours, other, "accuracy", span),
                )


def _energy_claims() -> Iterable[Claim]:
    for panel, setting in (("1c", "iid"), ("1d", "3digit")):
        for n, saving in ((2, 16.0), (4, 35.0)):
            ours, other = reproduce.proposed(setting, n), reproduce.random(setting, n)
            yield Claim(
                f"{panel}-n{n}-saving",
                panel,
                f"{reproduce.IN_WORDS[setting]}, n = {n}: proposed saves energy against random",
                f"{saving:g} %",
                "1 − proposed / random, energy per device over the whole run",
                "%",
                Size(saving),
                (ours, other),
                _saving(ours, other),
            )


def _metric_claims() -> Iterable[Claim]:
    for panel, setting, column in (
        ("2a", "iid", "accuracy"),
        ("2b", "2digit", "accuracy"),
        ("3a", "minority", "loss"),
        ("3b", "minority-uniform", "loss"),
    ):
        combined, amount, dissimilarity = (reproduce.metric(setting, name) for name in reproduce.METRICS)
        where, unit = reproduce.IN_WORDS[setting], DIFFERENCE_UNIT[column]
        level = NotBehind(LEVEL[column], unit)
        if panel != "3b":
            yield Claim(
                f"{panel}-early",
                panel,
                f"{where}: amount alone ahead of dissimilarity alone early",
                "ahead",
                f"{column}, lead of amount over dissimilarity, {SPANS['early']}",
                unit,
                Ahead(),
                (amount, dissimilarity),
                _lead(amount, dissimilarity, column, "early"),
            )
            yield Claim(
                f"{panel}-late",
                panel,
                f"{where}: dissimilarity alone level with amount alone or ahead, late",
                "level or ahead",
                f"{column}, lead of dissimilarity over amount, {SPANS['late']}",
                unit,
                level,
                (dissimilarity, amount),
                _lead(dissimilarity, amount, column, "late"),
            )
        yield Claim(
            f"{panel}-combined",
            panel,
            f"{where}: combined never clearly the worst of the three metrics",
            "not worst",
            f"{column}, lead of combined over the weaker of the other two, {SPANS['mean']}",
            unit,
            level,
            (combined, amount, dissimilarity),
            _lead_over_weaker(combined, amount, dissimilarity, column),
        )


def _uniform_claim() -> Iterable[Claim]:
    normal = tuple(reproduce.metric("minority", name) for name in ("amount", "dissimilarity"))
    uniform = tuple(reproduce.metric("minority-uniform", name) for name in ("amount", "dissimilarity"))

    def shrinkage(measured: Measured) -> PerSeed | None:
        before = measured.lead(normal[0], normal[1], "loss", "early")
        after = measured.lead(uniform[0], uniform[1], "loss", "early")
        if before is None or after is None:
            return None
        return {seed: before[seed] - after[seed] for seed in before if seed in after} or None

    yield Claim(
        "3b-shrinks",
        "3b",
        "minority digits: the gap between amount alone and dissimilarity alone shrinks under uniform arrivals",
        "shrinks",
        f"loss, lead of amount over dissimilarity under truncated-normal minus under uniform arrivals, "
        f"{SPANS['early']}",
        "nat",
        Ahead(),
        (*normal, *uniform),
        shrinkage,
    )


def _lead(ahead: str, behind: str, column: str, span: Span) -> Callable[[Measured], PerSeed | None]:
    return lambda measured: measured.lead(ahead, behind, column, span)


def _saving(ours: str, other: str) -> Callable[[Measured], PerSeed | None]:
    """100 (1 − E_ours/E_other) per seed, %; a seed in which the other spent nothing does not count."""

    def saving(measured: Measured) -> PerSeed | None:
        spent = measured.over(ours, "energy_mean_cum_j", "final")
        base = measured.over(other, "energy_mean_cum_j", "final")
        if spent is None or base is None:
            return None
        return {seed: 100 * (1 - spent[seed] / base[seed]) for seed in spent if base.get(seed, 0.0) > 0} or None

    return saving


def _lead_over_weaker(arm: str, one: str, other: str, column: str) -> Callable[[Measured], PerSeed | None]:
    """The lead over whichever of two arms is weaker in the mean over seeds."""

    def lead(measured: Measured) -> PerSeed | None:
        leads = [measured.lead(arm, rival, column, "mean") for rival in (one, other)]
        known = [values for values in leads if values is not None]
        if len(known) < 2:
            return None
        return max(known, key=lambda values: sum(values.values()) / len(values))

    return lead
