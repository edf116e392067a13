"""The examples in examples/: run, resumed, checked and verified."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import polars as pl
import pytest
from builders import devices_of, found_in, verified
from commands import Command

from feelstream import preset, simulate, to_toml
from feelstream.run import read

ROOT = Path(__file__).parents[1]
POLICY, METRIC, ARRIVALS, BUFFER = (
    str(ROOT / "examples" / name)
    for name in ("my_policy.py:Rested", "my_metric.py:product", "my_arrivals.py:Daily", "my_buffer.py:Newest")
)
OWN = [
    "learning.engine=none",
    f"policy.name={POLICY}",
    "policy.rest=3",
    f"data.arrivals.kind={ARRIVALS}",
    "data.arrivals.day=8",
    "system.rounds=30",
]


def test_own_policy_and_arrivals_run_and_verify(tmp_path: Path) -> None:
    run = simulate(preset("tiny", OWN))
    path = run.save(tmp_path / "run")
    stored = json.loads((path / "run.json").read_text())["scenario"]
    assert stored["policy"] == {"name": POLICY, "size": 2, "rest": 3}
    assert stored["data"]["arrivals"]["day"] == 8
    assert read(path).scenario.as_dict() == run.scenario.as_dict()
    assert POLICY in to_toml(run.scenario)
    verified(run)
    # The rule itself: nobody comes back within 3 rounds, and by night nothing arrives.
    for _, device in devices_of(run).group_by("device"):
        turns = device.filter(device["scheduled"])["round"].sort()
        assert turns.diff().drop_nulls().min() is None or turns.diff().min() > 3  # type: ignore[operator]


def test_own_probe_runs_and_verifies(tmp_path: Path) -> None:
    name = ROOT / "examples" / "my_probe.py:Uneven"
    path = simulate(preset("tiny", [f"policy.name={name}", "system.rounds=3"])).save(tmp_path / "run")
    run = read(path)  # which runs no code, and knows by the promises that the policy asked
    assert run.scenario.known_system(10).round_s == run.scenario.system.round_s - run.scenario.reports.slot_s
    assert (devices_of(run)["e_report_j"] > 0).any()
    verified(run)


@pytest.mark.parametrize("policy", ["lyapunov", "importance_greedy"])
def test_own_metric_runs_and_verifies(policy: str) -> None:
    overrides = ["learning.engine=none", f"policy.name={policy}", f"policy.metric={METRIC}"]
    run = simulate(preset("tiny", overrides))
    known = devices_of(run).drop_nulls("amount")
    product = known["amount"] * (1 + known["dissimilarity"])
    assert (product - known["importance"]).abs().max() < 1e-12  # type: ignore[operator]
    assert "the importance by a user's own metric" in str(verified(run))
    if policy == "lyapunov":
        assert found_in(run, pl.col("score") * 1.001).field == "score"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))

    def points(group: str, name: str | None = None) -> list[EntryPoint]:
        known = [
            EntryPoint("rested", "my_policy:Rested", "feelstream.policies"),
            EntryPoint("product", "my_metric:product", "feelstream.metrics"),
            EntryPoint("daily", "my_arrivals:Daily", "feelstream.arrivals"),
        ]
        return [point for point in known if point.group == group and name in (None, point.name)]

    monkeypatch.setattr("feelstream.plugins.entry_points", points)
    yield
    for module in ("my_policy", "my_metric", "my_arrivals"):
        sys.modules.pop(module, None)


@pytest.mark.usefixtures("installed")
def test_entry_points_give_short_names() -> None:
    run = simulate(preset("tiny", ["learning.engine=none", "policy.name=rested", "data.arrivals.kind=daily"]))
    assert run.about["scenario"]["policy"]["name"] == "rested"
    assert run.about["scenario"]["data"]["arrivals"]["kind"] == "daily"
    metric = preset("tiny", ["learning.engine=none", "policy.metric=product"])
    assert simulate(metric).rounds["scheduled"].sum() > 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([POLICY], 0, "pass"),
        ([METRIC], 0, "the form, the range and the state"),
        ([ARRIVALS], 0, "the same run comes to the same"),
        ([BUFFER], 0, "holds what came and has not left"),
        ([METRIC, "--kind", "policy"], 2, "is not a class; it must be one derived from feelstream.Policy"),
        (["uniform"], 2, "--kind arrivals or --kind frequency"),
        (["uniform", "--kind", "frequency"], 0, "goes on the same from a stored state"),
        (["uniform", "--kind", "colour"], 2, "'colour' is not known; allowed: energy law, cost"),
        (["broken.py:Broken"], 1, "FAIL"),
    ],
    ids=lambda value: " ".join(Path(word).name for word in value) if isinstance(value, list) else None,
)
def test_check_command(words: list[str], code: int, says: str, feelstream: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from feelstream import Policy\nclass Broken(Policy):\n    def select(self, *given): ...\n"
    )
    ended, out, err = feelstream("check", *words)
    assert ended == code, err
    assert says in out + err
    assert "Traceback" not in err
