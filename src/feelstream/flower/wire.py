"""Messages: what server and devices tell each other, and what the server accepts of what comes. Each is checked once.

A device's report is one Flower ConfigRecord under the key "feelstream", with the device's name in it. It is no
MetricRecord, since Flower's strategies want exactly one of those in a reply: the app's own. What the server tells a
device is a MetricRecord "feelstream.server", since Flower's client-side modifiers want exactly one ConfigRecord in a
message. A report holds only the device's own numbers, so one device cannot spoil what is known of another.

What else a reply holds reaches the strategy inside as the client sent it. Flower's own strategies want exactly one set
of arrays and one of metrics; one with an `aggregate_train` of its own may ask for more (as SCAFFOLD does).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from io import BytesIO
from math import isclose, isfinite
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import Strategy
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError, ValidationInfo

from feelstream.columns import MEASURED
from feelstream.errors import FeelstreamError
from feelstream.model.physics import ratio
from feelstream.scenario import Scenario

REPORT, SERVER = "feelstream", "feelstream.server"
MODS = "feelstream.mods"  # records that are there only for modifiers of a whole ClientApp, which want one of each kind
CLIPPING = "clipping_norm"  # what Flower's modifiers for differential privacy look for
QUERY = "query.feelstream"  # the message type; a ClientApp answers it with @app.query("feelstream")
NO_REPLY = (3, 4, 5)  # codes of Flower's errors for a call that expired or whose node has left
MOST_SAMPLES = 2**31 - 1  # label counts are kept in 32 bits
MOST_JOULES = 1e6  # no device spends a megajoule on one round
LEAST_FADING = 1e-18  # times the worst mean gain; under Rayleigh fading the chance of less is 1e-18
MOST_FADING = 1e3  # times the best mean gain; under Rayleigh fading the chance of that is exp(−1000)
PRIORITIES = (1e-9, 1000.0)  # as in a scenario
MOST_LETTERS = 120  # of a text in a report
MOST_LOSSES = 1_000_000  # of the samples that a device draws in one round
NUMPY, HEADER_BYTES = "numpy.ndarray", 10_000
# Which decoded kinds may become which kind of the model; "same kind or narrower", so that no meaning is lost.
CASTS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}
USUAL = ("arrays", "metrics")  # the names of the records with the model and with the metrics

Counts = NDArray[np.int32]
Model = Mapping[str, NDArray]
Values = dict[str, int | float | list[int] | list[float]]
Record = ArrayRecord | MetricRecord | ConfigRecord
Found = TypeVar("Found")


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

    stored_labels, fresh_labels: int32 (m,), label counts of S_k(t) and B_k(t); where nothing is ever deleted, fresh may
    be None: the server knows what it has used. f_hz: its CPU frequency; beta: its mean
    channel gain. After training also: gain, the channel gain found, and what the round has cost as far as the device
    can measure it (None: the server takes the model's value).
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

    classes: int
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

    def completed(
        self, report: DeviceReport, known: DeviceReport | None, age: int, used_labels: Counts
    ) -> DeviceReport:
        """The report with its fresh counts, unless it contradicts what is known of the device (ReportError).

        known: what was accepted last, `age` rounds ago (0: of this very round); used_labels: its part of X.
        """
        stored, told = report.stored_labels, report.fresh_labels
        before = known.stored_labels if known is not None else np.zeros_like(stored)
        if known is not None and self.fixed_gain and not isclose(report.beta, known.beta, rel_tol=1e-9):
            raise ReportError(
                f"its mean gain changed from {known.beta:.6g} to {report.beta:.6g}, and is fixed for a run"
            )
        if self.never_deletes and (stored < before).any():
            raise ReportError("its counts shrank, but nothing is ever deleted from the buffers of this scenario")
        if known is not None and age == 0:
            if (stored != before).any() or (told is not None and (told != known.fresh_labels).any()):
                raise ReportError("its counts changed within the round")
            return replace(report, fresh_labels=known.fresh_labels)
        if self.never_deletes and self.since_use:
            fresh, less = stored - used_labels, "those already used"
        elif self.never_deletes and (told is None or age == 1):
            fresh, less = stored - before, "those it stored the round before"
        elif self.empties_on_use and self.since_use:
            fresh, less = stored, "none, since what was used is deleted"
        else:
            return report
        if told is not None and (told != fresh).any():
            raise ReportError(f"its fresh samples are not those it stores less {less}")
        return replace(report, fresh_labels=fresh)

    def told(self, round: int, used_round: int, chosen_f_hz: float | None = None) -> MetricRecord:
        """What every message tells a device of the scheduler's side."""
        values = {
            "round": round, "used-round": used_round, "classes": self.classes, "deletes": int(not self.never_deletes),
            "frequency-hz": list(self.frequency_hz), "gain-range": list(self.gain),
        }  # fmt: skip
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


