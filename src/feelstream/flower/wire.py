"""Messages: what server and devices tell each other, and what the server accepts of what comes. Each is checked once.

A device's report is one Flower ConfigRecord under the key "feelstream", with the device's name in it. It is no
MetricRecord, since Flower's strategies want exactly one of those in a reply: the app's own. What the server tells a
device is a MetricRecord "feelstream.server", since Flower's client-side modifiers want exactly one ConfigRecord in a
message. A report holds only the device's own numbers, so one device cannot spoil what is known of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError, ValidationInfo

from feelstream.arrays import Nested, flatten, unflatten
from feelstream.columns import MEASURED
from feelstream.errors import FeelstreamError
from feelstream.model.physics import ratio
from feelstream.scenario import Scenario

REPORT, SERVER = "feelstream", "feelstream.server"
MODS = "feelstream.mods"  # records that are there only for modifiers of a whole ClientApp, which want one of each kind
CLIPPING = "clipping_norm"  # what Flower's modifiers for differential privacy look for
FITTED = "feelstream.fitted"  # beside a question: what the server has settled for data.features
QUERY = "query.feelstream"  # the message type; a ClientApp answers it with @app.query("feelstream")
NO_REPLY = (3, 4, 5)  # codes of Flower's errors for a call that expired or whose node has left
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


# Reports


def _number(limits: Callable[[Bounds], tuple[float, float]], zero: bool = False) -> PlainValidator:
    """A number within limits that depend on the scenario; zero: 0 is allowed besides."""

    def check(value: Any, info: ValidationInfo[Bounds]) -> float:
        low, high = limits(info.context)
        # Rounding on the way must not push a value out of a range it lies at the edge of. Python's own floats are
        # compared exactly with whole numbers of any size; NumPy's raise OverflowError.
        least, most = float(low * (1 - 1e-9)), float(high if high > 1e300 else high * (1 + 1e-9))
        possible = type(value) in (int, float) and (least <= value <= most or (zero and value == 0))
        if not possible:
            raise ValueError(f"must lie between {low:.6g} and {high:.6g}, not {value!r:.40}")
        return float(value)

    return PlainValidator(check)


def _counts(values: Any, info: ValidationInfo[Bounds]) -> Counts:
    classes = info.context.classes
    if not isinstance(values, list) or len(values) != classes:
        found = f"a list of {len(values)}" if isinstance(values, list) else f"{values!r:.40}"
        raise ValueError(f"must be a list of {classes} counts, not {found}")
    wrong = [value for value in values if type(value) is not int or not 0 <= value <= MOST_SAMPLES]
    if wrong:
        raise ValueError(f"holds {wrong[0]!r:.40}, which is not a count of samples")
    if sum(values) > MOST_SAMPLES:
        raise ValueError(f"adds up to more than {MOST_SAMPLES} samples")
    return np.array(values, np.int32)


def _losses(values: Any) -> NDArray[np.float32]:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise ValueError("must be a list of numbers")
    if len(values) > MOST_LOSSES:
        raise ValueError(f"holds more than {MOST_LOSSES} numbers")
    losses = np.array(values, np.float64)
    if not (losses >= 0).all() or (losses > np.finfo(np.float32).max).any():
        raise ValueError("holds a number that is negative or not finite")
    return losses.astype(np.float32)


def _text(value: Any) -> str:
    if not (isinstance(value, str) and len(value) <= MOST_LETTERS and value.isprintable()):
        raise ValueError(f"must be a text of at most {MOST_LETTERS} letters, not {value!r:.40}")
    return value


Labels = Annotated[Counts, PlainValidator(_counts)]
Time = Annotated[float, _number(lambda bounds: (0.0, float(np.finfo(float).max)))]
Energy = Annotated[float, _number(lambda bounds: (0.0, MOST_JOULES))]


@dataclass(frozen=True)
class DeviceReport:
    """What a device says of itself in one round. Sizes follow from the counts, so they cannot contradict them.

    stored_labels, fresh_labels: int32 (m,), label counts of S_k(t) and B_k(t), or with features how many samples are in
    each cell; where nothing is ever deleted, fresh may be None: the server knows what it has used. f_hz: its CPU
    frequency; beta: its mean channel gain. After training also gain, the channel gain found, and what the round has
    cost as far as the device can measure it (None: the server takes the model's value).
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="ignore", arbitrary_types_allowed=True)

    stored_labels: Labels
    fresh_labels: Labels | None
    f_hz: Annotated[float, _number(lambda bounds: bounds.frequency_hz)]
    beta: Annotated[float, _number(lambda bounds: bounds.gain)]
    # None at all (0), or one from which a finite time follows.
    gain: (
        Annotated[float, _number(lambda of: (LEAST_FADING * of.gain[0], MOST_FADING * of.gain[1]), zero=True)] | None
    ) = None
    t_cmp_s: Time | None = None
    e_cmp_j: Energy | None = None
    t_tr_s: Time | None = None
    e_tr_j: Energy | None = None
    losses: Annotated[NDArray[np.float32], PlainValidator(_losses)] | None = None  # of the drawn samples, in order
    priority: Annotated[float, _number(lambda bounds: PRIORITIES)] | None = None  # factor on the importance of its data
    meter: Annotated[str, PlainValidator(_text)] | None = None  # what measures its energy, or why nothing does
    held_f_hz: Annotated[bool, Field(strict=True)] | None = None  # whether it trained at the frequency that was chosen
    features: Annotated[bool, Field(strict=True)] | None = None  # whether features are counted in place of labels

    def to_record(self, name: str) -> ConfigRecord:
        """The report of the device `name` as it travels: Flower spells keys with hyphens."""
        record = ConfigRecord({"name": name})
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, str | bool):
                record[_wire(part.name)] = value
            elif value is not None:
                record[_wire(part.name)] = value.tolist() if isinstance(value, np.ndarray) else float(value)
        return record


