"""The examples of docs/extending.md: run, resumed, in another process, checked and verified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from builders import devices_of
from commands import Command
from sealing import seal
from stopped import goes_on_bit_for_bit

from feelstream import preset, simulate, to_toml, verify
from feelstream.run import read
from feelstream.scenario.files import from_dict

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
    report = verify(path)
    assert report.ok, str(report)
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
    report = verify(path)
    assert report.ok, str(report)


def test_a_killed_run_of_an_own_policy_goes_on(tmp_path: Path) -> None:
    goes_on_bit_for_bit(tmp_path, preset("tiny", OWN), at=17)


def play(table: dict[str, Any]) -> list[float]:
    return simulate(from_dict(table)).rounds["energy_mean_j"].to_list()


def test_another_process_plays_the_same() -> None:
    """A fresh interpreter gets the settings as plain tables and imports the file by its name."""
    scenario = preset("tiny", OWN)
    code = "import json, sys; from feelstream import simulate; from feelstream.scenario.files import from_dict; "
    code += "print(json.dumps(simulate(from_dict(json.load(sys.stdin))).rounds['energy_mean_j'].to_list()))"
    source = Path(sys.modules["feelstream"].__file__ or "").parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(scenario.as_dict()),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert json.loads(done.stdout) == play(scenario.as_dict())


@pytest.mark.parametrize("policy", ["lyapunov", "importance_greedy"])
def test_own_metric_runs_and_verifies(policy: str, tmp_path: Path) -> None:
    overrides = ["learning.engine=none", f"policy.name={policy}", f"policy.metric={METRIC}"]
    run = simulate(preset("tiny", overrides))
    known = devices_of(run).drop_nulls("amount")
    product = known["amount"] * (1 + known["dissimilarity"])
    assert (product - known["importance"]).abs().max() < 1e-12  # type: ignore[operator]
    report = verify(run.save(tmp_path / "run"))
    assert report.ok, str(report)
    assert "the importance by a user's own metric" in str(report)


def test_a_changed_score_under_an_own_metric_is_still_seen(tmp_path: Path) -> None:
    path = simulate(preset("tiny", ["learning.engine=none", f"policy.metric={METRIC}"])).save(tmp_path / "run")
    devices = devices_of(read(path))
    devices.with_columns(score=devices["score"] * 1.001).write_parquet(path / "devices.parquet")
    found = verify(seal(path)).disagreement
    assert found is not None
    assert found.field == "score"


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
        (["check", POLICY], 0, "pass"),
        (["check", "oort"], 0, "pass"),
        (["check", METRIC], 0, "the form, the range and the state"),
        (["check", ARRIVALS], 0, "the same run comes to the same"),
        (["check", BUFFER], 0, "holds what came and has not left"),
        (["check", METRIC, "--kind", "policy"], 2, "is not a class; it must be one derived from feelstream.Policy"),
        (["check", "uniform"], 2, "--kind arrivals or --kind frequency"),
        (["check", "uniform", "--kind", "frequency"], 0, "goes on the same from a stored state"),
        (["check", "uniform", "--kind", "colour"], 2, "'colour' is not known; allowed: energy law, cost"),
        (["check", "broken.py:Broken"], 1, "FAIL"),
    ],
    ids=lambda value: " ".join(Path(word).name for word in value) if isinstance(value, list) else None,
)
def test_check_command(words: list[str], code: int, says: str, feelstream: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "import numpy as np\n"
        "from feelstream import Decision, Policy\n"
        "class Broken(Policy):\n"
        "    def select(self, state, observation, rng):\n"
        "        return Decision(np.arange(self.size), observation.plan(self.size))\n"
    )
    ended, out, err = feelstream(*words)
    assert ended == code, err
    assert says in out + err
    assert "Traceback" not in err
