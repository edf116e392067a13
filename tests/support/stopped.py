"""Runs that are interrupted, and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feelstream.run import simulate_in
from feelstream.scenario import Scenario


def stop_in(directory: Path, scenario: Scenario, at: int, seed: int = 0, **options: Any) -> None:
    """Leave a run that stopped in round `at`, whose last checkpoint was after the round before."""

    def stop(record: Any) -> None:
        if record.observation.round == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_in(directory, scenario, seed, progress=stop, checkpoint_s=0, **options)


def goes_on_bit_for_bit(directory: Path, scenario: Scenario, at: int) -> Path:
    """Play a run as a whole, and once more in two parts with the same bytes; the directory of the whole."""
    whole, parts = directory / "whole", directory / "parts"
    simulate_in(whole, scenario)
    stop_in(parts, scenario, at)
    played: list[Any] = []
    simulate_in(parts, scenario, progress=played.append)
    assert played[0].observation.round == at
    files = {file.name for file in whole.iterdir() if file.suffix in (".parquet", ".npz")}
    assert files >= {"rounds.parquet", "devices.parquet"}
    assert ("model.npz" in files) == (scenario.learning.engine != "none")
    for name in files:
        assert (whole / name).read_bytes() == (parts / name).read_bytes()
    return whole
