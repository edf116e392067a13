"""Gains by TR 38.901: the tables against values by hand and against Sionna, the process by statistics; fading by
clusters with paths from a stand-in, and Sionna's own where it is installed.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import devices_of, small, verified

import feelstream as fs
from feelstream.environment import sionna_paths
from feelstream.environment.base import Links, ProcessContext
from feelstream.environment.channel import BLOCK, ClusterChannel, mean_power
from feelstream.environment.mobility import TR38901
from feelstream.environment.tr38901 import SCENES, Place
from feelstream.errors import ScenarioError
from feelstream.run import simulate_in
from feelstream.testing import check

GHZ = 3.5


def context(devices: int, round_s: float = 4.0) -> ProcessContext:
    zeros = np.zeros(devices)
    return ProcessContext(devices, 10, round_s, zeros + 1e8, zeros + 1e9, zeros - 5, zeros + 3)


@pytest.mark.parametrize(
    ("place", "distance_m", "sight", "loss_db"),
    [
        # d_3D = √(100² + 8.5²) = 100.361: 32.4 + 21·2.00156 + 20·0.54407, and 22.4 + 35.3·2.00156 + 21.3·0.54407
        ("umi", 100.0, True, 85.3142),
        ("umi", 100.0, False, 104.6438),
        # Beyond d'_BP = 4·9·0.5·3.5e9/c = 210.15: 32.4 + 40·log10(300.120) + 10.8814 − 9.5·log10(210.15² + 8.5²)
        ("umi", 300.0, True, 98.2384),
        # d_3D = 500.552: 13.54 + 39.08·2.69945 + 10.8814
        ("uma", 500.0, False, 129.9158),
        # d_3D = 105.462: 20·log10(15461.5) + 0.47791·2.02310 − 0.70094 + 0.14743
        ("rma", 100.0, True, 84.1984),
    ],
)
def test_losses_are_those_of_the_table(place: Place, distance_m: float, sight: bool, loss_db: float) -> None:
    found = SCENES[place].loss_db(np.array([distance_m]), GHZ, sight)[0]
    assert found == pytest.approx(loss_db, abs=2e-3)


def test_the_probability_of_a_line_of_sight() -> None:
    near, far = np.array([5.0, 18.0]), np.array([100.0])
    for place in ("umi", "uma"):
        assert (SCENES[place].line_of_sight(near) == 1).all()
    assert SCENES["umi"].line_of_sight(far)[0] == pytest.approx(0.18 + np.exp(-100 / 36) * 0.82)
    assert SCENES["uma"].line_of_sight(far)[0] == pytest.approx(0.18 + np.exp(-100 / 63) * 0.82)
    assert SCENES["rma"].line_of_sight(np.array([1010.0]))[0] == pytest.approx(np.exp(-1))


@pytest.mark.parametrize("place", list(SCENES))
def test_losses_rise_with_distance_and_have_no_step(place: Place) -> None:
    distance_m = np.linspace(10.0, 9000.0, 200_000)
    for sight in (True, False):
        rise = np.diff(SCENES[place].loss_db(distance_m, GHZ, sight))
        assert (rise > 0).all()
        assert rise.max() < 0.1


@pytest.mark.parametrize("place", list(SCENES))
def test_as_in_sionna(place: Place) -> None:
    """Where the package sionna-no-rt is installed: path loss, probability of a line of sight, correlation distances."""
    tr38901, torch = pytest.importorskip("sionna.phy.channel.tr38901"), pytest.importorskip("torch")
    distance_m, n = np.array([10.0, 30, 60, 100, 150, 200, 300, 500, 800, 1500, 3000]), 11
    array = tr38901.PanelArray(
        num_rows_per_panel=1, num_cols_per_panel=1, polarization="single", polarization_type="V",
        antenna_pattern="omni", carrier_frequency=GHZ * 1e9,
    )  # fmt: skip
    made = {"umi": tr38901.UMi, "uma": tr38901.UMa, "rma": tr38901.RMa}[place]
    more = {} if place == "rma" else {"o2i_model": "low"}
    devices, station = torch.zeros(1, n, 3), torch.zeros(1, 1, 3)
    devices[0, :, 0], devices[0, :, 2] = torch.tensor(distance_m), 1.5
    station[0, 0, 2] = SCENES[place].station_m
    for sight in (True, False):
        channel = made(
            carrier_frequency=GHZ * 1e9, ut_array=array, bs_array=array, direction="uplink", device="cpu", **more
        )
        channel.set_topology(
            ut_loc=devices, bs_loc=station, ut_orientations=torch.zeros(1, n, 3), bs_orientations=torch.zeros(1, 1, 3),
            ut_velocities=torch.zeros(1, n, 3), in_state=torch.zeros(1, n, dtype=torch.bool), los=sight,
        )  # fmt: skip
        theirs = channel._scenario.basic_pathloss.numpy().ravel()
        np.testing.assert_allclose(SCENES[place].loss_db(distance_m, GHZ, sight), theirs, atol=1e-4)
        correlation_m = channel._scenario.get_param("corrDistSF").numpy()
        assert (correlation_m == SCENES[place].correlation_m[0 if sight else 1]).all()
    assert float(channel._scenario._los_state_correlation_distance()) == SCENES[place].sight_correlation_m
    chance = channel._scenario.los_probability.numpy().ravel()
    np.testing.assert_allclose(SCENES[place].line_of_sight(distance_m), chance, atol=1e-5)


def test_shadowing_and_sight_have_the_tables_statistics() -> None:
    K, world = 100_000, TR38901(radius_m=100.0)
    rng = np.random.default_rng(3)
    state = world.init(context(K), rng)
    angle = rng.uniform(0, 2 * np.pi, K)
    state["place"] = 80.0 * np.array([np.cos(angle), np.sin(angle)])
    db = 10 * np.log10(world.step(1, state, context(K), rng)[0])
    scene, at = SCENES["umi"], np.array([80.0])
    chance = float(scene.line_of_sight(at)[0])
    means = [110 - float(scene.loss_db(at, GHZ, sight)[0]) for sight in (True, False)]
    mean = chance * means[0] + (1 - chance) * means[1]
    # Cut off at ±3σ a normal law has the variance 0.9733σ².
    variance = 0.9733 * (chance * 4**2 + (1 - chance) * 7.82**2) + chance * (1 - chance) * (means[0] - means[1]) ** 2
    assert db.mean() == pytest.approx(mean, abs=6 * np.sqrt(variance / K))
    assert db.var() == pytest.approx(variance, rel=0.03)


def test_shadowing_hangs_together_over_the_way() -> None:
    K, world = 50_000, TR38901(speed_m_s=1.3, place="umi")
    rng = np.random.default_rng(4)
    before = world.init(context(K, round_s=10.0), rng)
    after = world.step(1, before, context(K, round_s=10.0), rng)[1]
    assert np.corrcoef(before["sight"], after["sight"])[0, 1] == pytest.approx(np.exp(-13 / 50), abs=0.02)
    # 13 m on, those not seen have e^−1 and those seen e^−1.3.
    assert np.exp(-1.3) - 0.02 < np.corrcoef(before["shadow"], after["shadow"])[0, 1] < np.exp(-1) + 0.02
    assert np.std(after["shadow"]) == pytest.approx(1.0, abs=0.02)


def test_devices_at_rest_keep_their_gain() -> None:
    assert devices_of(fs.simulate(small("world.mobility.kind=tr38901"), 1))["beta"].n_unique() == 6


PATHS, RICIAN_K = 12, 8.0  # waves of a device; the direct path over all others
VERSIONS = {"sionna-no-rt": "0.0.stand-in", "torch": "0.0.stand-in"}


def drawn(links: Links, ids: np.ndarray, samples: int, sample_s: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """As Sionna has them: plane waves of equal power, one more from the station for those seen; mean power 1."""
    rng, many = np.random.default_rng(seed), len(ids)
    angle, phase = rng.uniform(0, 2 * np.pi, (2, many, PATHS + 1))
    angle[:, 0] = np.arctan2(*-links.position_m[::-1, ids])
    direct = np.where(links.seen[ids], RICIAN_K / (RICIAN_K + 1), 0.0)
    power = np.column_stack([direct, *np.broadcast_to((1 - direct) / PATHS, (PATHS, many))])
    speed = links.velocity_m_s[0, ids, None] * np.cos(angle) + links.velocity_m_s[1, ids, None] * np.sin(angle)
    time_s = np.arange(samples) * sample_s
    turned = 2 * np.pi * links.carrier_hz / 299792458.0 * speed[:, :, None] * time_s + phase[:, :, None]
    delay_s = rng.exponential(1e-7, (many, PATHS + 1))
    delay_s[:, 0] = 0
    return np.sqrt(power)[:, :, None] * np.exp(1j * turned), delay_s


BOTH = ("world.mobility.kind=tr38901", "world.channel.kind=tr38901", "world.mobility.speed_m_s=1.5")
INSTALLED = pytest.mark.skipif(
    not any(metadata.packages_distributions().get("sionna", ())), reason="needs Sionna: install feelstream[sionna]"
)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sionna_paths, "drawn", drawn)
    monkeypatch.setattr(sionna_paths, "versions", lambda: VERSIONS)


def links(devices: int, seen: bool, speed_m_s: float = 1.0, place: Place = "umi") -> Links:
    rng = np.random.default_rng(5)
    heading = rng.uniform(0, 2 * np.pi, devices)
    velocity = speed_m_s * np.array([np.cos(heading), np.sin(heading)])
    return Links(place, 3.5e9, rng.normal(0, 80, (2, devices)), velocity, np.full(devices, seen))


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("fields", [{}, {"drop_rounds": 1}, {"drop_rounds": 7, "average_hz": 1e7}], ids=str)
def test_it_keeps_the_contract(fields: dict[str, Any]) -> None:
    assert [result.problem for result in check(ClusterChannel(**fields)) if not result.ok] == []


@pytest.mark.usefixtures("stand_in")
def test_a_run_verifies_and_is_the_same_world_for_all_policies() -> None:
    run, again, other = (
        fs.simulate(small(*BOTH, f"policy.name={policy}"), 6) for policy in ("lyapunov", "lyapunov", "random")
    )
    assert devices_of(run).equals(devices_of(again))
    assert devices_of(run)["gain"].equals(devices_of(other)["gain"])
    verified(run)
    assert run.manifest.versions.items() >= VERSIONS.items()


def test_drops_begin_where_devices_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every drop goes by places, speeds and sights of the round in which it begins, a block of devices at a time."""
    asked: list[tuple[Links, np.ndarray, int, float]] = []

    def noted(given: Links, ids: np.ndarray, samples: int, sample_s: float, seed: int) -> Any:
        asked.append((given, ids, samples, sample_s))
        return drawn(given, ids, samples, sample_s, seed)

    monkeypatch.setattr(sionna_paths, "drawn", noted)
    monkeypatch.setattr(sionna_paths, "versions", dict)
    devices = BLOCK + 3
    scenario = small(*BOTH, "world.channel.drop_rounds=3", f"system.devices={devices}", "system.rounds=5")
    fs.simulate(scenario, 4)
    assert [(len(ids), samples, sample_s) for _, ids, samples, sample_s in asked] == [
        (size, 3, scenario.system.round_s) for size in (BLOCK, 3, BLOCK, 3)
    ]
    first, later = asked[0][0], asked[2][0]
    moved = np.hypot(*(later.position_m - first.position_m))
    # Three rounds at 1.5 m/s, less where a device turned or bounced.
    assert moved.max() == pytest.approx(3 * 1.5 * scenario.system.round_s)
    np.testing.assert_allclose(np.hypot(*first.velocity_m_s), 1.5)
    assert 0 < first.seen.mean() < 1
    assert (first.seen != later.seen).any()


