"""Metrics that came with replies: checked one by one, and made alike, so that any strategy can average them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import isfinite

from flwr.app import MetricRecord

from feelstream.flower.report import ReportError

Values = dict[str, int | float | list[int] | list[float]]


def checked_metrics(record: MetricRecord | None, weight_key: str, stored: int, most: float | None) -> Values:
    """A reply's metrics: finite numbers or lists of them, and the weight, which is at most what the device stores.

    A reply without the weight gets the reported number of stored samples. most: a limit on any weight.
    """
    values: Values = {} if record is None else dict(record)  # pyright: ignore[reportAssignmentType]
    for name, value in values.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(type(number) in (int, float) and _is_finite(number) for number in numbers):
            raise ReportError(f"metric '{name[:40]}' is not finite")
    weight = values.get(weight_key, stored)
    if isinstance(weight, list) or weight < 0:
        raise ReportError(f"metric '{weight_key}' must be one number from 0 on, not {weight!r:.40}")
    # Only a number of samples can be compared with what the device stores; other weights are the app's own.
    limits = [weight, *([stored] if weight_key == "num-examples" else []), *([most] if most is not None else [])]
    return values | {weight_key: min(limits)}


def _is_finite(number: float) -> bool:
    try:
        return isfinite(number)
    except OverflowError:  # a whole number beyond any float
        return False


def alike(replies: Mapping[int, Values]) -> tuple[dict[int, MetricRecord], dict[int, str]]:
    """The metrics with the keys that more than half of the replies have, and why the others are refused.

    What only some send is left out, so that nobody can make the replies differ; who lacks what most send is refused.
    """
    shapes = Counter(_shape(key, value) for values in replies.values() for key, value in values.items())
    common = {shape for shape, number in shapes.items() if 2 * number > len(replies)}
    kept: dict[int, MetricRecord] = {}
    refused: dict[int, str] = {}
    for sender, values in replies.items():
        own = {shape for key, value in values.items() if (shape := _shape(key, value)) in common}
        missing = sorted(key for key, _ in common - own)
        if missing:
            refused[sender] = f"metric '{missing[0][:40]}' is missing, or not as in the other replies"
        else:
            keys = sorted(key for key, _ in own)
            kept[sender] = MetricRecord({key: values[key] for key in keys})
    return kept, refused


def _shape(key: str, value: object) -> tuple[str, int]:
    return key, len(value) if isinstance(value, list) else -1
