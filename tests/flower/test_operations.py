"""What an operator meets: a lock that a dead server's process still holds, callbacks, and fields that nobody set."""

from __future__ import annotations

import json
import logging
import re
import runpy
import sys
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from deployed_clients import CLASSES, FAST, client, grid_of, growing, model, silent_in_training
from flwr.app import MetricRecord

import feelstream as fs
from feelstream.callbacks import CONTENT_TYPE, OpenMetrics
from feelstream.errors import BusyError, FeelstreamError
from feelstream.flower import ScheduledFedAvg
from feelstream.flower.directory import Notices
from feelstream.policies import Balanced, Lyapunov
from feelstream.run.files import sole_writer, usable_directory


def strategy(*overrides: str, **options: Any) -> ScheduledFedAvg:
    return ScheduledFedAvg(fs.preset("tiny", [*FAST, *overrides]), classes=CLASSES, **options)


def test_a_server_waits_for_the_lock_of_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as held:
        held.enter_context(sole_writer(usable_directory(tmp_path / "run")))
        with pytest.raises(BusyError):
            strategy(out=tmp_path / "run", wait_s=0.0).start(grid_of(client(growing)), model(), num_rounds=1)
        monkeypatch.setattr("feelstream.flower.play.sleep", lambda seconds: held.close())
        strategy(out=tmp_path / "run").start(grid_of(client(growing)), model(), num_rounds=1)
    assert fs.verify(tmp_path / "run").ok


def test_callbacks_are_informed_and_a_restart_goes_on(tmp_path: Path) -> None:
    class Notes(fs.Callback):
        def __init__(self) -> None:
            self.rows, self.ends = [], 0

        def on_round(self, row: Any) -> None:
            self.rows.append(row)

        def on_end(self, run: fs.Run) -> None:
            self.ends += 1

    first, second = Notes(), Notes()
    strategy(out=tmp_path / "run", callbacks=[first]).start(grid_of(client(growing)), model(), num_rounds=2)
    strategy(out=tmp_path / "run", callbacks=[second]).start(grid_of(client(growing)), model(), num_rounds=3)
    rounds = fs.read(tmp_path / "run").rounds
    assert [row["energy_mean_cum_j"] for row in first.rows + second.rows] == rounds["energy_mean_cum_j"].to_list()
    assert (first.ends, second.ends) == (1, 1)


def test_a_callback_that_raises_ends_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(fs.Callback):
        def on_round(self, row: Any) -> None:
            raise ValueError("no such tracker")

    strategy(out=tmp_path / "run", callbacks=[Broken()]).start(grid_of(client(growing)), model(), num_rounds=2)
    assert fs.read(tmp_path / "run").rounds.height == 2
    told = [r for r in caplog.records if "the callback Broken failed: ValueError: no such tracker" in r.getMessage()]
    assert [r.levelname for r in told] == ["ERROR", "DEBUG"]


def collected(metrics: OpenMetrics, **options: Any) -> dict[str, dict[str, float]]:
    """The series of a federation of two rounds, one of whose two devices never replies, by metric and labels."""
    evaluate = lambda t, arrays: MetricRecord({"loss": 1.0, "accuracy": 0.5})  # noqa: E731
    try:
        strategy(callbacks=[metrics], seed=4, **options).start(
            grid_of(client(growing), silent_in_training(client(growing))), model(), num_rounds=2, evaluate_fn=evaluate
        )
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
            page = answer.read().decode()
            assert answer.headers["Content-Type"] == CONTENT_TYPE
    finally:
        metrics.close()
    assert page.endswith("# EOF\n")
    series: dict[str, dict[str, float]] = {}
    family, kind = "", ""
    for line in page.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            assert family not in series
            continue
        found = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)+)\} (\S+)', line)
        assert found, line
        assert found[1] == (f"{family}_total" if kind == "counter" else family)
        series.setdefault(found[1], {})[found[2]] = float(found[3])
    return series