def question(told: MetricRecord) -> RecordDict:
    """What is asked; with a model of one number and a clipping norm, without which Flower's modifiers refuse it."""
    clipping = ConfigRecord({CLIPPING: 1.0})
    return RecordDict({SERVER: told, MODS: ArrayRecord([np.zeros(1, np.float32)]), f"{MODS}.config": clipping})


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


# Updates


@dataclass
class Update:
    """A reply that has passed every check of its own."""

    message: Message
    arrays: ArrayRecord = field(default_factory=ArrayRecord)
    metrics: Values = field(default_factory=dict)
    keys: tuple[str, str] = USUAL  # of the records with both
    others: dict[str, Record] = field(default_factory=dict)


def read_update(
    message: Message, model: Model, weight_key: str, stored: int, most: float | None, one_of_each: bool
) -> Update:
    """What a reply holds beside its report; ReportError if it does not look like the model, or is not finite.

    stored: samples that count of what the device stores; most: see `_metrics`.
    """
    content = content_of(message)
    arrays = _the_one(content.array_records, USUAL[0], one_of_each)
    metrics = _the_one(content.metric_records, USUAL[1], one_of_each)
    if arrays is None:
        raise ReportError("it carries no arrays")
    values = checked_metrics(content.metric_records.get(metrics or ""), weight_key, stored, most)
    others = {key: record for key, record in content.items() if key not in (arrays, metrics, REPORT)}
    checked = checked_arrays(content.array_records[arrays], model)
    return Update(message, checked, values, (arrays, metrics or USUAL[1]), others)


def wants_one_of_each(strategy: Strategy) -> bool:
    """Whether it averages as Flower does, and so takes one set of arrays and one of metrics in a reply."""
    return type(strategy).aggregate_train.__module__.startswith("flwr.")


def _the_one(records: Mapping[str, Any], usual: str, single: bool) -> str | None:
    """The key of the record that counts as the model, or as the metrics; None where there is none of its kind."""
    if len(records) == 1:
        return next(iter(records))
    if records and (single or usual not in records):
        raise ReportError(f"it carries {len(records)} sets of {usual}, not one")
    return usual if records else None


def most_common(keys: list[tuple[str, str]]) -> tuple[str, str]:
    """The names by which most replies carry model and metrics; of equally many the usual ones.

    Flower's strategies look in every reply where the first one has them, so that all must have them under one name.
    """
    counts = Counter(keys or [USUAL])
    return max(counts, key=lambda each: (counts[each], each == USUAL, each))


def alike(
    replies: Mapping[int, Mapping[str, Found]], kind: Callable[[Found], Hashable], what: str
) -> tuple[dict[int, dict[str, Found]], dict[int, str]]:
    """Of each reply what more than half of them have, of the same kind; and why those who lack some of it are refused.

    What only some send is left out, so that nobody can make the replies differ and a strategy stumble.
    """
    counts = Counter((key, kind(value)) for values in replies.values() for key, value in values.items())
    common = {each for each, number in counts.items() if 2 * number > len(replies)}
    kept: dict[int, dict[str, Found]] = {}
    refused: dict[int, str] = {}
    for sender, values in replies.items():
        own = {key: value for key, value in values.items() if (key, kind(value)) in common}
        missing = sorted(key for key, _ in common if key not in own)
        if missing:
            refused[sender] = f"{what} '{missing[0][:40]}' is missing, or not as in the other replies"
        else:
            kept[sender] = own
    return kept, refused


def alike_metrics(replies: Mapping[int, Values]) -> tuple[dict[int, MetricRecord], dict[int, str]]:
    """The same of metrics, which are alike if they have the same name and length.

    One that is not finite anywhere costs no update: it is left out of all, as an average of it would mean nothing.
    """
    broken = {key for values in replies.values() for key, value in values.items() if not is_finite(value)}
    finite = {k: {key: v for key, v in values.items() if key not in broken} for k, values in replies.items()}
    kept, refused = alike(finite, lambda value: len(value) if isinstance(value, list) else -1, "metric")
    return {sender: MetricRecord(dict(sorted(values.items()))) for sender, values in kept.items()}, refused


def checked_metrics(record: MetricRecord | None, weight_key: str, stored: int, most: float | None) -> Values:
    """A reply's metrics, and the weight, which is finite and at most what the device stores.

    A reply without the weight gets the reported number of stored samples. most: a limit on any weight.
    """
    values: Values = {} if record is None else dict(record)  # pyright: ignore[reportAssignmentType]
    if weight_key in values and not is_finite(values[weight_key]):
        raise ReportError(f"metric '{weight_key[:40]}' is not finite")
    weight = values.get(weight_key, stored)
    if isinstance(weight, list) or weight < 0:
        raise ReportError(f"metric '{weight_key}' must be one number from 0 on, not {weight!r:.40}")
    # Only a number of samples can be compared with what the device stores; other weights are the app's own.
    limits = [weight, *([stored] if weight_key == "num-examples" else []), *([most] if most is not None else [])]
    return values | {weight_key: min(limits)}


