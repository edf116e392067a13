"""The ranges that docs/reference/scenario.md states are those accepted: every number at both ends and just beyond."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pages import DOCS
from pydantic import BaseModel, TypeAdapter, ValidationError

from feelstream.scenario import Scenario
from feelstream.scenario.fields import kinds

KINDS = {kind.field: kind for kind in kinds().values() if kind.has_settings}
NUMBER = r"(-?[\d.]+(?:e-?\d+)?)"
FORMS = {
    "closed": rf"{NUMBER} to {NUMBER}",
    "open below": rf"above {NUMBER}, at most {NUMBER}",
    "open": rf"above {NUMBER}, below {NUMBER}",
    "open above": rf"at least {NUMBER}, below {NUMBER}",
    "zero too": rf"0, or {NUMBER} to {NUMBER}",
}


def stated() -> Iterator[tuple[str, str, str]]:
    """(table, field, range) of every number on the page; the table as `system` or `data.buffer/fifo`."""
    table = kind = ""
    for line in (DOCS / "reference" / "scenario.md").read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## \[(.+)\]", line):
            table, kind = heading[1], ""
        elif heading := re.fullmatch(r"### `(.+)`", line):
            kind = heading[1]
        elif line.startswith("| `") and line.count(" |") >= 4 and (accepted := line.split(" |")[-2].strip()):
            yield f"{table}/{kind}" if kind else table, line.split("`")[1], accepted


def model_of(table: str) -> type[BaseModel]:
    name, _, kind = table.partition("/")
    section: Any = KINDS[name].ours[kind] if kind else Scenario.model_fields[name].annotation
    return section


def at_and_beyond(text: str, whole: bool) -> tuple[list[float], list[float]]:
    """The ends that are accepted, or what is next to them, and what lies next outside."""
    form, found = next((form, found) for form, one in FORMS.items() if (found := re.fullmatch(one, text)))
    low, high = (float(number) for number in found.groups())
    if whole:
        return [int(low), int(high)], [int(low) - 1, int(high) + 1]
    above, below = math.nextafter(low, math.inf), math.nextafter(high, -math.inf)
    under, over = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return {
        "closed": ([low, high], [under, over]),
        "open below": ([above, high], [low, over]),
        "open": ([above, below], [low, high]),
        "open above": ([low, below], [under, high]),
        "zero too": ([0.0, low, high], [-low, under, over]),
    }[form]


RANGES = list(stated())


def test_every_number_has_a_range() -> None:
    """Also where nobody thought of it: a field whose type is a number has its row."""
    numbers = set()
    for table in {table for table, _, _ in RANGES} | {
        f"{name}/{kind}" for name, of in KINDS.items() for kind in of.ours
    }:
        for field, schema in model_of(table).model_json_schema().get("properties", {}).items():
            if any(each.get("type") in ("number", "integer") for each in schema.get("anyOf", [schema])):
                numbers.add((table, field))
    assert numbers <= {(table, field) for table, field, _ in RANGES}
    assert len(numbers) > 60


@pytest.mark.parametrize(("table", "field", "accepted"), RANGES, ids=[f"{t}.{f}" for t, f, _ in RANGES])
def test_a_number_is_accepted_within_its_range_only(table: str, field: str, accepted: str) -> None:
    about = model_of(table).model_fields[field]
    checks: TypeAdapter[Any] = TypeAdapter(about.rebuild_annotation())
    schema = model_of(table).model_json_schema()["properties"][field]
    array = next((each for each in schema.get("anyOf", [schema]) if each.get("type") == "array"), None)
    several, length = array is not None, len((array or {}).get("prefixItems", [0]))
    whole = "integer" in str(schema)
    inside, outside = at_and_beyond(accepted, whole)
    for value in inside:
        given = (value,) * length if several else value
        assert checks.validate_python(given) == given
    for value in outside:
        with pytest.raises(ValidationError):
            checks.validate_python((value,) * length if several else value)


@pytest.mark.parametrize(("table", "field", "accepted"), RANGES, ids=[f"{t}.{f}" for t, f, _ in RANGES])
def test_the_words_beside_a_field_do_not_contradict_its_range(table: str, field: str, accepted: str) -> None:
    """They are the comments of a scenario file: the same range, or an end that is the natural one."""
    words = model_of(table).model_fields[field].description or ""
    low = re.search(r"(?:≥|> |at least|above) ?(-?[\d.]+(?:e-?\d+)?)", words)
    both = re.search(rf"(?<![\w.-]){NUMBER} to (?:below )?{NUMBER}", words)
    if both is not None:
        low_end, high_end = float(both[1]), float(both[2])
        inside, _ = at_and_beyond(accepted, False)
        assert [low_end, high_end] == pytest.approx([min(inside), max(inside)], rel=1e-12)
        assert "above" not in accepted, "an end that is not accepted must be called so"
    elif low is not None:
        inside, _ = at_and_beyond(accepted, False)
        assert float(low[1]) == pytest.approx(min(inside), abs=1e-99)
    else:
        assert field == "labels", "no range is stated"