REPORTS = TypeAdapter(DeviceReport)


def _wire(field: str) -> str:
    return field.replace("_", "-")


@dataclass(frozen=True)
class Bounds:
    """What can be true of any device in this scenario."""

    classes: int  # or cells: how many counts a report has
    features: bool  # whether they are of features in place of labels
    frequency_hz: tuple[float, float]
    gain: tuple[float, float]
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
            features=scenario.data.features.reported,
            frequency_hz=scenario.frequency_range_hz,
            gain=(ratio(low_db), ratio(high_db)),
            fixed_gain=scenario.world.mobility.fixed,
            most_held=buffer.most_held,
            never_deletes=buffer.keeps and not buffer.empties_on_use,
            empties_on_use=buffer.empties_on_use,
            since_use=scenario.data.fresh == "since_use",
        )

    def read(self, content: RecordDict) -> tuple[DeviceReport, list[str]]:
        """The report in a message, if every number in it is possible; otherwise ReportError says which is not.

        And which measurements cannot be true: they are left aside, so that a broken meter costs no device its update.
        """
        found: dict[str, Any] = {"fresh_labels": None}
        found |= {key.replace("-", "_"): value for key, value in _record(content).items() if key != "name"}
        if (found.get("features") is True) != self.features:
            counted, wanted = ("labels", "features") if self.features else ("features", "labels")
            raise ReportError(f"it counts {counted}, and this run counts {wanted} (data.features)")
        unusable = []
        try:
            report = REPORTS.validate_python(found, context=self)
        except ValidationError as problem:
            wrong = {str(error["loc"][0]): _sentence(error) for error in problem.errors()}
            if not wrong.keys() <= set(MEASURED):
                raise ReportError(next(said for name, said in wrong.items() if name not in MEASURED)) from problem
            unusable = list(wrong.values())
            sound = {name: value for name, value in found.items() if name not in wrong}
            report = REPORTS.validate_python(sound, context=self)
        stored, fresh = report.stored_labels, report.fresh_labels
        if fresh is None and not self.never_deletes:
            raise ReportError("fresh-labels is missing, and needed where samples are deleted")
        if fresh is not None and (fresh > stored).any():
            raise ReportError("it has more fresh samples of a label than it stores")
        if self.most_held is not None and stored.sum(dtype=np.int64) > self.most_held:
            raise ReportError(f"it stores more than the buffer's {self.most_held} samples")
        return report, unusable

    def told(self, round: int, used_round: int, chosen_f_hz: float | None = None) -> MetricRecord:
        """What every message tells a device of the scheduler's side."""
        values = {
            "round": round, "used-round": used_round, "classes": self.classes, "deletes": int(not self.never_deletes),
            "frequency-hz": list(self.frequency_hz), "gain-range": list(self.gain),
        }  # fmt: skip
        values |= {"features": 1} if self.features else {}
        return MetricRecord(values if chosen_f_hz is None else {**values, "chosen-f-hz": chosen_f_hz})


def _sentence(error: Mapping[str, Any]) -> str:
    name = str(error["loc"][0])
    if error["type"] == "missing":
        return f"{_wire(name)} is missing"
    reason = error.get("ctx", {}).get("error", f"must be true or false, not {error['input']!r:.40}")
    return f"{_wire(name)} {reason}"


def _record(content: RecordDict) -> ConfigRecord:
    record = content.get(REPORT)
    if not isinstance(record, ConfigRecord):
        raise ReportError(f"it carries no report (a ConfigRecord '{REPORT}')")
    return record


def device_name(content: RecordDict) -> str:
    """Who sent a message; ReportError if it does not say."""
    name = _record(content).get("name")
    if not isinstance(name, str) or not name:
        raise ReportError("its report carries no device name")
    return name


def question(told: MetricRecord, fitted: MetricRecord | None = None) -> RecordDict:
    """What is asked; with a model of one number and a clipping norm, without which Flower's modifiers refuse it.

    fitted: what devices need besides to compute features.
    """
    records = {
        SERVER: told,
        MODS: ArrayRecord([np.zeros(1, np.float32)]),
        f"{MODS}.config": ConfigRecord({CLIPPING: 1.0}),
    }
    return RecordDict(records if fitted is None else {**records, FITTED: fitted})


def packed(arrays: Nested) -> MetricRecord:
    """Arrays as numbers and shapes: an ArrayRecord is what Flower's modifiers would take for a model."""
    flat = {name: np.asarray(values) + 0 for name, values in flatten(arrays).items()}  # truth values as 0 and 1
    shapes = {f"shape of {name}": list(values.shape) for name, values in flat.items()}
    return MetricRecord({name: values.ravel().tolist() for name, values in flat.items()} | shapes)  # type: ignore[arg-type]


def unpacked(record: MetricRecord) -> Nested:
    shapes = {name.removeprefix("shape of "): shape for name, shape in record.items() if name.startswith("shape of ")}
    return unflatten({name: np.array(record[name]).reshape(shape) for name, shape in shapes.items()})  # type: ignore[arg-type]


def nobody_replied(message: Message) -> bool:
    """Whether it is Flower's word for a call that expired, which speaks of databases and of four possible reasons."""
    return message.has_error() and message.error.code in NO_REPLY


def content_of(message: Message) -> RecordDict:
    """What a reply holds; ReportError if it is an error."""
    if message.has_error():
        if nobody_replied(message):
            raise ReportError("no reply came in time, or the node has left")
        raise ReportError(f"Flower says: {str(message.error.reason)[:200]}")
    return message.content
