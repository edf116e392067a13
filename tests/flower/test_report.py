"""Reports: what the server accepts, and why it does not."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, MetricRecord, RecordDict

import feelstream as fs
from feelstream.flower import DeviceReport, ReportError, Scheduler
from feelstream.flower.wire import REPORT, Bounds, device_name

CLASSES = 3
GOOD = DeviceReport(np.array([5, 0, 2], np.int32), np.array([5, 0, 2], np.int32), f_hz=1e9, beta=1.0)


def bounds(*overrides: str) -> Bounds:
    return Bounds.of(fs.preset("tiny", overrides), CLASSES)


def content(**changes: Any) -> RecordDict:
    record = GOOD.to_record("0")
    for key, value in changes.items():
        key = key.replace("_", "-")
        if value is None:
            del record[key]
        else:
            record[key] = value
    return RecordDict({REPORT: record})


def test_a_report_survives_the_wire() -> None:
    whole = replace(GOOD, gain=0.5, t_cmp_s=1.0, e_cmp_j=2.0, t_tr_s=3.0, e_tr_j=4.0, losses=np.ones(3, np.float32))
    packed = RecordDict({REPORT: whole.to_record("pump 7")})
    read, unusable = bounds().read(packed)
    assert not unusable
    assert device_name(packed) == "pump 7"
    for field in ("f_hz", "beta", "gain", "t_cmp_s", "e_cmp_j", "t_tr_s", "e_tr_j"):
        assert getattr(read, field) == getattr(whole, field)
    for field in ("stored_labels", "fresh_labels", "losses"):
        np.testing.assert_array_equal(getattr(read, field), getattr(whole, field))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stored_labels": [5, 0]}, "a list of 3 counts"),
        ({"stored_labels": 7}, "a list of 3 counts"),
        ({"stored_labels": None}, "stored-labels is missing"),
        ({"stored_labels": [5, -1, 2]}, "not a count of samples"),
        ({"stored_labels": [5.0, 0.0, 2.0]}, "not a count of samples"),
        ({"stored_labels": [2**40, 0, 2]}, "not a count of samples"),
        ({"stored_labels": [2**31 - 1, 2**31 - 1, 2]}, "adds up to more"),
        ({"fresh_labels": [6, 0, 2]}, "more fresh samples"),
        ({"f_hz": math.nan}, "f-hz must lie between"),
        ({"f_hz": -1.0}, "f-hz must lie between"),
        ({"f_hz": 1e12}, "f-hz must lie between"),
        ({"f_hz": [1e9]}, "f-hz must lie between"),
        ({"f_hz": None}, "f-hz is missing"),
        ({"beta": 0.0}, "beta must lie between"),
        ({"beta": math.inf}, "beta must lie between"),
        ({"gain": -0.1}, "gain must lie between"),
        ({"gain": 1e300}, "gain must lie between"),
        ({"gain": 5e-324}, "gain must lie between"),  # P0 over it is infinite
        ({"losses": [True]}, "losses"),
        ({"meter": 3.0}, "meter must be a text"),
        ({"meter": "a\nb"}, "meter must be a text"),
        ({"losses": [math.nan]}, "losses"),
        ({"losses": 3.0}, "losses"),
    ],
)
def test_an_impossible_report_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReportError, match=reason):
        bounds().read(content(**changes))


def test_a_field_of_a_later_version_is_left_aside() -> None:
    assert bounds().read(content(favourite_colour=3.0))[0].f_hz == GOOD.f_hz


def test_no_report_and_no_name_are_refused() -> None:
    with pytest.raises(ReportError, match="no report"):
        bounds().read(RecordDict({"metrics": MetricRecord({"loss": 1.0})}))
    with pytest.raises(ReportError, match="no report"):
        device_name(RecordDict())
    with pytest.raises(ReportError, match="no device name"):
        device_name(RecordDict({REPORT: ConfigRecord()}))


def test_a_full_buffer_holds_no_more() -> None:
    fifo = bounds("data.buffer.kind=fifo", "data.buffer.capacity=6")
    with pytest.raises(ReportError, match="more than the buffer's 6"):
        fifo.read(content())


def test_fresh_counts_are_needed_where_samples_are_deleted() -> None:
    assert bounds().read(content(fresh_labels=None))[0].fresh_labels is None
    with pytest.raises(ReportError, match="fresh-labels is missing"):
        bounds("data.buffer.kind=fifo").read(content(fresh_labels=None))


def scheduler(*overrides: str) -> Scheduler:
    """One that has accepted GOOD of device 0 in round 1 and is in round 2."""
    made = Scheduler(fs.preset("tiny", overrides), CLASSES)
    made.begin()
    made.accept(0, GOOD)
    made.begin()
    return made


def counts(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("overrides", "later", "reason"),
    [
        ([], replace(GOOD, beta=1.5), "mean gain changed"),
        ([], replace(GOOD, stored_labels=counts(4, 0, 2), fresh_labels=None), "shrank"),
        ([], replace(GOOD, stored_labels=counts(9, 0, 2)), "less those already used"),
        (["data.fresh=per_round"], GOOD, "less those it stored the round before"),
        (
            ["data.buffer.kind=use_once"],
            replace(GOOD, stored_labels=counts(9, 0, 2)),
            "what was used is deleted",
        ),
    ],
)
def test_a_contradiction_is_refused_and_forgotten(overrides: list[str], later: DeviceReport, reason: str) -> None:
    server = scheduler(*overrides)
    with pytest.raises(ReportError, match=reason):
        server.accept(0, later)
    assert server.report_age[0] == 1
    np.testing.assert_array_equal(server.stored_labels[0], GOOD.stored_labels)


def test_counts_are_fixed_within_a_round() -> None:
    server = scheduler("data.buffer.kind=fifo")
    server.accept(0, GOOD)
    with pytest.raises(ReportError, match="changed within the round"):
        server.accept(0, replace(GOOD, stored_labels=counts(6, 0, 2)))


def test_counts_may_shrink_where_a_buffer_deletes() -> None:
    server = scheduler("data.buffer.kind=fifo")
    server.accept(0, DeviceReport(counts(1, 0, 0), counts(0, 0, 0), 1e9, 1.0))
    assert server.stored_labels[0].sum() == 1


def test_the_server_works_out_what_is_fresh() -> None:
    since_use, per_round = scheduler(), scheduler("data.fresh=per_round")
    since_use.used_labels[0] = counts(2, 0, 2)
    grown = DeviceReport(counts(8, 1, 2), None, 1e9, 1.0)
    since_use.accept(0, grown)
    per_round.accept(0, grown)
    assert since_use.fresh_labels[0].tolist() == [6, 1, 0]
    assert per_round.fresh_labels[0].tolist() == [3, 1, 0]


def test_an_excluded_device_is_named_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    server = scheduler()
    with caplog.at_level(logging.WARNING, logger="flwr.feelstream"):
        server.exclude(0, "it lied")
        server.notices.tell(2)
    assert caplog.messages == ["round 2: left out: it lied (device 0)"]
    assert server.schedule(np.ones(10, bool)).tolist() == []