def test_who_is_seen_is_who_has_the_path_loss_of_a_line_of_sight() -> None:
    zeros, rng, world = np.zeros(2000), np.random.default_rng(3), TR38901(radius_m=150.0)
    of = ProcessContext(2000, 10, 4.0, zeros + 1e8, zeros + 1e9, zeros - 5, zeros + 3)
    state = {**world.init(of, rng), "shadow": zeros}
    db = 10 * np.log10(world.step(1, state, of, rng)[0])
    found = world.links(state)
    distance_m = np.maximum(np.hypot(*found.position_m), 10.0)
    np.testing.assert_allclose(db, world.offset_db - SCENES["umi"].loss_db(distance_m, 3.5, found.seen))


def test_the_mean_over_a_band_is_that_of_its_frequencies() -> None:
    """Against the trapezoidal rule over 2,001 frequencies; a band of no width is the carrier."""
    paths, delay_s = drawn(links(5, seen=True), np.arange(5), 3, 4.0, 1)
    band_hz = 2e7
    f_hz = np.linspace(-band_hz / 2, band_hz / 2, 2001)
    for k in range(5):
        spectrum = np.exp(-2j * np.pi * f_hz[:, None] * delay_s[k]) @ paths[k]
        by_hand = np.trapezoid(np.abs(spectrum) ** 2, f_hz, axis=0) / band_hz
        np.testing.assert_allclose(mean_power(paths, delay_s, band_hz)[:, k], by_hand, rtol=1e-4)
        np.testing.assert_allclose(mean_power(paths, delay_s, 0.0)[:, k], np.abs(spectrum[1000]) ** 2)
    np.testing.assert_allclose(mean_power(paths, delay_s, 1e-3), mean_power(paths, delay_s, 0.0), rtol=1e-6)


