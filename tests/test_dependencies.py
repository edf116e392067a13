"""The constraints to install from name every run-time dependency, in a version that pyproject.toml admits."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

requirements = pytest.importorskip("packaging.requirements")
ROOT = Path(__file__).parents[1]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_constraints_are_admitted() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(re.split("[=>]=", line) for line in lines if not line.startswith("#"))
    versions = {plain(name): version for name, version in pinned.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    for text in [*project["dependencies"], *extras]:
        wanted = requirements.Requirement(text)
        known = versions.get(plain(wanted.name))
        assert known is not None or text not in project["dependencies"], text
        assert known is None or wanted.specifier.contains(known), f"{text}, but {known}"


def test_the_constraints_let_the_next_flower_in() -> None:
    """flwr 1.42 asks for a uv and a certifi that are newer than those which 1.41 was tested with."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    moving = [line for line in lines if re.match("(flwr|certifi|uv)[=>]", line)]
    assert len(moving) == 3
    assert all(">=" in line for line in moving), moving
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "s/^(flwr|certifi|uv)==/" in recipe  # or `make constraints` pins them again


def test_the_lowest_versions_can_be_told() -> None:
    """`make test-lowest` installs them: a lower end, and nothing that would make it another version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in project["dependencies"]:
        assert re.match(r"[a-z\d]+>=[\d.]+(,|$)", text), text
