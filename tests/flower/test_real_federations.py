"""A real SuperLink with four real SuperNodes repeats the simulator, and meets what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import odd_plugins
import polars as pl
import pytest
from patience import PATIENCE_S

import feelstream as fs
from feelstream.flower.federation import Federation, federation, is_complete, submit_replay

pytestmark = pytest.mark.nightly
APP = Path(__file__).parents[1] / "support" / "hard_cases"
Outcome = tuple[dict[str, Any], Path]
# Every device is fast enough for every round.
FAST = ["cpu.frequency_hz=[1e9, 1.5e9]", "learning.engine=none", "data.samples=500", "data.arrivals.kind=uniform"]


@pytest.fixture(scope="module")
def four_nodes() -> Iterator[Federation]:
    """One federation for all runs: its processes take longer to start than a run takes."""
    with federation() as flower:
        flower.wait_for_superlink()
        for node in range(4):
            flower.start_node(node, 4)
        yield flower


def both(flower: Federation, out: Path, *changes: str) -> tuple[fs.Run, fs.Run]:
    """A run of the federation, verified, and the simulator's of the same scenario and seed."""
    scenario = fs.preset("tiny", [*FAST, *changes, "system.devices=4"])
    submit_replay(flower, scenario, 5, out, deadline_s=PATIENCE_S, query_timeout_s=PATIENCE_S)
    flower.wait(lambda: is_complete(out), PATIENCE_S)
    report = fs.verify(out)
    assert report.ok, str(report)
    return fs.read(out), fs.simulate(scenario, 5)


def check_same(played: fs.Run, simulated: fs.Run, *columns: str) -> None:
    assert played.devices is not None
    assert simulated.devices is not None
    for column in ("scheduled", "transmitted", "stored", "fresh", *columns):
        assert played.devices[column].to_list() == simulated.devices[column].to_list()
    np.testing.assert_allclose(played.devices["queue_next_j"], simulated.devices["queue_next_j"], rtol=1e-12)


def test_a_federation_repeats_the_simulator(four_nodes: Federation, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch: install feelstream[torch]")
    changes = ("learning.engine=torch", "learning.steps=2", "learning.batch=8", "system.rounds=2")
    played, simulated = both(four_nodes, tmp_path / "run", *changes)
    check_same(played, simulated)
    np.testing.assert_allclose(played.rounds["loss"], simulated.rounds["loss"], rtol=1e-5)


def test_a_federation_of_odd_plugins_repeats_the_simulator(four_nodes: Federation, tmp_path: Path) -> None:
    """A buffer and arrivals whose states grow, of which the server knows nothing but what they promise."""
    changes = (*odd_plugins.ODD[:2], "system.rounds=3", "policy.V=inf")
    played, simulated = both(four_nodes, tmp_path / "run", *changes)
    check_same(played, simulated, "fresh_labels", "used_labels")
    assert played.devices is not None
    assert played.devices["transmitted"].sum() > 3


@pytest.fixture(scope="module")
def outcome(four_nodes: Federation, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Of all hard cases, one after the other; asked for last, since a node is asleep when they are over."""
    directory = tmp_path_factory.mktemp("hard-cases")
    out = directory / "found.json"
    four_nodes.submit(APP, {"out": str(out)})
    four_nodes.wait(out.exists, 900)
    return json.loads(out.read_text()), directory


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
