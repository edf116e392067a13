"""Single rules on cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from slow_simulator import scenario, simulate

from feelstream.verification.admission import _admit_by_dropping, _admit_largest
from feelstream.verification.findings import RELATIVE, Findings, close
from feelstream.verification.formulas import amounts, dissimilarities, surrogate_energy_j, surrogate_time_s
from feelstream.verification.reading import Block
from feelstream.verification.settings import read_settings
from feelstream.verification.stored import StoredSettings
from feelstream.verification.whole_run import RunningTotals, check_whole_run

TABLE = {
    "system": {"devices": 3, "rounds": 40, "round_s": 4.0, "energy_budget_j": 5e-4},
    "cpu": {"cycles": 419328000, "power_coefficient": 1e-27, "frequency_hz": [2e7, 1.52e9]},
    "radio__bandwidth_hz": 20e6,
    "radio__noise_w_per_hz": 1e-13,
    "radio__rate_discount": 1.0,
}


def settings(tmp_path: Path, **changes: object) -> StoredSettings:
    run = simulate(scenario(**TABLE), seed=0)
    for name, value in changes.items():
        section, field = name.split("__")
        run.run["scenario"][section][field] = value
    return read_settings(run.save(tmp_path))


def test_the_numbers_of_the_usual_table(tmp_path: Path) -> None:
    """At 28 dBm over 20 MHz an update takes about 3.6 ms for two and 6.9 ms for four devices."""
    s = settings(tmp_path)
    assert surrogate_time_s(s, 2) == pytest.approx(3.6e-3, abs=5e-5)
    assert surrogate_time_s(s, 4) == pytest.approx(6.9e-3, abs=5e-5)
    idle = {"f_hz": np.zeros(1), "beta": np.ones(1), "reliability": np.ones(1)}
    block = Block(rounds=np.array([1]), values=idle, nulls={}, last={})
    for n, joule in ((2, 2.3e-3), (4, 4.4e-3)):
        assert surrogate_energy_j(s, block, n)[0] == pytest.approx(joule, abs=5e-5)


def test_the_two_admission_rules_differ_where_they_should(tmp_path: Path) -> None:
    """Remaining times 0.02, 0.004 and 2 s: dropping the weakest late device first costs one device more."""
    s = settings(tmp_path)
    ratio = np.array([8e-5, 1e-4, 1.0])
    computing = 4.0 - np.array([0.02, 0.004, 2.0])
    nobody = np.zeros(3, dtype=bool)
    assert _admit_by_dropping(s, ratio, computing, nobody).sum() == 1
    assert _admit_largest(s, ratio, computing, nobody).tolist() == [True, False, True]


def test_importance_at_its_edges(tmp_path: Path) -> None:
    feasible = np.array([[True, True, False]])
    assert amounts(np.array([[1, 3, 9]]), feasible)[0, :2].tolist() == [0.5, 1.5]
    assert amounts(np.zeros((1, 3), dtype=int), feasible).tolist() == [[0.0, 0.0, 0.0]]
    used = np.zeros((1, 4, 2), dtype=int)
    fresh = np.array([[[3, 0], [0, 5], [2, 2], [0, 0]]])
    s, later = replace(settings(tmp_path), empty_used="zero", empty_fresh="zero"), np.array([2])

    def found(used: np.ndarray, rounds: np.ndarray = later, **readings: str) -> np.ndarray:
        return dissimilarities(replace(s, **readings), rounds, used, fresh)[0]  # type: ignore[arg-type]

    assert found(used).tolist() == [[0.0] * 4]
    # An empty X as the zero vector is at distance 1 from everything but zero vectors, except in round 1.
    assert found(used, empty_used="vector").tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert found(used, rounds=np.array([1]), empty_used="vector").tolist() == [[0.0] * 4]
    used[0, 2] = [7, 0]
    assert found(used) == pytest.approx(np.array([[0.0, 2.0, 1.0, 0.0]]))
    assert found(used, empty_fresh="vector") == pytest.approx(np.array([[0.0, 2.0, 1.0, 1.0]]))
    used[0, 2] = [7, 7]
    assert found(used) == pytest.approx(np.array([[1.0, 1.0, 0.0, 0.0]]))
    assert found(used, empty_fresh="vector") == pytest.approx(np.array([[1.0, 1.0, 0.0, 0.0]]))


def test_more_energy_than_the_last_queue_admits_is_seen(tmp_path: Path) -> None:
    s, found, run = settings(tmp_path), Findings(), RunningTotals(3)
    run.energy_j = 40 * s.budget_j
    run.energy_j[1] += 1e-3
    run.queue_end_j[:] = [0.0, 1e-3 * (1 - 1e-5), 0.0]
    check_whole_run(found, s, run)
    assert found.first is not None
    assert (found.first.round, found.first.device, found.first.field) == (40, 1, "queue_next_j")
    run.queue_end_j[1] = 1e-3
    agreed = Findings()
    check_whole_run(agreed, s, run)
    assert agreed.first is None


def test_a_queue_beyond_the_bound_of_cap_is_seen(tmp_path: Path) -> None:
    """E~_min at c/(T_rd − T~) and β = 1: 4.6 mJ to compute, so Q ≤ 0.05·5/E~_min + E_max − budget."""
    s, run = settings(tmp_path, policy__cardinality="cap", policy__size=2), RunningTotals(3)
    sending = float(surrogate_time_s(s, 2))
    least = 1e-27 * 419328000**3 / (4.0 - sending) ** 2 + 10**-0.2 * sending
    run.energy_max_j[:] = 0.5
    bound = 0.05 * 5 / least + 0.5 - 5e-4
    run.queue_max_j[:], run.queue_max_round[2] = bound * (1 - 1e-6), 17
    agreed = Findings()
    check_whole_run(agreed, s, run)
    assert agreed.first is None
    run.queue_max_j[2], found = bound * (1 + 1e-6), Findings()
    check_whole_run(found, s, run)
    assert found.first is not None
    assert (found.first.round, found.first.device) == (17, 2)


def test_the_tolerance_is_relative_and_nan_agrees_with_nothing() -> None:
    one = np.array([1e-12, 1e12, np.nan, np.inf, 0.0])
    with np.errstate(invalid="ignore"):
        agree = close(one, one)
    assert agree.tolist() == [True, True, False, False, True]
    assert not close(one[:2], one[:2] * (1 + 3 * RELATIVE)).any()
    assert close(one[:2], one[:2] * (1 + RELATIVE / 3)).all()
