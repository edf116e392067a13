"""Whatever a legal scenario says: the run is sound, verifies, and survives files and interruptions.

The scenarios are those of the soak, which tries as many more as one likes: `make soak ATTACKS=scenarios`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from builders import devices_of
from stopped import stop_in

import feelstream as fs
from feelstream.run import simulate_in
from feelstream.scenario.files import from_dict
from soak.scenarios import Scenarios


def legal(place: Path, seed: int, count: int) -> Iterator[tuple[fs.Scenario, int]]:
    """So many scenarios that are not refused, with all that they store, each with a seed for its run."""
    attack = Scenarios(place / "soak", Random(seed))
    while count:
        try:
            scenario = attack.drawn(place).with_(**{"trace.level": "full"})
            fs.simulate(scenario, attack.seed)
        except fs.FeelstreamError:  # some are only refused when the data are loaded
            continue
        yield scenario, attack.seed
        count -= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_run_is_sound_and_verifies(seed: int, tmp_path: Path) -> None:
    attack = Scenarios(tmp_path / "soak", Random(seed))
    for _ in range(30):
        attack.try_once()
    assert attack.lost == []
    assert attack.survived >= 15


@pytest.mark.slow
def test_toml_round_trip_loses_nothing(tmp_path: Path) -> None:
    for scenario, _ in legal(tmp_path, 5, 30):
        text = fs.to_toml(scenario, "a heading")
        assert from_dict(tomllib.loads(text)) == scenario
        assert fs.to_toml(from_dict(tomllib.loads(text)), "a heading") == text


@pytest.mark.slow
def test_policies_with_one_seed_meet_the_same_world(tmp_path: Path) -> None:
    world = ["round", "device", "f_hz", "beta", "gain", "stored", "fresh", "fresh_labels"]
    for scenario, seed in legal(tmp_path, 6, 20):
        # Arrivals are the world's; what a device still holds is not, once a buffer deletes what was used.
        common = scenario.with_(**{"data.fresh": "per_round", "data.buffer": "keep"})
        one, two = (fs.simulate(common.with_(policy=name, size=1), seed) for name in ("lyapunov", "random"))
        assert devices_of(one).select(world).equals(devices_of(two).select(world))


@pytest.mark.slow
def test_a_run_stopped_and_started_again_is_the_same(tmp_path: Path) -> None:
    for number, (scenario, seed) in enumerate(legal(tmp_path, 7, 20)):
        directory, left_alone = tmp_path / f"run{number}", fs.simulate(scenario, seed)
        stop_in(directory, scenario, 1 + seed % scenario.system.rounds, seed)
        simulate_in(directory, scenario, seed, checkpoint_s=0)
        files = {path.name for path in directory.iterdir()} - {"constants.parquet", "model.npz"}
        assert files == {".lock", "devices.parquet", "rounds.parquet", "run.json"}
        run = fs.read(directory)
        assert run.rounds.equals(left_alone.rounds)
        assert devices_of(run).equals(devices_of(left_alone))
        assert (run.scenario, run.seed) == (left_alone.scenario, seed)
