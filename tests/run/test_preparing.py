"""What cannot fit is refused at once, with an estimate."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from builders import small

import feelstream as fs
from feelstream.errors import ScenarioError
from feelstream.experiment import Arm, Plan, comparison
from feelstream.run import preparing

LARGE = ("learning.engine=native", "learning.steps=2", "learning.batch=2147483647")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["system.devices=10000000"], r"10,000,000 devices and 8 rounds need about .* GB of memory, and there"),
        (["system.devices=100000", "system.rounds=1000"], r"or set trace\.level to rounds"),
        (LARGE, r"learning\.local\.batch: 2 steps of 2,147,483,647 samples need about 51\.5 GB"),
        ([LARGE[-1]], None),  # without learning nothing is drawn
    ],
)
def test_what_cannot_fit_gets_a_sentence(
    overrides: list[str], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "memory_bytes", lambda: 8 * 10**9)
    with pytest.raises(ScenarioError, match=told) if told else nullcontext():
        fs.simulate(small(*overrides))


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(preparing, "CGROUPS", (str(limit),))
    for text, known in (("1000000", True), ("max", False)):
        limit.write_text(text)
        assert (preparing.memory_bytes() == 1000000) == known


def test_plans_of_absurd_size_get_a_sentence() -> None:
    with pytest.raises(ScenarioError, match="10,000,000 runs; at most 1,000,000"):
        Plan("much", (Arm("a", small()),), range(10**7))  # type: ignore[arg-type]
    values = ",".join(str(1 + n) for n in range(700))
    with pytest.raises(ScenarioError, match="490,000 configurations were asked for, and at most 10,000"):
        comparison.arms("tiny", (), (), [f"policy.V={values}", f"system.round_s={values}"])
