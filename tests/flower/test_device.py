"""The client's helper: what it tells, what it keeps, what it measures and what it hides."""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from deployed_clients import at_node, told
from flwr.app import Message, MetricRecord, RecordDict

from feelstream.errors import FeelstreamError
from feelstream.flower import Device, meters
from feelstream.flower.device import DeviceError, NoisyCounts
from feelstream.flower.wire import SERVER

HELD = [4, 0, 6]


def test_defaults_come_from_the_node_and_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "cpu_frequency_hz", lambda: None)
    device = Device(at_node(), told(), HELD)
    assert (device.name, device.f_hz, device.beta) == ("2", 1e9, 1.0)
    named = Device(at_node(**{"device-name": "pump", "beta": 2.0}), told(), HELD)
    assert (named.name, named.beta) == ("pump", 2.0)


def test_a_reading_stays_within_what_the_server_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "cpu_frequency_hz", lambda: 3.6e9)
    assert Device(at_node(), told(), HELD).f_hz == 1e9
    monkeypatch.setattr(meters, "cpu_frequency_hz", lambda: 5e8)
    assert Device(at_node(), told(), HELD).f_hz == 5e8


def test_the_first_message_of_a_round_fixes_the_counts() -> None:
    node = at_node()
    Device(node, told(), HELD)
    assert Device(node, told(), [9, 9, 9]).stored_labels.tolist() == HELD
    assert Device(node, told(round=2), [9, 9, 9]).stored_labels.tolist() == [9, 9, 9]


def test_time_and_energy_are_measured_and_kept() -> None:
    readings = iter([10.0, 12.5])
    node = at_node()
    device = Device(node, told(), HELD, meter=lambda: next(readings))
    with device.training():
        sum(range(1000))
    report = device.report(t_tr_s=0.5, e_tr_j=0.25)
    assert report.e_cmp_j == 2.5
    assert report.t_cmp_s is not None
    assert report.t_cmp_s > 0
    assert (report.t_tr_s, report.e_tr_j) == (0.5, 0.25)
    device.answer()
    assert node.state.metric_records["feelstream"]["e-cmp-j"] == 2.5


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        ([OSError("no such counter")], "OSError: no such counter"),
        ([5.0, 1.0], "from 5 J to 1 J"),
        ([0.0, np.nan], "nan"),
    ],
    ids=["raises", "backwards", "no number"],
)
def test_a_meter_that_fails_costs_no_update(readings: list[Any], reason: str) -> None:
    shown = iter(readings)

    def meter() -> float:
        value = next(shown, 0.0)
        if isinstance(value, Exception):
            raise value
        return value

    device = Device(at_node(), told(), HELD, meter=meter)
    assert device.meter == "meter"
    with device.training():
        pass
    report = device.report()
    assert report.e_cmp_j is None
    assert report.t_cmp_s is not None
    assert report.meter is not None
    assert "the meter failed" in report.meter
    assert reason in report.meter


def test_without_a_meter_the_energy_is_left_to_the_model() -> None:
    device = Device(at_node(), told(), HELD, meter=None)
    with device.training():
        pass
    assert device.report().e_cmp_j is None


def test_under_any_other_strategy_it_is_harmless() -> None:
    node = at_node()
    device = Device(node, Message(RecordDict(), 7, "train"), HELD, meter=lambda: 1 / 0)
    with device.training():
        pass
    reply = device.reply(RecordDict({"metrics": MetricRecord({"loss": 1.0})}))
    assert list(reply.content) == ["metrics"]
    assert not node.state


def test_what_the_app_must_give_is_said() -> None:
    with pytest.raises(DeviceError, match="must give `fresh`"):
        Device(at_node(), told(deletes=True), HELD)
    nameless = at_node()
    nameless.node_config.clear()
    with pytest.raises(DeviceError, match="has no name"):
        Device(nameless, told(), HELD)
    with pytest.raises(DeviceError, match="noise on label counts"):
        Device(at_node(), told(deletes=True), HELD, fresh=HELD, epsilon=1.0)
    with pytest.raises(DeviceError, match="greater than 0"):
        Device(at_node(), told(), HELD, epsilon=0.0)


def test_rapl_counts_on_when_its_counter_starts_over(tmp_path: Path) -> None:
    assert meters.rapl(tmp_path) is None
    (tmp_path / "max_energy_range_uj").write_text("10000000\n")
    counter = tmp_path / "energy_uj"
    counter.write_text("9000000\n")
    meter = meters.rapl(tmp_path)
    assert meter is not None
    counter.write_text("9500000\n")
    assert meter() == pytest.approx(0.5)
    counter.write_text("1000000\n")
    assert meter() == pytest.approx(2.0)


def test_noisy_counts_only_grow_and_centre_on_the_truth() -> None:
    rng = np.random.default_rng(1)
    true, state, seen = np.zeros(4, np.int64), NoisyCounts.empty(4), []
    for _ in range(50):
        true = true + np.array([3, 0, 10, 1])
        state = state.tell(true, 2.0, rng)
        seen.append(state.released)
    assert (np.diff(seen, axis=0) >= 0).all()
    # 50 additions of Lap(1/2) have the deviation sqrt(50·2·(1/2)²) = 5; the greatest of a walk is a few of those.
    assert np.abs(state.released - true).max() < 30
    assert (state.released != true).any()


