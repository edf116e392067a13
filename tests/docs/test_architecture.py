"""The walks of docs/architecture.md: every name is there, and every arrow is a call."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = PAGE.partition("## Two walks")[2].partition("\n## ")[0]
STEPS = [" ".join(step.split()) for step in re.findall(r"^\d\. (.*?)(?=^\d\. |^$)", WALKS, re.DOTALL | re.MULTILINE)]
DOTTED = re.compile(r"`([a-z_]+(?:\.\w+)+)`")


def resolved(name: str) -> Any:
    """The object of `module.path.Name`, below feelstream; AttributeError or ImportError if there is none."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(["feelstream", *parts[:length]]))
        except ModuleNotFoundError as missing:
            if missing.name is None or not missing.name.startswith("feelstream"):
                pytest.skip(f"{missing.name} is not installed")
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


def arrows(step: str) -> list[tuple[str, str]]:
    """(caller, callee) of each arrow, with nothing but words between the names and the arrow."""
    chains = re.findall(r"`[\w.]+`(?: → [^`:;.]*`[\w.]+`)+", step)
    return [pair for chain in chains for pair in pairwise(re.findall(r"`([\w.]+)`", chain))]


@pytest.mark.parametrize("name", sorted(set(DOTTED.findall(WALKS))))
def test_every_name_exists(name: str) -> None:
    assert resolved(name) is not None


@pytest.mark.parametrize(("caller", "callee"), sorted({pair for step in STEPS for pair in arrows(step)}))
def test_every_arrow_is_a_call(caller: str, callee: str) -> None:
    source = inspect.getsource(resolved(caller))
    assert re.search(rf"\b{callee.rpartition('.')[2]}\(", source), f"{caller} does not call {callee}"


def test_both_walks_are_read_whole() -> None:
    assert len(STEPS) == 15
    assert sum(len(arrows(step)) for step in STEPS) >= 24
