"""What else a reply holds beside the model and its metrics: it reaches the strategy inside as the client sent it.

Flower's own strategies want exactly one set of arrays and one of metrics in a reply, so that a second one is refused
there; a strategy with an `aggregate_train` of its own may ask for more (as SCAFFOLD does, for control variates). What
most replies of a round carry, all must: otherwise one device could make a strategy stumble.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedXgbBagging, FedXgbCyclic, Strategy

from feelstream.flower.report import REPORT, ReportError

Record = ArrayRecord | MetricRecord | ConfigRecord
Names = tuple[str, str]  # of the records with the model and with the metrics
USUAL_NAMES: Names = ("arrays", "metrics")
OWN_MODELS = (FedXgbBagging, FedXgbCyclic)  # whose updates need not look like the model


def wants_one_of_each(strategy: Strategy) -> bool:
    """Whether it averages as Flower does, and so takes one set of arrays and one of metrics in a reply."""
    return type(strategy).aggregate_train.__module__.startswith("flwr.")


def the_one(records: Mapping[str, Any], usual: str, what: str, single: bool) -> str | None:
    """The key of the record that counts as the model, or as the metrics; None where there is none of its kind."""
    if len(records) == 1:
        return next(iter(records))
    if records and (single or usual not in records):
        raise ReportError(f"it carries {len(records)} sets of {what}, not one")
    return usual if records else None


def most_common(names: Sequence[Names]) -> Names:
    """The names by which most replies carry model and metrics; of equally many the usual ones.

    Flower's strategies look in every reply where the first one has them, so that all must have them under one name.
    """
    counts = Counter(names or [USUAL_NAMES])
    return max(counts, key=lambda each: (counts[each], each == USUAL_NAMES, each))


def others(content: RecordDict, taken: set[str | None]) -> dict[str, Record]:
    """All that a reply holds but these and the report."""
    return {key: record for key, record in content.items() if key not in taken and key != REPORT}


def alike_records(replies: Mapping[int, dict[str, Record]]) -> tuple[dict[int, dict[str, Record]], dict[int, str]]:
    """What more than half of the replies carry, by sender, and why those who lack some of it are refused."""
    kinds = Counter((key, type(record)) for records in replies.values() for key, record in records.items())
    common = {kind for kind, number in kinds.items() if 2 * number > len(replies)}
    kept: dict[int, dict[str, Record]] = {}
    refused: dict[int, str] = {}
    for sender, records in replies.items():
        own = {key: record for key, record in records.items() if (key, type(record)) in common}
        missing = sorted(key for key, _ in common if key not in own)
        if missing:
            refused[sender] = f"the record '{missing[0][:40]}' is missing, or not as in the other replies"
        else:
            kept[sender] = own
    return kept, refused