def test_each_release_has_laplace_noise_of_the_stated_scale() -> None:
    rng = np.random.default_rng(2)
    true = np.full(20_000, 100, np.int64)
    noise = NoisyCounts.empty(len(true)).tell(true, 0.5, rng).total - 100
    # Of Lap(b) the mean magnitude is b, here 1/ε = 2, known to 2/sqrt(20000) = 0.014.
    assert np.abs(noise).mean() == pytest.approx(2.0, abs=0.06)
    assert np.median(noise) == pytest.approx(0.0, abs=0.06)


def test_noise_is_drawn_once_for_each_round() -> None:
    node = at_node()
    first = Device(node, told(), HELD, epsilon=0.1).stored_labels
    again = Device(node, told(), HELD, epsilon=0.1).stored_labels
    assert first.tolist() == again.tolist()


def test_stated_power_times_seconds_is_the_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(meters, "perf_counter", lambda: next(clock))
    device = Device(at_node(**{"power-w": 8.0}), told(), HELD)
    with device.training():
        pass
    assert device.report().e_cmp_j == 8.0 * 2.5
    with pytest.raises(FeelstreamError, match="power-w must be"):
        Device(at_node(**{"power-w": -1}), told(), HELD)


def test_labels_may_be_given_in_place_of_counts() -> None:
    assert Device(at_node(), told(), labels=[2, 0, 2]).stored_labels.tolist() == [1, 0, 2]
    wrongs: list[dict[str, Any]] = [{}, {"held": HELD, "labels": [0]}]
    wrongs += [{"labels": labels} for labels in ([3], [-1], [[1]])]
    for wrong in wrongs:
        with pytest.raises(DeviceError, match="labels"):
            Device(at_node(), told(), **wrong)


def test_the_chosen_frequency_is_applied_while_training(tmp_path: Path) -> None:
    limits = [tmp_path / f"cpu{number}" / "cpufreq" / "scaling_max_freq" for number in range(2)]
    for file in limits:
        file.parent.mkdir(parents=True)
        file.write_text("3600000\n")
    asked = told()
    asked.content.metric_records[SERVER]["chosen-f-hz"] = 5e8
    device = Device(at_node(), asked, HELD, set_f_hz=lambda f_hz: meters.at_frequency(f_hz, tmp_path))
    assert device.chosen_f_hz == 5e8
    with device.training():
        assert [file.read_text() for file in limits] == ["500000\n"] * 2
    assert [file.read_text() for file in limits] == ["3600000\n"] * 2
    with meters.at_frequency(5e8, tmp_path / "none") as applied:
        assert not applied
    assert Device(at_node(), told(), HELD).chosen_f_hz is None


def test_a_graphics_card_counts_in_millijoules(monkeypatch: pytest.MonkeyPatch) -> None:
    card = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: 2500 + handle,
    )
    monkeypatch.setitem(sys.modules, "pynvml", card)
    meter = meters.nvml(0)
    assert meter is not None
    assert meter() == pytest.approx(2.5)
    assert meters.named("NVML")[0] == "NVML"
    monkeypatch.setitem(sys.modules, "pynvml", None)  # not installed
    assert meters.nvml() is None
    assert meters.named("nvml") == ("the model, since there is no nvml here", None)


@pytest.mark.parametrize(
    ("full", "later"),
    [
        ({"energy_now": 5_000_000}, {"energy_now": 4_990_000}),  # 10 mWh
        ({"charge_now": 500_000, "voltage_min_design": 10_000_000}, {"charge_now": 499_000}),  # 1 mAh at 10 V
    ],
)
def test_a_battery_counts_what_it_has_given(full: dict[str, int], later: dict[str, int], tmp_path: Path) -> None:
    assert meters.battery(tmp_path) is None

    def show(values: dict[str, int]) -> None:
        for name, value in values.items():
            (tmp_path / name).write_text(f"{value}\n")

    show(full)
    meter = meters.battery(tmp_path)
    assert meter is not None
    before = meter()
    show(later)
    assert meter() - before == pytest.approx(36.0)


def test_busy_cores_cost_their_watts(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")
    monkeypatch.setattr(meters, "perf_counter", lambda: 100.0)
    meter = meters.busy_cores(core_w=3.0, idle_w=0.5)
    assert meter is not None
    before, cpu_s = meter(), process_time()
    while process_time() - cpu_s < 0.05:
        pass
    assert 0.1 < meter() - before < 3.0
    added = meters.together(meter, None, lambda: 7.0)
    assert added is not None
    assert added() >= before + 7.0
    assert meters.together(None) is None


def test_a_meter_that_nobody_knows_is_refused() -> None:
    node = at_node()
    node.node_config["meter"] = "rapl+dynamo"
    with pytest.raises(FeelstreamError, match=r"rapl, nvml, battery, or several joined by \+, not 'rapl\+dynamo'"):
        Device(node, told(), HELD)
