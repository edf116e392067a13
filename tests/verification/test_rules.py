"""Single rules on cases worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from slow_simulator import scenario, simulate

from feelstream.verification.admission import Scheduled, admit_by_dropping, admit_largest
from feelstream.verification.files import read_run
from feelstream.verification.findings import RELATIVE, Findings, close
from feelstream.verification.recheck import rounds_of
from feelstream.verification.rounds import Rounds
from feelstream.verification.totals import WholeRun

TABLE = {
    "system": {"devices": 3, "rounds": 40, "round_s": 4.0, "energy_budget_j": 5e-4},
    "cpu": {"cycles": 419328000, "power_coefficient": 1e-27, "frequency_hz": [2e7, 1.52e9]},
    "radio__bandwidth_hz": 20e6,
    "radio__noise_w_per_hz": 1e-13,
    "radio__rate_discount": 1.0,
}


def stored(tmp_path: Path, **changes: object) -> Path:
    return simulate(scenario(**TABLE, **changes), seed=0).save(tmp_path)


def rounds(tmp_path: Path, values: dict[str, np.ndarray], **changes: object) -> Rounds:
    """All rounds of a run, with other values in some columns."""
    (found,) = rounds_of(stored(tmp_path, **changes))
    found.values |= values
    return found


def test_the_numbers_of_the_usual_table(tmp_path: Path) -> None:
    """At 28 dBm over 20 MHz an update takes about 3.6 ms for two and 6.9 ms for four devices."""
    r = rounds(tmp_path, {"f_hz": np.zeros((40, 3)), "beta": np.ones((40, 3))})
    assert r.surrogate_s(2) == pytest.approx(3.6e-3, abs=5e-5)
    assert r.surrogate_s(4) == pytest.approx(6.9e-3, abs=5e-5)
    for n, joule in ((2, 2.3e-3), (4, 4.4e-3)):
        assert r.planned_j(n)[0, 0] == pytest.approx(joule, abs=5e-5)


def test_the_two_admission_rules_differ_where_they_should(tmp_path: Path) -> None:
    """Remaining times 0.02, 0.004 and 2 s: dropping the weakest late device first costs one device more."""
    r = rounds(tmp_path, {})
    ratio, computing = np.array([8e-5, 1e-4, 1.0]), 4.0 - np.array([0.02, 0.004, 2.0])
    of = Scheduled(r, ratio, computing, np.full(3, 4.0), np.full(3, r.update_bits), np.zeros(3, bool))
    assert admit_by_dropping(of).sum() == 1
    assert admit_largest(of).tolist() == [True, False, True]


def test_importance_at_its_edges(tmp_path: Path) -> None:
    feasible = np.array([[True, True, False]])
    assert rounds(tmp_path, {"fresh": np.array([[1, 3, 9]])}).amount_at(feasible)[0, :2].tolist() == [0.5, 1.5]
    assert rounds(tmp_path, {"fresh": np.zeros((1, 3), int)}).amount_at(feasible).tolist() == [[0.0, 0.0, 0.0]]
    used = np.zeros((1, 4, 2), dtype=int)
    fresh = np.array([[[3, 0], [0, 5], [2, 2], [0, 0]]])

    def found(t: int = 2, **readings: str) -> np.ndarray:
        changes = {f"data__{name}": reading for name, reading in readings.items()}
        r = rounds(tmp_path, {"used_labels": used, "fresh_labels": fresh}, **changes)
        r.t = np.array([[t]])
        return r.unlike[0]

    assert found().tolist() == [[0.0] * 4]
    # An empty X as the zero vector is at distance 1 from everything but zero vectors, except in round 1.
    assert found(empty_used="vector").tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert found(1, empty_used="vector").tolist() == [[0.0] * 4]
    used[0, 2] = [7, 0]
    assert found() == pytest.approx(np.array([[0.0, 2.0, 1.0, 0.0]]))
    assert found(empty_fresh="vector") == pytest.approx(np.array([[0.0, 2.0, 1.0, 1.0]]))
    used[0, 2] = [7, 7]
    assert found() == pytest.approx(np.array([[1.0, 1.0, 0.0, 0.0]]))
    assert found(empty_fresh="vector") == pytest.approx(np.array([[1.0, 1.0, 0.0, 0.0]]))


def seen(run: WholeRun, *traits: str) -> tuple[int, int | None] | None:
    """Round and device of the first disagreement."""
    found = Findings()
    run.check(found, frozenset(traits))
    return None if found.first is None else (found.first.round, found.first.device)


def test_more_energy_than_the_last_queue_admits_is_seen(tmp_path: Path) -> None:
    run = WholeRun(read_run(stored(tmp_path)))
    run.energy_j = 40 * np.full(3, 5e-4) + np.array([0.0, 1e-3, 0.0])
    run.queue_end_j = np.array([0.0, 1e-3 * (1 - 1e-4), 0.0])
    assert seen(run) == (40, 1)
    run.queue_end_j[1] = 1e-3
    assert seen(run) is None


def test_a_queue_beyond_the_bound_of_cap_is_seen(tmp_path: Path) -> None:
    """E~_min at c/(T_rd − T~) and β = 1: 4.6 mJ to compute, so Q ≤ 0.05·5/E~_min + E_max − budget."""
    r = rounds(tmp_path, {"beta": np.ones((40, 3))}, policy__cardinality="cap", policy__size=2)
    run = WholeRun(r.source)
    run.add(r)
    sending = float(r.surrogate_s(2))
    least = 1e-27 * 419328000**3 / (4.0 - sending) ** 2 + 10**-0.2 * sending
    run.energy_j, run.energy_max_j = np.zeros(3), np.full(3, 0.5)
    bound = 0.05 * 5 / least + 0.5 - 5e-4
    run.queue_max_j, run.queue_max_round[2] = np.full(3, bound * (1 - 1e-6)), 17
    assert seen(run, "cap", "metric") is None
    run.queue_max_j[2] = bound * (1 + 1e-6)
    assert seen(run, "cap", "metric") == (17, 2)


def test_the_tolerance_is_relative_and_nan_agrees_with_nothing() -> None:
    one = np.array([1e-12, 1e12, np.nan, np.inf, 0.0])
    with np.errstate(invalid="ignore"):
        agree = close(one, one)
    assert agree.tolist() == [True, True, False, False, True]
    assert not close(one[:2], one[:2] * (1 + 3 * RELATIVE)).any()
    assert close(one[:2], one[:2] * (1 + RELATIVE / 3)).all()
