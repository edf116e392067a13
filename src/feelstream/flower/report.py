"""Reports: what a device tells the server about itself, and what the server accepts of it.

On the wire a report is one Flower ConfigRecord under the key "feelstream", with the device's name in it. It is no
MetricRecord, since Flower's strategies want exactly one of those in a reply: the app's own. What the server tells a
device is a MetricRecord "feelstream.server", since Flower's client-side modifiers want exactly one ConfigRecord in a
message. A report holds only the device's own numbers, so one device cannot spoil what is known of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import isclose
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict
from numpy.typing import NDArray

from feelstream.columns import MEASURED
from feelstream.errors import FeelstreamError
from feelstream.model.physics import ratio
from feelstream.scenario import Scenario

REPORT, SERVER = "feelstream", "feelstream.server"
MODS = "feelstream.mods"  # records that are there only for modifiers of a whole ClientApp, which want one of each kind
QUERY = "query.feelstream"  # the message type; a ClientApp answers it with @app.query("feelstream")
MOST_SAMPLES = 2**31 - 1  # label counts are kept in 32 bits
MOST_JOULES = 1e6  # no device spends a megajoule on one round
LEAST_FADING = 1e-18  # times the worst mean gain; under Rayleigh fading the chance of less is 1e-18
MOST_FADING = 1e3  # times the best mean gain; under Rayleigh fading the chance of that is exp(−1000)
PRIORITIES = (1e-9, 1000.0)  # as in a scenario
MOST_LETTERS = 120  # of a text in a report
MOST_LOSSES = 1_000_000  # of the samples that a device draws in one round

Counts = NDArray[np.int32]


class ReportError(FeelstreamError):
    """A report or an update that cannot be accepted; the message says why."""


@dataclass(frozen=True)
class DeviceReport:
    """What a device says of itself in one round. Sizes follow from the counts, so they cannot contradict them.

    stored_labels, fresh_labels: int32 (m,), label counts of S_k(t) and B_k(t); where nothing is ever deleted, fresh may
    be None: the server knows what it has used. f_hz: its CPU frequency; beta: its mean
    channel gain. After training also: gain, the channel gain found, and what the round has cost as far as the device
    can measure it (None: the server takes the model's value).
    """

    stored_labels: Counts
    fresh_labels: Counts | None
    f_hz: float
    beta: float
    gain: float | None = None
    t_cmp_s: float | None = None
    e_cmp_j: float | None = None
    t_tr_s: float | None = None
    e_tr_j: float | None = None
    losses: NDArray[np.float32] | None = None  # training losses of the drawn samples, in order
    priority: float | None = None  # factor on the importance of its data, as the node states it
    meter: str | None = None  # what measures its energy, or why nothing does
    held_f_hz: bool | None = None  # whether it trained at the frequency that the policy chose
    unusable: tuple[str, ...] = field(default=(), metadata={"travels": False})  # measurements that cannot be true

    def to_record(self, name: str) -> ConfigRecord:
        """The report of the device `name` as it travels."""
        record = ConfigRecord({"name": name})
        for part in _travelling():
            value = getattr(self, part)
            if isinstance(value, str | bool):
                record[_wire(part)] = value
            elif value is not None:
                record[_wire(part)] = value.tolist() if isinstance(value, np.ndarray) else float(value)
        return record


def _wire(field: str) -> str:
    """Flower spells keys with hyphens."""
    return field.replace("_", "-")


def _travelling() -> list[str]:
    return [part.name for part in fields(DeviceReport) if part.metadata.get("travels", True)]


FIELDS = {_wire(name) for name in _travelling()} | {"name"}


def device_name(content: RecordDict) -> str:
    """Who sent a message; ReportError if it does not say."""
    name = _record(content).get("name")
    if not isinstance(name, str) or not name:
        raise ReportError("its report carries no device name")
    return name


def fields_of(content: RecordDict) -> dict[str, Any]:
    """The report in a message as it came; ReportError if there is none."""
    return dict(_record(content).items())


def _record(content: RecordDict) -> ConfigRecord:
    record = content.get(REPORT)
    if not isinstance(record, ConfigRecord):
        raise ReportError(f"it carries no report (a ConfigRecord '{REPORT}')")
    return record


@dataclass(frozen=True)
class Bounds:
    """What can be true of any device in this scenario."""

    classes: int
    frequency_hz: tuple[float, float]
    gain: tuple[float, float]
    round_s: float
    fixed_gain: bool  # a device has one mean gain for the whole run
    most_held: int | None  # samples
    never_deletes: bool
    empties_on_use: bool
    since_use: bool

    @classmethod
    def of(cls, scenario: Scenario, classes: int) -> Bounds:
        buffer, (low_db, high_db) = scenario.data.buffer, scenario.gain_range_db
        return cls(
            classes=classes,
            frequency_hz=scenario.frequency_range_hz,
            gain=(ratio(low_db), ratio(high_db)),
            round_s=scenario.system.round_s,
            fixed_gain=scenario.world.mobility.fixed,
            most_held=buffer.most_held,
            never_deletes=buffer.keeps and not buffer.empties_on_use,
            empties_on_use=buffer.empties_on_use,
            since_use=scenario.data.fresh == "since_use",
        )

    def read(self, content: RecordDict) -> DeviceReport:
        """The report in a message, if every number in it is possible; otherwise ReportError says which is not."""
        record = fields_of(content)
        if not record.keys() <= FIELDS:
            stranger = next(key for key in record if key not in FIELDS)
            raise ReportError(f"'{stranger[:40]}' is not a field of a report")
        stored = self._counts(record, "stored_labels")
        fresh = self._counts(record, "fresh_labels") if "fresh-labels" in record else None
        if fresh is None and not self.never_deletes:
            raise ReportError("fresh-labels is missing, and needed where samples are deleted")
        if fresh is not None and (fresh > stored).any():
            raise ReportError("it has more fresh samples of a label than it stores")
        if self.most_held is not None and stored.sum(dtype=np.int64) > self.most_held:
            raise ReportError(f"it stores more than the buffer's {self.most_held} samples")
        measured, unusable = _measurements(record)
        return DeviceReport(
            stored_labels=stored,
            fresh_labels=fresh,
            f_hz=_needed(record, "f_hz", self.frequency_hz),
            beta=_needed(record, "beta", self.gain),
            gain=self._gain(record),
            losses=_losses(record),
            priority=_number(record, "priority", PRIORITIES),
            meter=_text(record, "meter"),
            held_f_hz=_truth(record, "held_f_hz"),
            unusable=unusable,
            **measured,
        )

    def completed(
        self, report: DeviceReport, known: DeviceReport | None, age: int, used_labels: Counts
    ) -> DeviceReport:
        """The report with its fresh counts, unless it contradicts what is known of the device (ReportError).

        known: what was accepted last, `age` rounds ago (0: of this very round); used_labels: its part of X.
        """
        stored = report.stored_labels
        before = known.stored_labels if known is not None else np.zeros_like(stored)
        if known is not None and self.fixed_gain and not isclose(report.beta, known.beta, rel_tol=1e-9):
            raise ReportError(
                f"its mean gain changed from {known.beta:.6g} to {report.beta:.6g}, and is fixed for a run"
            )
        if self.never_deletes and (stored < before).any():
            raise ReportError("its counts shrank, but nothing is ever deleted from the buffers of this scenario")
        if known is not None and age == 0:
            same = (stored == before).all()
            if not same or (report.fresh_labels is not None and (report.fresh_labels != known.fresh_labels).any()):
                raise ReportError("its counts changed within the round")
            return replace(report, fresh_labels=known.fresh_labels)
        if self.never_deletes and self.since_use:
            return replace(report, fresh_labels=_agreed(report, stored - used_labels, "those already used"))
        if self.never_deletes and (report.fresh_labels is None or age == 1):
            return replace(report, fresh_labels=_agreed(report, stored - before, "those it stored the round before"))
        if self.empties_on_use and self.since_use:
            return replace(report, fresh_labels=_agreed(report, stored, "none, since what was used is deleted"))
        return report

    def _gain(self, record: Mapping[str, Any]) -> float | None:
        """The gain of the round: none at all (0), or one from which a finite time follows."""
        least = 0.0 if record.get("gain") == 0 else LEAST_FADING * self.gain[0]
        return _number(record, "gain", (least, MOST_FADING * self.gain[1]))

    def _counts(self, record: Mapping[str, Any], name: str) -> Counts:
        values = record.get(_wire(name))
        if not isinstance(values, list) or len(values) != self.classes:
            found = f"a list of {len(values)}" if isinstance(values, list) else f"{values!r:.40}"
            raise ReportError(f"{_wire(name)} must be a list of {self.classes} counts, not {found}")
        if not all(type(value) is int and 0 <= value <= MOST_SAMPLES for value in values):
            wrong = next(v for v in values if type(v) is not int or not 0 <= v <= MOST_SAMPLES)
            raise ReportError(f"{_wire(name)} holds {wrong!r:.40}, which is not a count of samples")
        counts = np.array(values, np.int64)
        if counts.sum() > MOST_SAMPLES:
            raise ReportError(f"{_wire(name)} adds up to more than {MOST_SAMPLES} samples")
        return counts.astype(np.int32)


def _agreed(report: DeviceReport, fresh: Counts, less: str) -> Counts:
    if report.fresh_labels is not None and (report.fresh_labels != fresh).any():
        raise ReportError(f"its fresh samples are not those it stores less {less}")
    return fresh


def _number(record: Mapping[str, Any], name: str, limits: tuple[float, float]) -> float | None:
    value = record.get(_wire(name))
    if value is None:
        return None
    # Rounding on the way must not push a value out of a range it lies at the edge of. Python's own floats are compared
    # exactly with whole numbers of any size; NumPy's raise OverflowError.
    low, high = float(limits[0] * (1 - 1e-9)), float(limits[1] if limits[1] > 1e300 else limits[1] * (1 + 1e-9))
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ReportError(f"{_wire(name)} must lie between {limits[0]:.6g} and {limits[1]:.6g}, not {value!r:.40}")
    return float(value)


def _measurements(record: Mapping[str, Any]) -> tuple[dict[str, float | None], tuple[str, ...]]:
    """What the device measured, and why some of it cannot be true: a broken meter costs no device its update."""
    values: dict[str, float | None] = {}
    unusable = []
    for name in MEASURED:
        try:
            values[name] = _number(record, name, (0.0, MOST_JOULES if name[0] == "e" else np.finfo(float).max))
        except ReportError as problem:
            unusable.append(str(problem))
    return values, tuple(unusable)


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(_wire(name))
    if value is not None and not (isinstance(value, str) and len(value) <= MOST_LETTERS and value.isprintable()):
        raise ReportError(f"{_wire(name)} must be a text of at most {MOST_LETTERS} letters, not {value!r:.40}")
    return value


def _truth(record: Mapping[str, Any], name: str) -> bool | None:
    value = record.get(_wire(name))
    if value is not None and not isinstance(value, bool):
        raise ReportError(f"{_wire(name)} must be true or false, not {value!r:.40}")
    return value


def _needed(record: Mapping[str, Any], name: str, limits: tuple[float, float]) -> float:
    value = _number(record, name, limits)
    if value is None:
        raise ReportError(f"{_wire(name)} is missing")
    return value


def _losses(record: Mapping[str, Any]) -> NDArray[np.float32] | None:
    values = record.get("losses")
    if values is None:
        return None
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise ReportError("losses must be a list of numbers")
    if len(values) > MOST_LOSSES:
        raise ReportError(f"losses holds more than {MOST_LOSSES} numbers")
    losses = np.array(values, np.float64)
    if not (losses >= 0).all() or (losses > np.finfo(np.float32).max).any():
        raise ReportError("losses holds a number that is negative or not finite")
    return losses.astype(np.float32)
