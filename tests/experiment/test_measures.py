"""What arms are compared by: numbers in words, and verdicts against a reference."""

from __future__ import annotations

import polars as pl
from compared import spread, summary_of

from feelstream.experiment import statistics
from feelstream.experiment.measures import cells, measured
from feelstream.experiment.ranking import verdicts


def test_cells_say_mean_interval_and_how_many_seeds_got_there(three_arms):
    _, _, summary = three_arms
    measures = measured(summary)
    assert [measure.name for measure in measures] == [
        "late_accuracy", "rounds_to_80", "joules_to_80", "rounds_to_90", "energy_j", "energy_over_budget", "drops",
    ]  # fmt: skip
    # t quantile of four degrees of freedom 2.776; s/√5 = 0.01 √(10/4/5) = 0.00707.
    assert cells(summary, "dear", measures, 5)[:4] == [
        "91.00 ± 1.96",
        "≥ 34.0 ± 16.7 (1/5)",
        "≥ 40.00 ± 19.63 (1/5)",
        "never",
    ]
    assert cells(summary, "random", measures, 5)[1] == "25.0 ± 2.0"
    assert cells(summary, "cheap", measures, 5)[1] == "never"


def test_verdicts_are_corrected_for_their_number_and_some_are_withheld():
    """Twenty arms whose lead is significant by itself (t = 3.5): none survives Holm's correction, a clear one does."""
    lead = [0.31, 0.04, 0.12, 0.31, 0.02]
    base = {"late_accuracy": [0.5] * 5}
    small = {f"a{n}": {"late_accuracy": [0.5 + x / 2 + 0.03 for x in lead]} for n in range(20)}
    large = {"b": {"late_accuracy": spread(0.9, 0.001)}}
    constant = {"c": {"late_accuracy": [0.7] * 5}, "d": {"late_accuracy": [0.5] * 5}}
    _, runs, _ = summary_of({"random": base, **small, **large, **constant})
    said = verdicts(runs, "late_accuracy", "random", ["random", *small, "b", "c", "d"])
    assert statistics.compare_arms(runs, "late_accuracy", "a0", "random").verdict == statistics.HIGHER
    assert {said[arm] for arm in small} == {statistics.NOT_DISTINGUISHABLE}
    assert (said["b"], said["c"], said["d"]) == (
        statistics.HIGHER,
        statistics.NO_SPREAD,
        statistics.NOT_DISTINGUISHABLE,
    )
    few = runs.filter(pl.col("seed") < 4)
    assert set(verdicts(few, "late_accuracy", "random", ["b"]).values()) == {statistics.FEW_SEEDS}