def is_finite(value: float | list[int] | list[float]) -> bool:
    numbers = value if isinstance(value, list) else [value]
    try:
        return all(type(number) in (int, float) and isfinite(number) for number in numbers)
    except OverflowError:  # a whole number beyond any float
        return False


# Models


def read_model(arrays: ArrayRecord) -> dict[str, NDArray]:
    """The server's own model as arrays."""
    return {name: array.numpy() for name, array in arrays.items()}


def write_model(arrays: Model) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(values)) for name, values in arrays.items()})


def checked_arrays(found: ArrayRecord, model: Model) -> ArrayRecord:
    """The model in a reply: the names and shapes of ours, our types after casting, finite; else ReportError.

    Only what the bytes decode to counts: the type and shape that a reply claims beside them may be anything.
    """
    if found.keys() != model.keys():
        raise ReportError(
            "its arrays have other names than the model's (check_updates=False takes updates that are parts of it)"
        )
    return ArrayRecord({name: _checked(name, found[name], wanted) for name, wanted in model.items()})


def _checked(name: str, array: Array, wanted: NDArray) -> Array:
    if array.stype != NUMPY:
        raise ReportError(f"array '{name}' is serialised as '{array.stype[:40]}', not as '{NUMPY}'")
    stream = BytesIO(array.data)
    try:
        version = npy.read_magic(stream)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, _, dtype = read_header(stream, max_header_size=HEADER_BYTES)
    except Exception as problem:  # bytes from outside may be anything
        raise ReportError(f"array '{name}' cannot be decoded") from problem
    # Before anything is allocated by what the header says.
    if shape != wanted.shape or dtype.hasobject or dtype.kind not in CASTS.get(wanted.dtype.kind, ""):
        raise ReportError(f"array '{name}' is {dtype} {shape}, not {wanted.dtype} {wanted.shape}")
    if len(array.data) - stream.tell() != dtype.itemsize * wanted.size:
        raise ReportError(f"array '{name}' does not have as many bytes as its shape needs")
    stream.seek(0)
    try:
        with np.errstate(all="ignore"):  # what overflows is found below
            values = npy.read_array(stream, allow_pickle=False)
            cast = np.asarray(values.astype(wanted.dtype, copy=False))
    except Exception as problem:
        raise ReportError(f"array '{name}' cannot be decoded") from problem
    if wanted.dtype.kind in "iu":
        if (cast != values).any():
            raise ReportError(f"array '{name}' holds whole numbers that do not fit {wanted.dtype}")
    elif not np.isfinite(cast).all():
        raise ReportError(f"array '{name}' is not finite as {wanted.dtype}")
    # What is as the model already is not written again.
    return Array(str(dtype), shape, NUMPY, array.data) if dtype == wanted.dtype else Array(cast)


def needs_floats(model: Model) -> bool:
    """Whether a strategy that computes with the model could stumble over its types or its scalars."""
    return any(values.dtype.kind != "f" or values.ndim == 0 for values in model.values())


def as_floats(model: Model) -> dict[str, NDArray]:
    """Whole numbers and truth values as float64, scalars as vectors of one; all else as it is."""
    return {
        name: np.atleast_1d(values if values.dtype.kind == "f" else values.astype(np.float64))
        for name, values in model.items()
    }


def as_model(found: ArrayRecord, model: Model) -> dict[str, NDArray]:
    """What a strategy made of such floats, with the shapes and types of the model; ReportError if that cannot be.

    Whole numbers are rounded, and a truth value is true from one half on.
    """
    if found.keys() != model.keys():
        raise ReportError("the aggregated arrays have other names than the model's")
    return {name: _restored(name, found[name].numpy(), wanted) for name, wanted in model.items()}


def _restored(name: str, values: NDArray, wanted: NDArray) -> NDArray:
    if values.size != wanted.size or values.dtype.kind not in "fiub":
        raise ReportError(f"the aggregated array '{name}' is {values.dtype} {values.shape}, not of the model's shape")
    values = values.reshape(wanted.shape)
    if wanted.dtype.kind == "b":
        return np.asarray(values >= 0.5)
    if wanted.dtype.kind in "iu":
        limits = np.iinfo(wanted.dtype)
        values = np.rint(values) if values.dtype.kind == "f" else values
        if not ((values >= limits.min) & (values < float(limits.max) + 1)).all():
            raise ReportError(f"the aggregated array '{name}' does not fit {wanted.dtype}")
        return np.asarray(values.astype(wanted.dtype))
    with np.errstate(all="ignore"):
        cast = np.asarray(values.astype(wanted.dtype))
    if not np.isfinite(cast).all():
        raise ReportError(f"the aggregated array '{name}' is not finite")
    return cast
