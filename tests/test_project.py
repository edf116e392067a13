"""What contributors are told agrees with what there is: commands, versions, constraints, layers."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
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


SOURCES = ("src", "studies/src")
FORBIDDEN = {
    "report": ("src/feelstream/report/groups.py", "feelstream.studies.claims"),
    "experiment": ("src/feelstream/experiment/comparison.py", "feelstream.studies.claims"),
    "api": ("src/feelstream/api/comparing.py", "feelstream.studies.registry"),
    "another": ("studies/src/feelstream_studies/leaderboard/entries.py", "feelstream_studies.hu2023.paper"),
    "core": ("studies/src/feelstream_studies/silicon/figure.py", "feelstream.run.files"),
}


def test_nothing_below_may_import_a_study_and_no_study_another(tmp_path: Path) -> None:
    """The layer contracts of pyproject.toml are no words only: what they forbid is found."""
    pytest.importorskip("importlinter")
    for source in SOURCES:
        shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, studied in FORBIDDEN.values():
        with open(tmp_path / file, "a", encoding="utf-8") as text:
            text.write(f"\nimport {studied}\n")
    linter = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", linter, "--no-cache"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ":".join(str(tmp_path / source) for source in SOURCES), "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "Imports point downwards BROKEN" in said
    for room in ("report", "experiment", "api"):
        assert f"feelstream.{room} is not allowed to import feelstream.studies" in said
    assert "feelstream_studies.leaderboard is not allowed to import feelstream_studies.hu2023" in said
    assert "feelstream_studies.silicon.figure -> feelstream.run.files" in said
