"""What the table says to each claim, specification by specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from feelstream.experiment import Arm, Plan
from feelstream.quantities import number
from feelstream.studies.claims import Claim, Finding, Published, Verdict, judged
from feelstream.studies.claims.judging import evidence
from feelstream.studies.claims.verdicts import margin_of
from feelstream.studies.hu2023 import STUDY, paper
from feelstream.studies.hu2023.claims import all_claims, remaining_claims
from feelstream.studies.hu2023.confirmation import table as tables
from feelstream.studies.hu2023.confirmation.candidates import Specified


@dataclass(frozen=True)
class Confirmed:
    """One specification and its runs."""

    candidate: Specified
    table: pl.DataFrame  # of all specifications

    @cached_property
    def rounds(self) -> pl.DataFrame:
        return tables.rounds_of(self.table, self.candidate.settings, self.candidate.fresh)

    @cached_property
    def plan(self) -> Plan:
        labels = dict.fromkeys(self.rounds["arm"])
        arms = tuple(Arm(label, self.candidate.scenario(label)) for label in labels)
        return Plan("confirmation", arms, tuple(sorted(set(self.rounds["seed"]))), study=STUDY.name)

    @property
    def seeds(self) -> int:
        """How many seeds the figures have."""
        return max((finding.ours.n for finding in evidence(self.findings)), default=0)

    def judged(self, claims: Sequence[Claim]) -> list[Finding]:
        return judged(self.plan, self.rounds, claims)

    @cached_property
    def findings(self) -> list[Finding]:
        return self.judged(all_claims())

    @cached_property
    def remaining(self) -> list[Finding]:
        """Of figure 1 where only devices that hold data are eligible, once there are two seeds of it."""
        found = self.judged(remaining_claims())
        return found if all(finding.ours.n > 1 for finding in found) else []

    def with_verdict(self, *verdicts: Verdict) -> list[Finding]:
        return [finding for finding in evidence(self.findings) if finding.verdict in verdicts]

    @property
    def accuracy_of_figure_1(self) -> list[Finding]:
        """Its comparisons of accuracy with random."""
        return [finding for finding in self.findings if finding.claim.panel in ("1a", "1b")]

    def empty_share(self, arm: Callable[[str, int], str]) -> float | None:
        """Share of slots that go to devices without data, over the runs of figure 1."""
        labels = [arm(setting, n) for setting in ("iid", "3digit") for n in paper.SIZES]
        fresh = [self.candidate.fresh, tables.ANY]
        own = self.table.filter(
            pl.col("arm").is_in(labels), pl.col("fresh").is_in(fresh), settings=self.candidate.settings
        )
        shares = own["empty_slots"].drop_nulls()
        return float(shares.to_numpy().mean()) if len(shares) else None


def confirmed(table: pl.DataFrame, candidates: Sequence[Specified]) -> list[Confirmed]:
    """Those of the specifications whose figures have at least two seeds."""
    every = (Confirmed(candidate, table) for candidate in candidates)
    return [each for each in every if not each.rounds.is_empty() and each.seeds > 1]


def panels(findings: Sequence[Finding]) -> str:
    """Figures and how many claims of each: 1a ×2, 2b."""
    counts = Counter(finding.claim.panel for finding in findings)
    return ", ".join(panel + ("" if count == 1 else f" ×{count}") for panel, count in sorted(counts.items()))


def on_its_side(finding: Finding) -> bool:
    """Whether the estimate has the claimed sign, or is above minus the margin."""
    return finding.ours.mean > -margin_of(finding.claim.test)


def is_excluded(finding: Finding) -> bool:
    """Whether a plain 95 % interval, uncorrected, lies on the other side as a whole."""
    highs = [effect.interval.high for effect in finding.effects]
    return any(high is not None and high < -margin_of(finding.claim.test) for high in highs)


def saving(findings: Sequence[Finding], n: int) -> float | None:
    """Mean over the partitions, %."""
    own = [f.ours.mean for f in findings if isinstance(f.claim.test, Published) and f"-n{n}-" in f.claim.key]
    return sum(own) / len(own) if own else None


def lead(findings: Sequence[Finding], span: str = "mean") -> float | None:
    """Mean of the four leads over random of figure 1, percentage points."""
    own = [f.ours.mean for f in findings if f.claim.panel in ("1a", "1b") and f.claim.key.endswith(f"-{span}")]
    return sum(own) / len(own) if own else None


def shown(value: float | None, digits: int, unit: str, signed: bool = False) -> str:
    return "–" if value is None else f"{number(value, digits, signed)} {unit}"
