"""Evaluators of the user's own: columns, arrays, presentation, memory, mistakes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import small

import feelstream as fs
from feelstream.display.quantities import QUANTITIES
from feelstream.errors import FeelstreamError, PluginError, ScenarioError
from feelstream.experiment.replaying import replay
from feelstream.run import read, simulate_in
from feelstream.testing import check
from feelstream.testing.kinds import kind_of, named

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "my_evaluator.py")
LEARNS = ("learning.engine=native", "learning.eval_every=3", "learning.steps=2")


def own(*names: str) -> str:
    return f"learning.evaluators={json.dumps(['test', *names])}"


def test_numbers_become_columns_and_arrays_a_table(tmp_path: Path) -> None:
    run = simulate_in(tmp_path / "run", small(*LEARNS, own("stream", f"{EXAMPLE}:gap", f"{EXAMPLE}:Records")))
    assert run.rounds.columns[-4:] == ["stream_loss", "stream_accuracy", "gap", "records"]
    evaluated = run.rounds["gap"].is_not_null().to_list()
    assert evaluated == [False, False, True, False, False, True, False, True]
    assert run.rounds["records"].drop_nulls().to_list()[0] == 1
    assert run.evaluations is not None
    by_device = run.evaluations.filter(evaluator=f"{EXAMPLE}:gap", name="by_device", round=8)["value"].to_numpy()
    assert len(by_device) == 6
    assert run.rounds["gap"][-1] == pytest.approx(np.nanmax(by_device) - np.nanmin(by_device))
    again = read(run.directory or Path())
    assert again.rounds.equals(run.rounds)
    assert again.evaluations is not None
    assert again.evaluations.equals(run.evaluations)
    report = fs.verify(tmp_path / "run")
    assert report.ok, str(report)
    assert any(f"what {EXAMPLE}:gap and {EXAMPLE}:Records measured" in text for text in report.not_checked)
    assert replay(tmp_path / "run").ok
    saved = run.save(tmp_path / "saved")
    assert (saved / "evaluations.parquet").read_bytes() == (tmp_path / "run" / "evaluations.parquet").read_bytes()


def test_it_says_how_its_numbers_are_shown_and_run_json_keeps_it(tmp_path: Path) -> None:
    simulate_in(tmp_path / "run", small(*LEARNS, own(f"{EXAMPLE}:gap", f"{EXAMPLE}:Records")))
    stated = json.loads((tmp_path / "run" / "run.json").read_text())["quantities"]
    assert [entry["name"] for entry in stated] == ["gap"]
    for name in ("gap", "records", "late_gap", "final_gap", "late_records"):
        QUANTITIES.pop(name)
    run = read(tmp_path / "run")  # runs no code, and yet knows it
    assert QUANTITIES["gap"].axis == "Best minus worst device (%)"
    assert QUANTITIES["late_gap"].table == "runs"
    assert QUANTITIES["records"].heading == "records"
    assert run.plot("gap", "records").axes[0].get_ylabel().replace("\n", " ") == "Best minus worst device (%)"
    with pytest.raises(FeelstreamError, match="'gapp' cannot be drawn by round; did you mean 'gap'"):
        run.plot("gapp")


MISTAKES = {
    "no number": ("return {'x': 'much'}", "must give 'x' as a number or an array of numbers"),
    "a name that no column may have": ("return {'X y': 1.0}", "must give names of small letters, digits and _"),
    "a column of every run": ("return {'queue_mean_j': 1.0}", "'queue_mean_j', which is a column of every run"),
    "a column of the test": ("return {'accuracy': 1.0}", "'accuracy', which is a column of 'test'"),
    "a column of another": ("return {'forgetting': 1.0}", "'forgetting', which is a column of 'classes'"),
    "a sample that is not there": ("return {'x': predict('train', [10**6]).losses[0]}", "failed in round 3: "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_sentence(tmp_path: Path, mistake: str) -> None:
    body, expected = MISTAKES[mistake]
    file = tmp_path / "own.py"
    file.write_text(f"# own\ndef measure(predict, test, held, round):\n    {body}\n")
    with pytest.raises(PluginError, match=f"learning.evaluators: .*{expected}"):
        fs.simulate(small(*LEARNS, own(f"{file}:measure")))


def spread(predict: Any, test: Any, held: Any, round: int) -> dict[str, Any]:
    return {"samples_tested": len(test), "mean_pixel": test.x.mean(), "round_again": round, "none": math.nan}


def test_a_function_is_handed_in_as_it_is() -> None:
    run = fs.simulate(small(*LEARNS), evaluators=["test", spread])
    last = run.rounds.row(-1, named=True)
    assert (last["samples_tested"], last["round_again"], last["none"]) == (1000, 8, None)
    assert run.scenario.learning.evaluators == ("test", f"{__name__}:spread")
    with pytest.raises(ScenarioError, match="a function or class at the top of a module"):
        fs.simulate(small(*LEARNS), evaluators=[lambda predict, test, held, round: {}])


def test_the_contract_check_knows_evaluators() -> None:
    for name in ("gap", "Records"):
        plugin, kind = named(f"{EXAMPLE}:{name}")
        assert kind.name == "evaluator"
        assert [result.problem for result in check(plugin, "evaluator") if not result.ok] == []
    assert kind_of(spread).name == "evaluator"
    assert kind_of(lambda amount, dissimilarity: amount).name == "metric"
