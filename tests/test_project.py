"""What contributors are told agrees with what there is: commands, versions, constraints."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
TELLING = ["CONTRIBUTING.md", "RELEASING.md", ".github/PULL_REQUEST_TEMPLATE.md", ".ci/run"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*TELLING, *(str(file.relative_to(ROOT)) for file in WORKFLOWS)])
def test_commands_that_are_named_exist(page: str) -> None:
    """`make TARGET` in code or at the beginning of a line."""
    named = set(re.findall(r"(?:^ *|`|run: )make ([a-z][a-z-]*)", text(page), re.M))
    assert named <= TARGETS


def test_the_tests_that_were_measured_as_slow_exist() -> None:
    """By `make times`; one that was renamed would be waited for by everyone, before each commit."""
    names = text("tests/slow.txt").split()
    assert len(names) > 50
    for name in names:
        file, *_, function = name.split("::")
        assert f"def {function}(" in text(file), f"{name} is no more: run make times, or take it out of tests/slow.txt"


def test_types_are_checked_of_what_a_change_can_break() -> None:
    """c is changed: d imports it, e has it by way of the package p, and what imports d has nothing of c."""
    pytest.importorskip("grimp")
    imports = {"d": {"c"}, "p": {"c"}, "e": {"p"}, "f": {"d"}, "c": {"a"}}
    affected = runpy.run_path(str(ROOT / ".ci" / "affected.py"))["affected"]
    found = affected(["c"], lambda module: {name for name, of in imports.items() if module in of}, "p".__eq__)
    assert found == {"c", "d", "p", "e"}


def test_workflows_test_every_python_that_wheels_are_built_for() -> None:
    built = re.findall(r"cp3(\d+)-\*", PROJECT["tool"]["cibuildwheel"]["build"])
    (tested,) = re.findall(r"python: \[(.*)\]", text(".github/workflows/ci.yml"))
    assert re.findall(r'"3\.(\d+)"', tested) == built
    assert PROJECT["project"]["requires-python"] == f">=3.{built[0]}"


def test_the_hooks_format_as_the_linters_do() -> None:
    (hook,) = re.findall(r"ruff-pre-commit\n +rev: v([\d.]+)", text(".pre-commit-config.yaml"))
    assert f"ruff=={hook}" in text("constraints.txt").splitlines()


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_constraints_are_admitted() -> None:
    """They name every run-time dependency, in a version that pyproject.toml admits."""
    requirements = pytest.importorskip("packaging.requirements")
    lines = text("constraints.txt").splitlines()
    pinned = dict(re.split("[=>]=", line) for line in lines if not line.startswith("#"))
    versions = {plain(name): version for name, version in pinned.items()}
    project = PROJECT["project"]
    extras = [each for texts in project["optional-dependencies"].values() for each in texts]
    for needed in [*project["dependencies"], *extras]:
        wanted = requirements.Requirement(needed)
        known = versions.get(plain(wanted.name))
        assert known is not None or needed not in project["dependencies"], needed
        assert known is None or wanted.specifier.contains(known), f"{needed}, but {known}"


def test_the_constraints_let_the_next_flower_in() -> None:
    """flwr 1.42 asks for a uv and a certifi that are newer than those which 1.41 was tested with."""
    lines = text("constraints.txt").splitlines()
    moving = [line for line in lines if re.match("(flwr|certifi|uv)[=>]", line)]
    assert len(moving) == 3
    assert all(">=" in line for line in moving), moving
    recipe = text("Makefile")
    assert "s/^(flwr|certifi|uv)==/" in recipe  # or `make constraints` pins them again


def test_the_lowest_versions_can_be_told() -> None:
    """`make test-lowest` installs them: a lower end, and nothing that would make it another version."""
    for needed in PROJECT["project"]["dependencies"]:
        assert re.match(r"[a-z\d]+>=[\d.]+(,|$)", needed), needed