def test_what_it_needs_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sionna_paths, "SIONNA", ("no-such-package",))
    with pytest.raises(ScenarioError, match=r"needs the package sionna-no-rt; .*pip install 'sionna-no-rt[<>=]"):
        simulate_in(tmp_path / "run", small(*BOTH))
    assert not (tmp_path / "run" / "run.json").exists()


@INSTALLED
def test_sionna_repeats_itself_and_disturbs_nobody() -> None:
    torch = pytest.importorskip("torch")
    given, ids = links(5, seen=False), np.arange(5)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    threads = torch.get_num_threads()
    first, again, other = (sionna_paths.drawn(given, ids, 4, 4.0, seed) for seed in (7, 7, 8))
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads
    for mine, theirs in zip(first, again, strict=True):
        assert np.array_equal(mine, theirs)
    assert not np.array_equal(first[0], other[0])


@INSTALLED
@pytest.mark.slow
@pytest.mark.parametrize(("place", "mean_db", "spread_db"), [("umi", 9, 5), ("uma", 9, 3.5), ("rma", 7, 4)])
def test_sionna_fades_as_the_k_factors_of_the_standard_say(place: Place, mean_db: float, spread_db: float) -> None:
    """Table 7.5-6: K in dB ~ N(mean, spread). A ratio with mean 1 then has the variance E[(1 + 2K)/(1 + K)²]."""
    many, draws = 1000, np.random.default_rng(1)
    for seen in (True, False):
        paths, delay_s = sionna_paths.drawn(links(many, seen, place=place), np.arange(many), 20, 4.0, 3)
        ratio = mean_power(paths, delay_s, 0.0)
        k_factor = 10 ** (draws.normal(mean_db, spread_db, 100_000) / 10) if seen else np.zeros(1)
        variance = ((1 + 2 * k_factor) / (1 + k_factor) ** 2).mean()
        # Clusters are kept through a drop, so about `many` values count, not 20 times as many.
        assert ratio.mean() == pytest.approx(1, abs=5 * np.sqrt(variance / many))
        assert ratio.var() == pytest.approx(variance, rel=0.15)
        assert mean_power(paths, delay_s, 1e8).var() < ratio.var()


@INSTALLED
def test_sionna_gives_devices_at_rest_one_gain_for_a_drop() -> None:
    paths, delay_s = sionna_paths.drawn(links(4, True, speed_m_s=0.0, place="rma"), np.arange(4), 6, 4.0, 2)
    ratio = mean_power(paths, delay_s, 0.0)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape))
    paths, delay_s = sionna_paths.drawn(links(4, True, speed_m_s=2.0, place="rma"), np.arange(4), 6, 4.0, 2)
    assert (np.ptp(mean_power(paths, delay_s, 0.0), axis=0) > 0).all()


@INSTALLED
def test_a_run_with_sionna_repeats_and_verifies() -> None:
    """At the origin, too: a device there has no direction, and is put 10 m away."""
    run, again = (fs.simulate(small(*BOTH, "world.mobility.radius_m=10.0"), 1) for _ in range(2))
    assert devices_of(run).equals(devices_of(again))
    verified(run)
    nowhere = Links("uma", 6e9, np.zeros((2, 1)), np.zeros((2, 1)), np.ones(1, bool))
    assert np.isfinite(sionna_paths.drawn(nowhere, np.arange(1), 2, 1.0, 0)[0]).all()
