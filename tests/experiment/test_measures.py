"""What arms are compared by: numbers in words (no exponents, one kind of minus sign), and verdicts."""

from __future__ import annotations

import polars as pl
import pytest
from compared import cells, spread, summary_of

from feelstream.display.quantities import number, significant
from feelstream.experiment import statistics
from feelstream.experiment.measures import judgement, measured, with_interval
from feelstream.experiment.statistics import Interval, compared, interval


def test_cells_say_mean_interval_and_how_many_seeds_got_there(three_arms):
    _, _, summary = three_arms
    measures = measured(summary)
    assert [measure.name for measure in measures] == [
        "late_accuracy", "rounds_to_80", "joules_to_80", "rounds_to_90", "energy_j", "energy_over_budget", "drops",
    ]  # fmt: skip
    # t quantile of four degrees of freedom 2.776; s/√5 = 0.01 √(10/4/5) = 0.00707.
    assert cells(summary, "dear", measures, 5)[:4] == [
        "91.00 ± 1.96",
        "> 40.0 (1/5)",
        "> 40.0 (1/5)",  # the median of what each had spent, in mJ: more is not known
        "> 40.0",
    ]
    assert cells(summary, "random", measures, 5)[1] == "25.0"
    assert cells(summary, "cheap", measures, 5)[1] == "> 40.0"


def test_what_some_runs_never_reached_has_a_median_and_neither_a_mean_nor_a_verdict():
    late = {"rounds_to_80": [10.0, 40.0, 12.0, 40.0, 11.0], "reached_80": [1.0, 0.0, 1.0, 0.0, 1.0]}
    early = {"rounds_to_80": spread(5.0, 1.0), "reached_80": [1.0] * 5}
    _, _, summary = summary_of({"early": early, "late": late})
    first, second = summary.filter(quantity="rounds_to_80").rows(named=True)
    assert (first["mean"], first["median"], first["reached"]) == (5.0, 5.0, 5)
    # 10, 11, 12 and two that are later: the one in the middle is 12.
    assert (second["median"], second["median_is_bound"], second["reached"]) == (12.0, False, 3)
    assert second["mean"] is second["low"] is second["difference"] is None
    assert second["verdict"] == statistics.CENSORED
    assert cells(summary, "late", measured(summary)[:1], 5) == ["12.0 (3/5)"]


def test_verdicts_are_corrected_for_their_number_and_some_are_withheld():
    """Twenty arms whose lead is significant by itself (t = 3.5): none survives Holm's correction, a clear one does."""
    lead = [0.31, 0.04, 0.12, 0.31, 0.02]
    base = {"late_accuracy": [0.5] * 5}
    small = {f"a{n}": {"late_accuracy": [0.5 + x / 2 + 0.03 for x in lead]} for n in range(20)}
    large = {"b": {"late_accuracy": spread(0.9, 0.001)}}
    constant = {"c": {"late_accuracy": [0.7] * 5}, "d": {"late_accuracy": [0.5] * 5}}
    _, runs, summary = summary_of({"random": base, **small, **large, **constant})
    gaps = compared(runs, "late_accuracy", "random", ["random", *small, "b", "c", "d"])
    said = {arm: verdict for arm, (_, verdict) in gaps.items()}
    assert statistics.compare_arms(runs, "late_accuracy", "a0", "random").verdict == statistics.HIGHER
    assert {said[arm] for arm in small} == {statistics.UNCLEAR_BY_HOLM}
    assert (said["b"], said["c"], said["d"]) == (
        statistics.HIGHER,
        statistics.NO_SPREAD,
        statistics.UNCLEAR,
    )
    rows = {row["arm"]: row for row in summary.rows(named=True)}
    assert {arm: rows[arm]["verdict"] for arm in said} == said
    assert (judgement(rows["b"]), judgement(rows["a0"])) == ("better", "unclear")
    few = runs.filter(pl.col("seed") < 4)
    assert compared(few, "late_accuracy", "random", ["b"])["b"][1] == statistics.FEW_SEEDS


@pytest.mark.parametrize(
    ("value", "digits", "signed", "text"),
    [(-1.256, 2, False, "−1.26"), (1.2, 2, True, "+1.20"), (-0.001, 2, True, "0.00"), (3.1e5, 0, False, "310000")],
)
def test_fixed_decimals(value: float, digits: int, signed: bool, text: str) -> None:
    assert number(value, digits, signed) == text


@pytest.mark.parametrize(
    ("value", "text"), [(312.4, "310"), (98.4, "98"), (7.04, "7.0"), (0.0123, "0.012"), (-2.54e3, "−2500"), (0.0, "0")]
)
def test_significant_digits_are_written_out(value: float, text: str) -> None:
    assert significant(value, 2) == text


def test_intervals() -> None:
    one: Interval = interval([-1.0])
    assert with_interval(one, 1, "pp", signed=True) == "−1.0 pp"
    # The t quantile of one degree of freedom is 12.706, s/√2 is 1.
    assert with_interval(interval([-1.0, 1.0]), 2) == "0.00 [−12.71, 12.71]"
