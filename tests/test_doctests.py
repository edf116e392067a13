"""The examples in docstrings are run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import feelstream

PACKAGE = Path(feelstream.__path__[0])


def named(file: Path) -> str:
    """By its path: to look through the packages themselves would import all of them in every process of the tests."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = sorted(named(file) for file in PACKAGE.rglob("*.py") if ">>> " in file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except (ImportError, feelstream.FeelstreamError) as missing:  # an engine or an extra that is not installed
        pytest.skip(str(missing))
    assert doctest.testmod(module).failed == 0
