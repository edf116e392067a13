"""Each process against its stationary law; worlds of them, and devices that fail, in runs that verify and resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from builders import devices_of, found_in, small, verified
from scipy import stats
from scipy.special import j0

import feelstream as fs
from feelstream.environment.availability import (
    Breakdowns,
    ComesAndGoes,
    Diurnal,
    NoFaults,
    RandomFaults,
    RecordedAvailability,
)
from feelstream.environment.base import Process, ProcessContext, State, Step
from feelstream.environment.channel import AutoregressiveChannel, Channel, JakesChannel
from feelstream.environment.frequency import FrequencyLevels, RecordedFrequency
from feelstream.environment.harvest import PacketHarvest, SolarHarvest
from feelstream.environment.mobility import RandomDirection, reflected

K = 4000


def context(devices: int = K, round_s: float = 4.0) -> ProcessContext:
    low, high = np.full(devices, 1e8), np.full(devices, 1.5e9)
    return ProcessContext(devices, 200, round_s, low, high, np.full(devices, -5.0), np.full(devices, 3.0))


def values(process: Process, rounds: int, of: ProcessContext | None = None) -> np.ndarray:
    """(rounds, K)."""
    of = of or context()
    state, found = process.init(of, np.random.default_rng(1)), []
    for t in range(1, rounds + 1):
        given, state = process.step(t, state, of, np.random.default_rng([2, t]))
        found.append(np.array(given))
    return np.array(found)


@pytest.mark.parametrize("round", [1, 30])
def test_levels_are_uniform_at_any_time_and_stay_as_long_as_they_should(round: int) -> None:
    found = values(FrequencyLevels(levels=5, stay=0.7), 40)
    counts = np.unique(found[round - 1], return_counts=True)[1]
    assert len(counts) == 5
    assert stats.chisquare(counts).pvalue > 1e-4
    kept = (found[1:] == found[:-1]).mean()
    assert kept == pytest.approx(0.7, abs=0.005)  # 160,000 draws: a standard error of 0.0012


@pytest.mark.parametrize("channel", [AutoregressiveChannel(doppler_hz=0.02), JakesChannel(doppler_hz=0.02, waves=64)])
def test_correlated_fading_is_rayleigh_with_the_correlation_of_clarke(channel: Process) -> None:
    found = values(channel, 12)
    # The power of a complex normal is exponential; the sum of 64 waves comes close to it.
    assert stats.kstest(found[5], "expon").statistic < 0.03
    # corr(|h(t)|², |h(t+1)|²) = ρ² for complex normals with correlation ρ = J₀(2π f_D T_rd).
    rho = float(j0(2 * np.pi * 0.02 * 4.0))
    assert np.corrcoef(found[4], found[5])[0, 1] == pytest.approx(rho**2, abs=0.05)


def test_autoregressive_fading_forgets_geometrically_and_jakes_does_not() -> None:
    rho = float(j0(2 * np.pi * 0.02 * 4.0))
    ar, jakes = values(AutoregressiveChannel(doppler_hz=0.02), 9), values(JakesChannel(doppler_hz=0.02, waves=64), 9)
    assert np.corrcoef(ar[3], ar[7])[0, 1] == pytest.approx(rho**8, abs=0.06)
    assert np.corrcoef(jakes[3], jakes[7])[0, 1] == pytest.approx(j0(2 * np.pi * 0.02 * 16.0) ** 2, abs=0.06)


def test_devices_stay_uniform_in_the_disc() -> None:
    of, cell = context(round_s=60.0), RandomDirection(radius_m=100.0, speed_m_s=2.0, nearest_m=1.0, turn=0.2)
    state = cell.init(of, np.random.default_rng(3))
    beta = np.empty(0)
    for t in range(1, 31):
        beta, state = cell.step(t, state, of, np.random.default_rng([4, t]))
    distance = np.hypot(*state["place"])
    assert distance.max() <= 100.0 * (1 + 1e-9)
    # Uniform in the disc: P(d ≤ r) = (r/R)².
    assert stats.kstest((distance / 100.0) ** 2, "uniform").pvalue > 1e-4
    low, high = cell.gain_range_db(0, 0)
    assert 10 * np.log10(beta).min() >= low - 1e-9
    assert 10 * np.log10(beta).max() <= high + 1e-9


def test_reflection_keeps_the_length_of_the_way() -> None:
    """From the centre straight to the edge and back: after 2R a device is where it began."""
    place, heading = reflected(np.zeros((2, 1)), np.array([0.3]), 200.0, 100.0)
    assert np.allclose(place, 0.0, atol=1e-9)
    assert np.cos(heading - 0.3)[0] == pytest.approx(-1.0)


MEANS = [  # and how many rounds, and how far the mean of 4,000 devices may be off
    (ComesAndGoes(p_leave=0.1, p_return=0.3), 30, 0.75, 0.03),
    (NoFaults(), 3, 0.0, 0.0),
    (RandomFaults(rate=0.5, share=0.25), 20, 0.125, 0.01),
    (Breakdowns(p_break=0.1, p_repair=0.3), 20, 0.25, 0.03),
    (Diurnal(day=24, depth=1.0, spread=0.0), 24, 0.5, 0.01),
    (PacketHarvest(rate=0.5, packet_j=2.0), 20, 1.0, 0.02),
    # ∫ max(0, sin) over a day is 1/π, and clouds take half.
    (SolarHarvest(peak_j=4.0, day=240), 240, 4.0 / (2 * np.pi), 0.006),
]


@pytest.mark.parametrize(("process", "rounds", "mean", "off"), MEANS, ids=lambda each: getattr(each, "tag", ""))
def test_processes_have_their_means_and_keep_their_states(
    process: Process, rounds: int, mean: float, off: float
) -> None:
    found = values(process, rounds)
    assert found.mean() == pytest.approx(mean, abs=off)
    match process:
        case ComesAndGoes():
            assert found[[0, -1]].mean(axis=1) == pytest.approx(mean, abs=off)  # stationary from the first round on
            left = (found[:-1] & ~found[1:]).sum() / found[:-1].sum()
            assert left == pytest.approx(0.1, abs=0.005)
        case RandomFaults():
            assert found.any(axis=0).mean() == pytest.approx(0.25, abs=1e-3)
        case Breakdowns():
            assert (found[1:] & found[:-1]).mean() > 0.15  # for a while, not for a round
        case Diurnal():
            assert found[11].mean() < 0.02  # round 12 is midnight for all
            assert found[23].all()  # and round 24 noon


def test_recorded_values_hold_until_the_next(tmp_path: Path) -> None:
    path = tmp_path / "there.csv"
    path.write_text("round,device,available\n2,0,0\n4,0,1\n1,1,0\n")
    found = values(RecordedAvailability(path=str(path)), 5, context(3))
    assert found[:, 0].tolist() == [True, False, False, True, True]
    assert not found[:, 1].any()
    assert found[:, 2].all()
    path = tmp_path / "f.parquet"
    pl.DataFrame({"round": [1, 3], "device": [1, 1], "f_hz": [5e8, 9e9]}).write_parquet(path)
    found = values(RecordedFrequency(path=str(path)), 3, context(2))
    assert found[:, 1].tolist() == [5e8, 5e8, 1.5e9]  # clipped to the range
    assert found[:, 0].tolist() == [1e8] * 3


@pytest.mark.parametrize(
    ("column", "change"),
    [("battery_j", pl.col("battery_j") + 0.5), ("harvest_j", pl.col("harvest_j") - 50.0), ("available", pl.lit(True))],
)
def test_changed_batteries_are_seen(column: str, change: pl.Expr) -> None:
    """An empty battery keeps everyone out at first, so that calling one of them available is a lie."""
    world = ("world.harvest.kind=packets", "world.harvest.start=0.0", "data.arrivals.kind=poisson")
    run = fs.simulate(small(*world, "system.rounds=25"), 3)
    assert not devices_of(run)["available"][0]
    there = (pl.col("round") == 1) & (pl.col("device") == 0)
    assert found_in(run, pl.when(there).then(change).otherwise(column).alias(column)).field == column


FAULTS = ["system.devices=10", "system.rounds=40", "system.energy_budget_j=0.3", "world.faults.kind=random"]
FAULTS += ["learning.engine=none", "world.faults.rate=1.0", "world.faults.share=0.2"]


@pytest.mark.parametrize("policy", ["lyapunov", "importance_greedy"])
def test_failing_devices_do_not_capture_the_schedule(policy: str) -> None:
    """What they hold stays fresh, so that each round adds to their importance; two of ten then have every turn."""
    ways = {}
    for way in ("learned", "ignored"):
        rounds = fs.simulate(
            fs.preset("tiny", [*FAULTS, f"policy.name={policy}", f"system.reliability={way}"]), 1
        ).rounds
        ways[way] = int(rounds["transmitted"].sum()) / int(rounds["scheduled"].sum())
    assert ways["learned"] > 0.8
    assert ways["learned"] > ways["ignored"] + 0.05


@pytest.mark.parametrize(
    ("column", "change"), [("reliability", pl.col("reliability") * 1.01), ("available", pl.lit(True))]
)
def test_the_re_check_learns_who_delivers_by_itself(column: str, change: pl.Expr) -> None:
    run = fs.simulate(fs.preset("tiny", FAULTS), 1)
    verified(run)
    resting = (pl.col("reliability") < 1) & ~pl.col("available")
    first = resting & (resting.cum_sum() == 1)
    assert column in str(found_in(run, pl.when(first).then(change).otherwise(column).alias(column)))


class Weak(Channel):
    """A mean of a third, where the contract says 1."""

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return rng.standard_exponential(context.devices) / 3, state


def test_a_channel_whose_mean_is_not_1_is_told(caplog: pytest.LogCaptureFixture) -> None:
    fs.simulate(small().with_(**{"world.channel": Weak()}))
    assert "the mean is 0.33" in caplog.text
    assert "it must be 1, since it is a factor on the mean gain" in caplog.text
