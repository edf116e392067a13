"""What each claim comes to under each specification, and which settings it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import polars as pl

from feelstream.experiment import Results
from feelstream.experiment.series import Series
from feelstream.experiment.significance import Spread, pooled_spread, prediction
from feelstream.experiment.statistics import Interval, t_quantile
from feelstream.studies.claims import Claim, Measured
from feelstream.studies.claims.claim import Evidence
from feelstream.studies.claims.judging import interval_of
from feelstream.studies.claims.resampling import Resampled
from feelstream.studies.claims.verdicts import Published, holds, margin_of
from feelstream.studies.hu2023.multiverse.plans import arms_of
from feelstream.studies.hu2023.multiverse.settings import LEARNING, Factor, Specification

OUTCOMES: dict[str, pl.DataType] = {
    "claim": pl.String(),
    **dict.fromkeys(LEARNING, pl.String()),
    "effect": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "seeds": pl.Int32(),
    "comes_out": pl.Boolean(),
    "clear": pl.Boolean(),
}


class Under(Measured):
    """What was measured under one specification, by the paper's own labels."""

    def __init__(self, measured: Measured, arms: Mapping[str, str]) -> None:
        self._measured, self._labels = measured, arms

    def series(self, arm: str, column: str) -> Series | None:
        return self._measured.series(self._labels[arm], column)


def outcomes(
    results: Results, specifications: Sequence[Specification], claims: Sequence[Claim], settings: Mapping[str, Factor]
) -> pl.DataFrame:
    """One row per claim and specification that was played: the columns of OUTCOMES.

    effect: mean over seeds, of the least lead where a claim names several rivals; low, high: its 95 % t interval.
    comes_out: the effect is above 0 (above minus the margin, where the claim has one); or, where a number was
    published, the mean is above 0 beyond chance and the number lies in the prediction interval of one run, both with a
    spread that is pooled over the specifications with the same number of rounds: a few seeds of each alone would
    hardly know it. clear: and the interval (of every lead) is above 0, or minus the margin. Neither is
    corrected for the number of claims or specifications: this is about what a claim depends on, not about one verdict.
    """
    measured = Measured(results.rounds())
    rows = []
    for claim in claims:
        values_of: dict[Specification, list[Evidence]] = {}
        for specification in specifications:
            effects = claim.effects(Under(measured, arms_of([claim], specification, settings)))
            if effects is not None:
                values_of[specification] = list(effects.values())
        spreads, margin = _spreads(values_of), margin_of(claim.test)
        for specification, values in values_of.items():
            choices = dict(specification.choices)
            intervals = [interval_of(each) for each in values]
            least = min(range(len(values)), key=lambda index: intervals[index].mean)
            own, above = intervals[least], all(each.low is not None and each.low > -margin for each in intervals)
            deciding = values[least]
            if isinstance(claim.test, Published) and not isinstance(deciding, Resampled):
                numbers, spread = list(deciding.values()), spreads[specification["T"]]
                out = is_above_0(own, spread) and holds(prediction(numbers, spread=spread), claim.test.number)
            else:
                out = own.mean > -margin
            row = [claim.key, *(choices.get(name) for name in LEARNING)]
            rows.append([*row, own.mean, own.low, own.high, own.n, out, out and above])
    return pl.DataFrame(rows, schema=OUTCOMES, orient="row")


def is_above_0(own: Interval, spread: Spread | None) -> bool:
    """Whether the mean is above 0 by its 95 % interval, with this spread if it is known."""
    if spread is None:
        return own.low is not None and own.low > 0
    return own.mean - float(t_quantile(spread.freedom + 1)) * spread.s / sqrt(own.n) > 0


def _spreads(values_of: Mapping[Specification, list[Evidence]]) -> dict[str, Spread | None]:
    """By number of rounds: how much one run differs from another of the same specification."""
    samples: dict[str, list[list[float]]] = {}
    for specification, values in values_of.items():
        numbers = [list(each.values()) for each in values if not isinstance(each, Resampled)]
        samples.setdefault(specification["T"], []).extend(numbers)
    return {rounds: pooled_spread(each) for rounds, each in samples.items()}


def specification_of(row: Mapping[str, object]) -> Specification:
    return Specification.of({name: str(row[name]) for name in LEARNING if row[name] is not None})


def shares(table: pl.DataFrame, settings: Mapping[str, Factor]) -> pl.DataFrame:
    """Columns claim, setting, value, specifications, comes_out, clear: the shares by value of each setting."""
    frames = [
        table.drop_nulls(name)
        .group_by("claim", name, maintain_order=True)
        .agg(pl.len().alias("specifications"), pl.col("comes_out").mean(), pl.col("clear").mean())
        .rename({name: "value"})
        .select("claim", pl.lit(name).alias("setting"), "value", "specifications", "comes_out", "clear")
        for name in LEARNING
        if len(settings[name].values) > 1 and table[name].null_count() < len(table)
    ]
    return pl.concat(frames) if frames else pl.DataFrame()


def together(table: pl.DataFrame, claims: Sequence[str]) -> pl.DataFrame:
    """One row per specification for which all these claims were judged: its choices, and how many are reproduced.

    Columns: those of the settings, come_out, clear, effect_least is left to the reader of the table; most first.
    """
    own = table.filter(pl.col("claim").is_in(list(claims)))
    return (
        own.group_by(list(LEARNING), maintain_order=True)
        .agg(
            pl.len().alias("judged"),
            pl.col("comes_out").sum().cast(pl.Int32).alias("come_out"),
            pl.col("clear").sum().cast(pl.Int32).alias("clear"),
            pl.col("claim").filter(~pl.col("comes_out")).alias("missing"),
        )
        .filter(pl.col("judged") == len(claims))
        .sort("come_out", "clear", descending=True, maintain_order=True)
    )
