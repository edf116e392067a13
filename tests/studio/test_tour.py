"""The tour: every step speaks of the round that is shown, with the figures of the trace."""

from __future__ import annotations

import pytest
from builders import small

pytest.importorskip("nicegui", reason="the extra studio is not installed")

from feelstream.studio.lanes import LiveLane
from feelstream.studio.tour import STEPS


def test_every_step_says_what_the_trace_holds() -> None:
    lanes = [LiveLane(name, small(f"policy.name={name}"), 3) for name in ("lyapunov", "random")]
    for lane in lanes:
        for _ in range(8):
            lane.step()
    rounds = [step.round(8) for step in STEPS]
    assert rounds == sorted(rounds)
    assert rounds[-1] == 8
    said = [step.words([(lane, lane.view(round)) for lane in lanes]) for step, round in zip(STEPS, rounds, strict=True)]
    assert all(words.endswith(".") and "nan" not in words for words in said)
    view = lanes[0].view(rounds[0])
    assert view.devices is not None
    assert f"{view.devices['fresh'].sum()} samples are fresh" in said[0]
    row = lanes[0].view(rounds[3]).row
    assert f"{row['feasible']} of 6 devices can" in said[3]
    assert f"{1e3 * lanes[0].rows[-1]['energy_mean_cum_j']:.3g} mJ" in said[4]
