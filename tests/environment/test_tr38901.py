"""Mean gains by TR 38.901: the tables against values by hand and against Sionna, the process by statistics."""

from __future__ import annotations

import numpy as np
import pytest
from builders import devices_of, small

import feelstream as fs
from feelstream.environment.base import ProcessContext
from feelstream.environment.mobility import TR38901
from feelstream.environment.tr38901 import SCENES, Place

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
