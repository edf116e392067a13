"""A real SuperLink with four real SuperNodes meets what goes wrong; all cases share one federation, to save time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import feelstream as fs
from feelstream.flower.loopback import federation

pytestmark = pytest.mark.slow
APP = Path(__file__).parents[1] / "support" / "hard_cases"
Outcome = tuple[dict[str, Any], Path]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    directory = tmp_path_factory.mktemp("hard-cases")
    out = directory / "found.json"
    with federation() as flower:
        flower.warm()
        flower.wait_for_superlink()
        for node in range(4):
            flower.start_node(node, 4)
        flower.submit(APP, {"out": str(out)})
        flower.wait(out.exists, 900)
        yield json.loads(out.read_text()), directory


def rows(directory: Path, case: str) -> pl.DataFrame:
    report = fs.verify(directory / case)
    assert report.ok, str(report)
    devices = fs.read(directory / case).devices
    assert devices is not None
    return devices


def test_two_bad_devices_of_four_do_not_stop_the_others(outcome: Outcome) -> None:
    found, directory = outcome
    devices = rows(directory, "two-bad-of-four")
    sent = devices.filter(pl.col("transmitted"))["device"].to_list()
    assert set(sent) <= {0, 1}
    assert found["two bad of four"]["rounds"] >= 2  # in which anyone trained
    assert devices.filter(pl.col("device") >= 2, pl.col("reliability") < 1.0).height


def test_a_straggler_holds_nobody_up(outcome: Outcome) -> None:
    found, directory = outcome
    devices = rows(directory, "a-straggler")
    slow = devices.filter(pl.col("device") == 3)
    assert slow["cut"][0]
    assert slow["e_cmp_j"][0] > 0
    assert devices.filter((pl.col("device") < 3) & (pl.col("round") == 1))["transmitted"].all()
    assert found["a straggler"]["rounds"] == 2


def test_an_inner_strategy_that_raises_ends_its_run(outcome: Outcome) -> None:
    assert outcome[0]["a strategy that raises"] == {"error": "the strategy's own mistake"}


def test_records_of_scaffold_and_clipping_modifiers_pass(outcome: Outcome) -> None:
    found, directory = outcome
    assert found["scaffold"]["control"] == 2 * 2 * 3  # two rounds of two devices
    assert found["scaffold"]["model"] == [2.0, 2.0]
    assert found["dp"]["rounds"] == 2
    assert all(0.5 < value < 3.5 for value in found["dp"]["model"])  # two steps of 1, with little noise
    for case in ("scaffold", "dp"):
        assert rows(directory, case)["transmitted"].sum() == 4


@pytest.mark.skipif(not find_spec("xgboost"), reason="needs XGBoost")
def test_trees_are_bagged(outcome: Outcome) -> None:
    found, directory = outcome
    assert found["xgboost"]["model"] > 1000  # bytes of trees
    assert rows(directory, "xgboost")["transmitted"].sum() == 4
