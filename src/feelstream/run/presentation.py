"""How the numbers of users' own evaluators are shown: stated by them, stored in run.json, or plain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from feelstream.columns import ROUND_COLUMNS
from feelstream.evaluation import Evaluators
from feelstream.quantities import QUANTITIES, Quantity, plain_measure, register_measures
from feelstream.run.manifest import Manifest

FIELD = "quantities"  # of run.json


def noted_quantities(evaluators: Evaluators) -> dict[str, Any]:
    """What run.json says of them; nothing where no evaluator of the user's own says how its numbers are shown."""
    stated = [asdict(quantity) for quantity in evaluators.quantities]
    return {FIELD: stated} if stated else {}


def introduce(columns: Iterable[str], about: Manifest | Mapping[str, Any]) -> None:
    """Register how every column of a run's rounds is shown that is not ours: as run.json says, else plainly."""
    own = [column for column in columns if column not in ROUND_COLUMNS]
    if not own:
        return
    said = about.model_extra or {} if isinstance(about, Manifest) else about
    try:
        stated = TypeAdapter(list[Quantity]).validate_python(said.get(FIELD, []))
    except ValidationError:  # it is only about looks
        stated = []
    known = {quantity.name: quantity for quantity in stated}
    for column in own:
        if column in known or column not in QUANTITIES:
            register_measures(known.get(column) or plain_measure(column))
