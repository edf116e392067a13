"""Rules by hand: over a whole run, within a rounding, and at the very edge of the deadline.

At that edge rounding decides who transmits: either decision stands, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders import devices_of, verified
from slow_simulator import scenario, simulate

import feelstream as fs
from feelstream.model.physics import rate_bit_per_s
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict
from feelstream.verification import decisions, recheck
from feelstream.verification.admission import EDGE, Scheduled, admit_by_dropping, admit_largest
from feelstream.verification.files import read_run
from feelstream.verification.findings import RELATIVE, Findings, close
from feelstream.verification.rounds import Rounds
from feelstream.verification.totals import WholeRun

TABLE = {
    "system": {"devices": 3, "rounds": 40, "round_s": 4.0, "energy_budget_j": 5e-4},
    "cpu": {"cycles": 419328000, "power_coefficient": 1e-27, "frequency_hz": [2e7, 1.52e9]},
    "radio__bandwidth_hz": 20e6, "radio__noise_w_per_hz": 1e-13, "radio__rate_discount": 1.0,
}  # fmt: skip


def stored(tmp_path: Path, **changes: object) -> Path:
    return simulate(scenario(**TABLE, **changes), seed=0).save(tmp_path)


def rounds(path: Path) -> Rounds:
    """All rounds of a short run."""
    run = read_run(path)
    return next(recheck.blocks(recheck.totals_of(run, decisions.traits_of(run))))


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
    r = rounds(stored(tmp_path, policy__cardinality="cap", policy__size=2))
    r.values["beta"] = np.ones((40, 3))
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


SLOW_HZ, FAST_HZ = 3e8, 1.5e9


def three(round_s: float, admission: str) -> Scenario:
    """A round of three devices, all scheduled, on a band so narrow that sending takes a good part of it; 0 is slow."""
    classes = [
        {"share": 1 / 3, "frequency_hz": [SLOW_HZ, SLOW_HZ]},
        {"share": 2 / 3, "frequency_hz": [FAST_HZ, FAST_HZ]},
    ]
    table = {
        "system": {"devices": 3, "rounds": 1, "round_s": round_s},
        "radio": {"bandwidth_hz": 1e6, "received_power_dbm": -36.0, "admission": admission, "link_margin": 1.0},
        "data": {"dataset": "synthetic", "samples": 60},
        "devices": {"classes": classes},
        "policy": {"name": "lyapunov", "size": 3},
        "learning": {"engine": "none"},
    }
    return from_dict(table)


def edge_s(seed: int, admission: str) -> float:
    """The length of a round in which device 0 is on time among three to within rounding; gains do not hang on it."""
    scenario = three(100.0, admission)
    devices = devices_of(fs.simulate(scenario, seed))
    radio, ratio = scenario.radio, devices["gain"][0] / devices["beta"][0]
    power_w = 10 ** (radio.received_power_dbm / 10) / 1000
    rate = float(rate_bit_per_s(3, power_w * ratio, radio.bandwidth_hz, radio.noise_w_per_hz))
    system = scenario.known_system(10)
    return float(system.cycles[0]) / SLOW_HZ + system.update_bits / rate


@pytest.mark.slow
@pytest.mark.parametrize("admission", ["paper", "largest"])
def test_verify_agrees_with_admission_within_a_rounding_of_the_deadline(admission: str) -> None:
    """The strongest of three may be late among three by a rounding, and still be one of the two that transmit."""
    counts = set()
    for seed in range(12):
        about = edge_s(seed, admission)
        for ulps in range(-3, 4):
            try:
                run = fs.simulate(three(about + ulps * np.spacing(about), admission), seed)
            except fs.FeelstreamError:
                break  # three never fit this round, by the planned rate
            counts.add(run.rounds["transmitted"][0])
            verified(run)
    assert counts >= {2, 3}, "rounding decided nothing"


def of_three(admission: str, margin: float, sent: list[bool], tmp_path: Path) -> Scheduled:
    """Three devices, of which the first has `margin` of the round more left than it needs; `sent` is what is stored."""
    path = fs.simulate(three(8.0, admission)).save(tmp_path / f"{admission} {margin} {sent}")
    r = rounds(path)
    radio, ratio = r.run.radio, np.array([2.0, 1.0, 0.9])
    needed_s = r.update_bits / rate_bit_per_s(
        3, radio.received_power_w * ratio, radio.bandwidth_hz, radio.noise_w_per_hz
    )
    computing_s = np.array([8.0 * (1 - margin) - needed_s[0], 0.1, 0.1])
    return Scheduled(r, ratio, computing_s, np.full(3, 8.0), np.full(3, r.update_bits), np.array(sent))


@pytest.mark.parametrize(("margin", "at_edge"), [(0.0, True), (10 * EDGE, False), (-10 * EDGE, False)])
@pytest.mark.parametrize(
    ("admission", "admit", "fewer"),
    [("largest", admit_largest, [True, True, False]), ("paper", admit_by_dropping, [False, True, True])],
)
def test_only_at_the_edge_both_decisions_stand(
    admission: str,
    admit: Callable[[Scheduled], np.ndarray],
    fewer: list[bool],
    margin: float,
    at_edge: bool,
    tmp_path: Path,
) -> None:
    right, wrong = ([True] * 3, fewer) if margin >= 0 else (fewer, [True] * 3)
    assert admit(of_three(admission, margin, right, tmp_path)).tolist() == right
    assert (admit(of_three(admission, margin, wrong, tmp_path)).tolist() == wrong) is at_edge


@pytest.mark.parametrize("admission", ["paper", "largest"])
@pytest.mark.parametrize(("policy", "deadline_s", "sizes"), [("lyapunov", 1.5, {2, 3}), ("fedcs", 0.47, {0, 1})])
def test_a_deadline_that_is_nothing_next_to_the_round_counts(
    policy: str, deadline_s: float, sizes: set[int], admission: str
) -> None:
    """T_rd − (T_rd − T_k) is 0 in floating point where T_k is a second and T_rd 7·10⁷⁵: T_k itself is compared."""
    table = three(6.9e75, admission).as_dict()
    table["devices"]["classes"][1]["deadline_s"] = deadline_s
    table["policy"] = {"name": policy, "size": 3}
    counts = set()
    for seed in (0, 4, 5):
        run = fs.simulate(from_dict(table), seed)
        counts.add(run.rounds["transmitted"][0])
        verified(run)
    assert counts == sizes, "the deadline decided nothing"
