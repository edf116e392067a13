"""The examples in docstrings are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import feelstream

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(feelstream.__path__, "feelstream.", onerror=lambda name: None)
    if not module.name.startswith("feelstream._")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except (ImportError, feelstream.FeelstreamError) as missing:  # an engine or an extra that is not installed
        pytest.skip(str(missing))
    assert doctest.testmod(module).failed == 0
