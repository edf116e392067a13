"""A real federation on free ports of this machine, whose devices fail in every way; nothing beyond it is needed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from patience import PATIENCE_S

import feelstream as fs
from feelstream.flower.federation import federation, is_complete, rounds_done, submit_replay

pytestmark = pytest.mark.nightly

# Every device is fast enough for every round, so that only what goes wrong decides who transmits.
FAST = ["cpu.frequency_hz=[1e9, 1.5e9]", "learning.engine=none", "data.samples=500", "data.arrivals.kind=uniform"]


def test_a_federation_survives_its_devices(tmp_path: Path) -> None:
    """Of five devices one is killed, one is too slow, one talks nonsense, one comes late; and one is well."""
    well, slow, nonsense, doomed, latecomer = range(5)
    scenario = fs.preset("tiny", [*FAST, "system.devices=5", "system.rounds=2", "policy.size=5", "policy.V=inf"])
    out = tmp_path / "run"
    with federation() as flower:
        flower.wait_for_superlink()
        flower.start_node(well, 5)
        flower.start_node(slow, 5, fault="slow", **{"slow-s": 600})
        flower.start_node(nonsense, 5, fault="garbage")
        flower.start_node(doomed, 5)
        submit_replay(flower, scenario, 1, out, deadline_s=40, query_timeout_s=40, max_report_age=5)
        flower.wait(lambda: (out / "run.json").exists(), PATIENCE_S)
        flower.start_node(latecomer, 5)
        flower.wait(lambda: rounds_done(out) >= 1, PATIENCE_S)
        flower.kill(f"node-{doomed}")
        flower.wait(lambda: is_complete(out), PATIENCE_S)
        log = (flower.logs / "run.log").read_text(errors="replace")
    _check_what_they_did(out, well, slow, nonsense, doomed, latecomer)
    assert "is left out" in log  # the reason for leaving one out is logged


def _check_what_they_did(out: Path, well: int, slow: int, nonsense: int, doomed: int, latecomer: int) -> None:
    run = fs.read(out)
    assert run.devices is not None
    names = {"well": well, "slow": slow, "nonsense": nonsense, "doomed": doomed, "late": latecomer}
    rows = {name: run.devices.filter(pl.col("device") == device) for name, device in names.items()}
    assert rows["well"]["transmitted"].to_list() == [True, True]
    assert rows["slow"]["scheduled"].to_list() == [True, False]  # it rests for a round after its failure
    assert not rows["slow"]["transmitted"].any()
    assert not rows["nonsense"]["scheduled"].any()
    assert rows["doomed"]["transmitted"].to_list() == [True, False]
    assert rows["late"]["transmitted"].to_list() == [False, True]
    assert fs.verify(out).ok

    # The queues, from the energies alone: who trained in vain has paid for it.
    budget = run.scenario.known_system(1).energy_budget_j[0]
    for key, table in rows.items():
        queue = 0.0
        for energy, after in zip(table["e_cmp_j"] + table["e_tr_j"], table["queue_next_j"], strict=True):
            queue = max(queue + energy - budget, 0.0)
            assert after == pytest.approx(queue, rel=1e-12), key
    assert rows["slow"]["e_cmp_j"][0] > 0
    assert (rows["nonsense"]["queue_next_j"] == 0).all()
