"""Options that are numbers: what is allowed in plain words, whatever release of typer reads the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import typer


def number_option(
    *names: str, help: str, low: float = 1, high: float = math.inf, whole: bool = True, metavar: str = "N"
) -> Any:
    """An option that takes a number from low to high, both of them included."""
    allowed = "a whole number" if whole else "a number"
    if low > -math.inf:
        allowed += f" of at least {low}" if high == math.inf else f" from {low} to {high}"

    def parsed(text: str) -> float:
        value = _read(str(text), int if whole else float)
        if value is None or not low <= value <= high:
            raise typer.BadParameter(f"must be {allowed}, not {text}")
        return value

    return typer.Option(*names, parser=parsed, metavar=metavar, help=help)


def _read(text: str, kind: Callable[[str], float]) -> float | None:
    try:
        value = kind(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
