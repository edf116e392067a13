"""What the stored runs say to each claim: docs/reproduction.csv, made from a table with a row per run.

A specification is a choice of all that the paper leaves open. Two count: by the text (the presets `literal-*`) and
fitted (`paper-*`). Both were fixed, with the claims and margins, before a run with one of the seeds 2000 to 2019.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.studies.claims import Finding, Verdict, chance, judged, one_run, ours
from feelstream.studies.results import interval
from feelstream_studies.hu2023 import paper
from feelstream_studies.hu2023.claims import all_claims, remaining_claims
from feelstream_studies.hu2023.claims.statements import SAVINGS

AGAINST = "points against"  # undecided, and the claim's own 95 % interval excludes it
KEPT, EXCEEDED = str(Verdict.REPRODUCED), str(Verdict.FAILED)
ANY = "any"  # of `fresh`: random looks at none


@dataclass(frozen=True)
class Specification:
    settings: str
    fresh: str

    @property
    def overrides(self) -> tuple[str, ...]:
        return (*(paper.LITERAL if self.settings == "literal" else ()), f"data.fresh={self.fresh}")


TEXT, FITTED = Specification("literal", "per_round"), Specification("fitted", "since_use")
ON_CORES = {TEXT: "literal-3digit", FITTED: "paper-3digit"}  # whose runs learn nothing: energies do not depend on it
SPECIFICATIONS = (TEXT, FITTED, Specification("literal", "since_use"), Specification("fitted", "per_round"))


def curves_of(runs: pl.DataFrame, specification: Specification) -> pl.DataFrame:
    """The curves of one specification as rows: arm, seed, round and what was measured. runs: a row per run."""
    own = runs.filter(pl.col("fresh").is_in([specification.fresh, ANY]), settings=specification.settings)
    numbers = {"round": ("rounds", pl.Int32), "accuracy": ("accuracy", pl.Float64), "loss": ("loss", pl.Float64)}
    numbers["energy_mean_cum_j"] = ("energy_mj", pl.Float64)
    lists = [pl.col(of).str.split(" ").cast(pl.List(kind)).alias(name) for name, (of, kind) in numbers.items()]
    rows = own.select("arm", "seed", *lists).explode(*numbers)
    return rows.with_columns(pl.col("energy_mean_cum_j") / 1e3)


def judgments(runs: pl.DataFrame, cores: pl.DataFrame) -> pl.DataFrame:
    """A row for each claim under each specification, and for what else is told: budget, empty slots and real cores.

    runs: a row per run. cores: the table of the study of energy laws, docs/silicon.csv.
    """
    rows: list[dict[str, Any]] = []
    for specification in SPECIFICATIONS:
        curves = curves_of(runs, specification)
        seeds = sorted(set(curves["seed"]))
        plan = paper.plan("all", seeds, (), specification.overrides)
        named = {"settings": specification.settings, "fresh": specification.fresh}
        rows += [named | row for row in _judged(judged(plan, curves, all_claims()), "any")]
        left = judged(plan, curves, remaining_claims())
        if left and all(finding.ours.n == len(seeds) for finding in left):
            rows += [named | row for row in _judged(left, "with_data")]
        budget_j = plan.arms[0].scenario.known_system(1).energy_budget_j[0]
        rows += [named | row for row in _kept(curves, float(budget_j))]
        rows += [named | row for row in _empty(runs, specification)]
        rows += [named | row for row in _on_cores(cores, specification)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _judged(findings: Iterable[Finding], eligible: str) -> list[dict[str, Any]]:
    return [
        {
            "eligible": eligible, "panel": each.claim.panel, "claim": each.claim.key,
            "statement": each.claim.statement, "paper": each.claim.paper, "measure": each.claim.measure,
            "unit": each.claim.unit, "test": str(each.claim.test), "seeds": each.ours.n, "mean": each.ours.mean,
            "low": each.ours.low, "high": each.ours.high, "every_lead": ours(each), "one_run": one_run(each),
            "p_holm": chance(each.p_holm), "p_sign_flips": chance(each.p_flip), "verdict": verdict(each),
        }
        for each in findings
    ]  # fmt: skip


def verdict(finding: Finding) -> str:
    """That of the corrected test; where it decides nothing, whether the plain interval excludes the claim."""
    margin = finding.claim.test.margin
    excluded = any(effect.high is not None and effect.high < -margin for effect in finding.effects.values())
    return AGAINST if finding.verdict is Verdict.OPEN and excluded else str(finding.verdict)


def _kept(curves: pl.DataFrame, budget_j: float) -> Iterable[dict[str, Any]]:
    """Energy over the budget under the proposed policy: kept where the interval is below 1, exceeded if above."""
    for panel, setting in (("1c", "iid"), ("1d", "3digit")):
        for n in paper.SIZES:
            own = curves.filter(arm=paper.proposed(setting, n)).group_by("seed", maintain_order=True).last()
            found = interval(own["energy_mean_cum_j"] / budget_j)
            over, under = found.low is not None and found.low > 1, found.high is not None and found.high <= 1
            yield {
                "eligible": "any", "panel": panel, "claim": f"{panel}-n{n}-budget",
                "statement": f"{paper.IN_WORDS[setting]}, n = {n}: proposed keeps the energy budget on average",
                "paper": "at most 1", "measure": "energy per device and round over the budget", "unit": "",
                "test": "interval below 1", "seeds": found.n, "mean": found.mean, "low": found.low, "high": found.high,
                "verdict": EXCEEDED if over else KEPT if under else str(Verdict.OPEN),
            }  # fmt: skip


def _empty(runs: pl.DataFrame, specification: Specification) -> Iterable[dict[str, Any]]:
    """Share of the slots of figure 1 that go to devices without data."""
    for name, arm in (("random", paper.random), ("proposed", paper.proposed)):
        labels = [arm(setting, n) for setting in ("iid", "3digit") for n in paper.SIZES]
        fresh = [specification.fresh, ANY]
        own = runs.filter(pl.col("arm").is_in(labels), pl.col("fresh").is_in(fresh), settings=specification.settings)
        found = own.group_by("seed").agg(pl.col("empty_slots").mean())
        yield {
            "eligible": "any", "panel": "1", "claim": f"empty-{name}",
            "statement": f"slots of {name} that go to devices without data", "unit": "%",
            "seeds": len(found), "mean": 100 * float(found["empty_slots"].to_numpy().mean()),
        }  # fmt: skip


def _on_cores(cores: pl.DataFrame, specification: Specification) -> Iterable[dict[str, Any]]:
    """Whether the published saving with two devices a round is reached under the energy law of a real core."""
    published = SAVINGS[paper.SIZES[0]]
    own = cores.filter(scenario=ON_CORES.get(specification, ""), budget="scenario", policy="lyapunov")
    for row in own.filter(pl.col("law") != "cubic").iter_rows(named=True):
        saved, low, high = (100 * row[name] for name in ("saving", "low", "high"))
        yield {
            "eligible": "any", "panel": "1d", "claim": f"cores-{row['law']}",
            "statement": f"{paper.IN_WORDS['3digit']}, n = 2: proposed saves as much on the core {row['law']}",
            "paper": f"{published:g} %", "measure": "1 − proposed / random, energy per update over the whole run",
            "unit": "%", "test": f"interval reaches {published:g}", "seeds": row["seeds"], "mean": saved, "low": low,
            "high": high, "verdict": KEPT if low > 0 and high >= published else AGAINST,
        }  # fmt: skip


def read_runs(path: Path) -> pl.DataFrame:
    kinds = {"seed": pl.Int64, "empty_slots": pl.Float64}
    return pl.read_csv(path, schema_overrides=kinds, comment_prefix="#")