def test_the_last_round_can_be_collected_on_this_machine() -> None:
    metrics = OpenMetrics()
    try:
        with pytest.raises(HTTPError):
            urlopen(f"http://127.0.0.1:{metrics.port}/elsewhere")
        with pytest.raises(FeelstreamError, match="cannot be used for metrics"):
            OpenMetrics(metrics.port)
    finally:
        metrics.close()


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The lines for programs."""
    return [json.loads(line.message) for line in caplog.records if line.name == "flwr.feelstream.rounds"]


def test_metrics_tell_what_an_operator_needs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="flwr.feelstream.rounds"):
        seen = collected(OpenMetrics())
    lines = told(caplog)
    labels = 'policy="lyapunov",seed="4"'
    assert seen["feelstream_round"] == {labels: 2}
    assert seen["feelstream_round_seconds"] == {labels: lines[-1]["seconds"]}
    assert seen["feelstream_reliability_min"] == {labels: 0.5}
    assert seen["feelstream_failed_total"] == {labels: sum(len(line["failed"]) for line in lines)}
    assert seen["feelstream_late_total"] == {labels: 0}
    for name in ("energy", "wasted"):
        assert seen[f"feelstream_{name}_joules_total"][labels] == sum(line[f"{name}_j"] for line in lines) > 0
    assert "feelstream_sim_time_s" not in seen
    assert not any("device" in name for name in seen)


def test_devices_have_series_of_their_own_whatever_they_call_themselves() -> None:
    names = ["0", "1", 'north"} 1\nfeelstream_round{a="', "back\\slash"]
    seen = collected(OpenMetrics(devices=True), names=names)
    run = 'policy="lyapunov",seed="4",device='
    assert (
        seen["feelstream_device_failed_total"][f'{run}"1"'] == seen["feelstream_failed_total"][run[: -len(",device=")]]
    )
    assert seen["feelstream_device_reliability"][f'{run}"1"'] == 0.5
    for name, whole in (("device_energy_joules_total", "energy_joules_total"), ("device_failed_total", "failed_total")):
        each = seen[f"feelstream_{name}"]
        assert list(each) == [
            f'{run}"0"',
            f'{run}"1"',
            rf'{run}"north\"}} 1\nfeelstream_round{{a=\""',
            rf'{run}"back\\slash"',
        ]
        assert sum(each.values()) == pytest.approx(sum(seen[f"feelstream_{whole}"].values()))
    assert max(seen["feelstream_device_queue_j"].values()) == pytest.approx(
        max(seen["feelstream_queue_max_j"].values())
    )


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    text = (Path(__file__).parents[2] / "examples" / "grafana.json").read_text(encoding="utf-8")
    panels = json.loads(text)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    asked, seen = set(re.findall(r"feelstream_\w+", text)), collected(OpenMetrics(devices=True))
    assert asked <= seen.keys()
    since = (
        "failed_total",
        "late_total",
        "wasted_joules_total",
        "round_seconds",
        "reliability_min",
        "device_failed_total",
    )
    assert asked >= {f"feelstream_{name}" for name in since}


def test_every_round_has_a_line_for_programs(caplog: pytest.LogCaptureFixture) -> None:
    grid = grid_of(client(growing), silent_in_training(client(growing)))
    with caplog.at_level(logging.INFO, logger="flwr.feelstream.rounds"):
        strategy().start(grid, model(), num_rounds=2)
    lines = told(caplog)
    assert [line["round"] for line in lines] == [1, 2]
    assert lines[0]["transmitted"] == ["0"]
    assert lines[0]["failed"] == {"1": "no reply within the deadline of 4 s"}
    assert lines[0]["meters"] == {"the model": 2}
    assert lines[1]["reliability_min"] == 0.5


def test_a_round_is_one_line_and_trouble_is_told_once_for_all_devices(caplog: pytest.LogCaptureFixture) -> None:
    odd = client(growing, device={"meter": lambda: 1.0, "f_hz": 1.2e9}, after={"e_tr_j": -1.0})
    grid = grid_of(*[silent_in_training(odd)] * 2, *[odd] * 2)
    grid.add(99, {"partition-id": 99}, odd)
    with caplog.at_level(logging.INFO, logger="flwr.feelstream"):
        strategy("policy.size=4", "policy.V=inf", "system.energy_budget_j=5.0").start(grid, model(), num_rounds=4)
    ours = [record for record in caplog.records if record.name.startswith("flwr.feelstream")]
    assert [record.name for record in ours if record.levelno == logging.INFO] == ["flwr.feelstream.rounds"] * 4
    told = [record.getMessage() for record in ours if record.levelno > logging.INFO]
    assert [line for line in told if "energy" not in line] == [
        "round 1: report refused: there is no device '99' in this run (node 99)",
        "round 1: measurement left aside: e-tr-j must lie between 0 and 1e+06, not -1.0 (devices 2, 3)",
        "round 1: no update: no reply within the deadline of 4 s (devices 0, 1)",
    ]


def test_too_few_nodes_to_evaluate_on_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="flwr.feelstream"):
        strategy(fraction_evaluate=1.0, min_evaluate_nodes=2).start(grid_of(client(growing)), model(), num_rounds=3)
    assert sum("too few to evaluate on; 2 are needed" in line for line in caplog.messages) == 1


def test_a_line_has_the_most_common_reasons_and_forgets_who_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices(noun="node")
    for here in ([], [7], [8]):
        notices.forget(here)
        for node, reason in enumerate(["rare", *"aabbcc", "no name", "late"]):
            notices.add(1, "refused", node, reason)
        notices.tell(1)
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "round 1: refused: a (nodes 1, 2); b (nodes 3, 4); c (nodes 5, 6); and 3 other reasons",
        "round 1: refused: a (nodes 1, 2); b (nodes 3, 4); c (nodes 5, 6); and 2 other reasons",  # not of node 7
        "round 1: refused: a (nodes 1, 2); b (nodes 3, 4); c (nodes 5, 6); and 2 other reasons",
    ]


@pytest.mark.parametrize(
    ("measured", "warning"),
    [
        ({}, "no device measures its energy"),
        ({"e_cmp_j": 6.1}, "times the energy of the scenario's model"),
        ({"e_cmp_j": 0.6}, ""),
    ],
    ids=["no meter", "far off", "as planned"],
)
def test_the_first_round_warns_of_a_model_that_is_not_measured_or_far_off(
    measured: dict[str, float], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="flwr.feelstream"):
        strategy("system.energy_budget_j=5.0").start(grid_of(client(growing, after=measured)), model(), num_rounds=3)
    found = [line for line in caplog.messages if ("energy" in line and "charged" not in line) or "no device" in line]
    assert len(found) == bool(warning)
    assert all(warning in line for line in found)


def test_the_example_for_telemetry_sets_its_gauges(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[str, float] = {}
    meter = SimpleNamespace(create_gauge=lambda name: SimpleNamespace(set=lambda value: shown.update({name: value})))
    api = ModuleType("opentelemetry")
    api.metrics = SimpleNamespace(get_meter=lambda name: meter)  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "opentelemetry", api)
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "telemetry.py"))
    strategy(callbacks=[example["Telemetry"]()]).start(grid_of(client(growing)), model(), num_rounds=2)
    assert shown["feelstream.round"] == 2
    assert shown["feelstream.transmitted"] == 1
    assert "feelstream.accuracy" not in shown  # nothing was evaluated


DEVICES: dict[str, Any] = {"system": {"devices": 4, "round_s": 60.0, "energy_budget_j": 5.0}}


def policy_of(scenario: Any, policy: Any = None) -> Any:
    return ScheduledFedAvg(scenario, policy, classes=CLASSES).scenario.policy


def test_what_a_table_leaves_unset_suits_any_joules() -> None:
    assert policy_of(DEVICES) == Lyapunov(V="auto")
    assert policy_of(DEVICES, "balanced") == Balanced(price="auto")


def test_what_is_said_stands() -> None:
    table = {**DEVICES, "policy": {"name": "lyapunov", "V": 3.0}}
    assert policy_of(table) == Lyapunov(V=3.0)
    assert policy_of({**DEVICES, "policy": {"name": "balanced", "price": 2.0}}) == Balanced(price=2.0)
    assert policy_of(DEVICES, Balanced()) == Balanced()
    whole = fs.preset("tiny", FAST)
    assert policy_of(whole) == whole.policy
    assert len(whole.population.energy_budget_j) == 4  # a scenario that was used before can be given another policy
    assert policy_of(whole, Lyapunov(V=2.0)) == Lyapunov(V=2.0)


@pytest.mark.parametrize(("budget_j", "warns"), [(0.5, True), (5.0, False)])
def test_budgets_of_another_order_are_told_in_the_first_round(
    budget_j: float, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Two turns of 20 J a round; four devices are granted 2 J together, or 20 J."""
    grid = grid_of(*[client(growing, after={"e_cmp_j": 20.0, "t_cmp_s": 1.0})] * 4)
    table = {**DEVICES, "system": {**DEVICES["system"], "energy_budget_j": budget_j}}
    with caplog.at_level(logging.WARNING):
        ScheduledFedAvg(table, classes=CLASSES).start(grid, model(), num_rounds=2)
    told = [r.getMessage() for r in caplog.records if "the budgets grant" in r.getMessage()]
    assert len(told) == warns
    assert all("a turn takes 20 J" in each and "grant 1 J" in each for each in told)


def test_budgets_are_compared_with_the_models_turns_where_nothing_is_measured(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        strategy("system.energy_budget_j=0.01").start(grid_of(*[client(growing)] * 4), model(), num_rounds=2)
    told = [r.getMessage() for r in caplog.records if "the budgets grant" in r.getMessage()]
    computing_j = 1e-27 * 419328000 * 1.2e9**2
    assert len(told) == 1
    assert f"a turn takes {computing_j:.3g} J" in told[0]
