"""What devices measure decides what is planned: learned from turn to turn, and never by one glitch."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from deployed_clients import FAST, client, grid_of, growing, played, round_of
from flwr.app import Context, Message

import feelstream as fs
from feelstream.flower import ScheduledFedAvg
from feelstream.flower.estimates import FORGETTING, Estimate

PLAIN = [each for each in FAST if "policy.V" not in each]


def factors(estimate: Estimate) -> list[float]:
    return np.exp(estimate.expected()[0]).tolist()


def test_the_estimate_is_the_weighted_mean_of_logarithms() -> None:
    estimate, readings = Estimate(2), [2.0, 2.4, 1.8, 2.1]
    for t, reading in enumerate(readings, 1):
        estimate.add(t, {0: (reading, 1.0)})
    weights = np.array([FORGETTING ** (3 - i) for i in range(4)])
    mean = np.average(np.log(readings), weights=weights)  # of what it read; the prior's middle is the same number
    assert factors(estimate) == pytest.approx([np.exp(mean)] * 2)  # the other one is expected to be like it
    # Of one device nobody can tell how far others are from it: it counts as one at the middle beside one at ln 10.
    prior = 0.3**2 / np.mean([0.0, np.log(10.0) ** 2])
    assert estimate.expected()[1] == pytest.approx(0.3 / np.sqrt([weights.sum() + prior, prior]))


def test_devices_are_as_far_apart_as_they_have_been_found_to_be() -> None:
    estimate = Estimate(5)
    estimate.add(1, {k: (reading, 1.0) for k, reading in enumerate([1.0, 2.0, 4.0, 8.0])})
    middle = np.log(2.0)  # the lower median
    apart = np.mean([*np.square(np.log([1.0, 2.0, 4.0, 8.0]) - middle), np.log(10.0) ** 2])
    assert estimate.expected()[0][4] == pytest.approx(middle)
    assert estimate.expected()[1][4] == pytest.approx(np.sqrt(apart))


def test_a_glitch_at_a_devices_first_turn_does_not_exclude_it() -> None:
    """What the others measure says what is possible, even of a fleet that is far from the model."""
    estimate = Estimate(3)
    for t in range(1, 4):
        estimate.add(t, {0: (70.0, 1.0), 1: (50.0, 1.0)})
    estimate.add(4, {2: (30e3, 1.0)})
    assert factors(estimate)[2] == pytest.approx(50.0, rel=0.1)
    estimate.add(5, {2: (60.0, 1.0)})
    assert factors(estimate)[2] == pytest.approx(60.0, rel=0.05)


@pytest.mark.parametrize("at", [1, 2, 5])
def test_one_glitch_counts_for_at_most_two_turns(at: int) -> None:
    estimate, found = Estimate(1), []
    for t in range(1, 9):
        estimate.add(t, {0: (9e5 if t == at else 0.5, 1.0)})
        found += factors(estimate)
    assert found[-1] == pytest.approx(0.5, rel=0.02)
    assert max(found) < 1.01  # nothing is known in the first round, and the model stands


def test_a_change_that_lasts_is_followed_at_its_second_reading() -> None:
    estimate = Estimate(1)
    for t in range(1, 12):
        estimate.add(t, {0: (1.0 if t < 10 else 20.0, 1.0)})
        if t == 10:
            assert factors(estimate) == pytest.approx([1.0])
    assert factors(estimate) == pytest.approx([20.0], rel=0.05)


def test_what_is_cheap_by_the_model_and_dear_by_its_meter_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """λcf² calls the slow device cheap; it uses forty times what the others do, and is found out by its first turns."""

    def device(f_hz: float, joules: float) -> object:
        return client(growing, device={"f_hz": f_hz}, after={"t_cmp_s": 0.5, "e_cmp_j": joules})

    grid = grid_of(device(1e9, 8.0), *[device(1.4e9, 0.2)] * 3)  # pyright: ignore[reportArgumentType]
    settings = [*PLAIN, "policy.name=greedy_energy", "policy.size=1", "radio.fading=none"]
    with caplog.at_level(logging.WARNING):
        slow = played(fs.preset("tiny", settings), grid, 12, tmp_path / "run").filter(pl.col("device") == 0)
    assert slow["scheduled"][0]  # nobody knows better
    assert slow["scheduled"].sum() <= 3
    assert slow["e_cmp_planned_j"][-1] > 10 * slow["e_cmp_prior_j"][-1]
    assert "times the energy of the scenario's model" in caplog.text


def test_a_device_that_was_too_slow_is_tried_again_and_nobody_waits_for_ever(tmp_path: Path) -> None:
    def slow_at_first(context: Context, message: Message) -> Message | None:
        t = round_of(message)
        return client(growing, after={"t_cmp_s": 60.0 if t < 5 else 0.5})(context, message)

    grid = grid_of(slow_at_first, client(growing, after={"t_cmp_s": 0.5}))
    settings = [*PLAIN, "system.devices=2", "policy.name=age", "policy.size=1", "radio.fading=none"]
    slow = played(fs.preset("tiny", settings), grid, 60, tmp_path / "run").filter(pl.col("device") == 0)
    assert not slow["transmitted"][:5].any()
    assert slow["transmitted"][-10:].any()


def test_plans_by_the_model_alone_store_no_estimates(tmp_path: Path) -> None:
    grid = grid_of(*[client(growing, after={"e_cmp_j": 0.2})] * 4)
    scenario = fs.preset("tiny", [*FAST, "radio.fading=none"])
    assert "e_cmp_planned_j" not in played(scenario, grid, 3, tmp_path / "run", plans="model").columns
    with pytest.raises(fs.FeelstreamError, match="plans: must be 'measured' or 'model'"):
        ScheduledFedAvg(scenario, plans="by hand")


def test_a_glitch_is_charged_ten_times_what_is_usual_however_far_the_model_is_off(tmp_path: Path) -> None:
    """All use 70 J where the model says 0.1 J; by then both are known, and neither may multiply the other."""

    def device(glitch: bool) -> object:
        def answer(context: Context, message: Message) -> Message | None:
            t = round_of(message)
            return client(growing, after={"t_cmp_s": 0.5, "e_cmp_j": 70e3 if glitch and t == 4 else 70.0})(
                context, message
            )

        return answer

    grid = grid_of(device(True), *[device(False)] * 3)  # pyright: ignore[reportArgumentType]
    scenario = fs.preset("tiny", [*PLAIN, "policy.name=select_all", "radio.fading=none"])
    devices = played(scenario, grid, 5, tmp_path / "run")
    charged = devices.filter(pl.col("device") == 0, pl.col("scheduled"))["e_cmp_j"].to_list()
    assert charged[1:] == pytest.approx([70.0, 70.0, 700.0, 70.0], rel=0.02)  # a little more: sending is in the ratio
