"""Values that a field of the scenario accepts, drawn from its own schema: ordinary ones, and the ends of its range."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from pydantic import BaseModel

MAGNITUDE = 100  # decimal exponent: beyond it no number is accepted
WHOLE = 2**31 - 1


def drawn(draw: random.Random, model: type[BaseModel], name: str) -> Any:
    """Any legal value of the field, the ends of its range as often as what lies between."""
    return _of(draw, _schema(model)[name])


def names(model: type[BaseModel]) -> list[str]:
    """The fields that `drawn` can draw: all but texts that name files."""
    return [name for name, field in _schema(model).items() if _known(field)]


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema().get("properties", {})


def _known(field: dict[str, Any]) -> bool:
    kinds = field.get("anyOf", [field])
    return any("enum" in kind or "const" in kind or kind.get("type") in ("number", "integer") for kind in kinds)


def _of(draw: random.Random, field: dict[str, Any]) -> Any:
    kinds = [kind for kind in field.get("anyOf", [field]) if _known(kind)]
    kind = draw.choice(kinds)
    if "const" in kind:
        return kind["const"]
    if "enum" in kind:
        return draw.choice(kind["enum"])
    if kind["type"] == "integer":
        low, high = kind.get("minimum", 0), kind.get("maximum", WHOLE)
        return draw.choice([low, high, draw.randint(low, min(high, low + 20))])
    return _number(draw, kind)


def _number(draw: random.Random, kind: dict[str, Any]) -> float:
    low = kind.get("minimum", kind.get("exclusiveMinimum"))
    high = kind.get("maximum", kind.get("exclusiveMaximum"))
    if low is not None and high is not None:
        width = high - low
        ends = [low + width * 1e-15, low + width * 1e-6, high - width * 1e-6, high - width * 1e-15]
        ends += [kind[end] for end in ("minimum", "maximum") if end in kind]
        return float(draw.choice(ends) if draw.random() < 0.5 else draw.uniform(low, high))
    if draw.random() < 0.2:
        return float(draw.choice([f"1e-{MAGNITUDE}", f"1e{MAGNITUDE}", low or 1.0]))
    return max(low or 0.0, 10 ** draw.uniform(-MAGNITUDE, MAGNITUDE))
