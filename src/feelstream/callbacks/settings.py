"""A scenario as the flat list of parameters that experiment trackers show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from feelstream.scenario import Scenario


def parameters(scenario: Scenario, seed: int) -> dict[str, str | float | int | bool]:
    """`section.field` → value, and the seed.

    >>> parameters(Scenario(), 3)["policy.V"]
    0.05
    """
    return {"seed": seed, **dict(_flat(scenario.as_dict()))}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str | float | int | bool]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, str | float | int | bool):
            yield f"{prefix}{name}", value
        else:
            yield f"{prefix}{name}", str(value)


def measured(row: Mapping[str, float | int | None]) -> dict[str, float]:
    """The values of a row that were measured, without the round itself."""
    return {name: float(value) for name, value in row.items() if value is not None and name != "round"}
