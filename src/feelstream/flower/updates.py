"""Updates: what the server accepts of the models and metrics that devices reply with. Each is checked once.

What else a reply holds reaches the strategy inside as the client sent it. Flower's own strategies want exactly one set
of arrays and one of metrics; one with an `aggregate_train` of its own may ask for more (as SCAFFOLD does).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from numpy.lib import format as npy
from numpy.typing import NDArray

from feelstream.flower.wire import REPORT, ReportError, content_of

NUMPY, HEADER_BYTES = "numpy.ndarray", 10_000
# Which decoded kinds may become which kind of the model; "same kind or narrower", so that no meaning is lost.
CASTS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}
USUAL = ("arrays", "metrics")  # the names of the records with the model and with the metrics

Model = Mapping[str, NDArray]
Values = dict[str, int | float | list[int] | list[float]]
Record = ArrayRecord | MetricRecord | ConfigRecord
Found = TypeVar("Found")


@dataclass
class Update:
    """A reply that has passed every check of its own: to a call for training, or for evaluation, without a model."""

    message: Message
    metrics: Values
    arrays: ArrayRecord | None = None
    keys: tuple[str, str] = USUAL  # of the records with both
    others: dict[str, Record] = field(default_factory=dict)


def read_update(
    message: Message, model: Model, weight_key: str, stored: int, most: float | None, one_of_each: bool
) -> Update:
    """What a reply holds beside its report; ReportError if it does not look like the model, or is not finite.

    stored: samples that count of what the device stores; most: see `checked_metrics`.
    """
    content = content_of(message)
    arrays = _the_one(content.array_records, USUAL[0], one_of_each)
    metrics = _the_one(content.metric_records, USUAL[1], one_of_each)
    if arrays is None:
        raise ReportError("it carries no arrays")
    values = checked_metrics(content.metric_records.get(metrics or ""), weight_key, stored, most)
    others = {key: record for key, record in content.items() if key not in (arrays, metrics, REPORT)}
    checked = checked_arrays(content.array_records[arrays], model)
    return Update(message, values, checked, (arrays, metrics or USUAL[1]), others)


def _the_one(records: Mapping[str, Any], usual: str, single: bool) -> str | None:
    """The key of the record that counts as the model, or as the metrics; None where there is none of its kind."""
    if len(records) == 1:
        return next(iter(records))
    if records and (single or usual not in records):
        raise ReportError(f"it carries {len(records)} sets of {usual}, not one")
    return usual if records else None


def together(updates: Mapping[int, Update], weight_key: str) -> tuple[dict[int, Message], dict[int, str]]:
    """The replies that can be averaged, by sender, with the same records in all; and why others cannot.

    Flower's strategies look for model and metrics in every reply where the first one has them, so that all have them
    under the names that most replies use; of equally many the usual ones.
    """
    # One that is not finite anywhere costs no update: it is left out of all, as an average of it would mean nothing.
    broken = {key for update in updates.values() for key, value in update.metrics.items() if not is_finite(value)}
    finite = {k: {key: v for key, v in update.metrics.items() if key not in broken} for k, update in updates.items()}
    metrics, refused = alike(finite, lambda value: len(value) if isinstance(value, list) else -1, "metric")
    others, lacking = alike({k: updates[k].others for k in metrics}, type, "the record")
    counts = Counter(updates[k].keys for k in others)
    arrays, found = max(counts, key=lambda each: (counts[each], each == USUAL, each), default=USUAL)
    usable = {}
    for sender, records in others.items():
        if metrics[sender][weight_key]:  # an update that weighs nothing would still sway a median
            usable[sender], model = updates[sender].message, updates[sender].arrays
            averaged = {found: MetricRecord(dict(sorted(metrics[sender].items())))}
            usable[sender].content = RecordDict({**records, **averaged, **({} if model is None else {arrays: model})})
    return usable, refused | lacking


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
