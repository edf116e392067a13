"""The list of commands is short of nothing, and costs no import of what they need."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command as Run
from commands import check_one_sentence
from typer.testing import CliRunner

import feelstream.cli
from feelstream.cli.lazy import COMMANDS, STUDIES, load
from feelstream.studies import Command, registry
from feelstream.studies.registry import commands

FOLDER = Path(feelstream.cli.__file__).parent


@pytest.mark.parametrize("command", [*COMMANDS.values(), *commands().values()], ids=lambda command: command.name)
def test_each_command_is_what_the_list_says(command: Command) -> None:
    said = " ".join((load(command).help or "").split())
    assert said.startswith(command.help[:20])  # the list may shorten what follows


def test_twelve_commands_and_those_of_studies_under_their_own_heading() -> None:
    assert len(COMMANDS) == 13
    assert {"reproduce", "leaderboard"} <= commands().keys()
    assert not commands().keys() & COMMANDS.keys()
    shown = CliRunner().invoke(feelstream.cli.app, ["--help"]).stdout
    assert re.findall(r"^│ (\w+)", shown.partition(f"─ {STUDIES} ─")[2], re.MULTILINE) == ["study", *commands()]


@pytest.mark.parametrize("name", ["reproduce", "leaderboard"])
def test_a_command_of_studies_that_are_not_installed_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch, feelstream: Run
) -> None:
    monkeypatch.setattr(registry, "installed", list)
    check_one_sentence(feelstream(name, "fig1"), "is not installed; it comes with ", "pip install . ./studies")


def test_every_module_with_commands_is_in_the_list() -> None:
    with_commands = {
        path.stem
        for path in FOLDER.glob("*.py")
        if any(
            isinstance(node, ast.Assign) and ast.unparse(node) == "app = typer.Typer()"
            for node in ast.parse(path.read_text(encoding="utf-8")).body
        )
    }
    apps = {command.app for command in COMMANDS.values()}
    assert {f"feelstream.cli.{name}:app" for name in with_commands} == apps


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_version_and_help_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from feelstream.cli import main\n"
        f"sys.argv = ['feelstream', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'polars', 'matplotlib', 'pydantic', 'plotly'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.slow
def test_the_shell_completes_presets_and_policies() -> None:
    policies = "feelstream compare tiny --policy lyapunov_"
    for words, expected in (("feelstream run ti", "tiny"), (policies, "lyapunov_joint")):
        asked = {"_FEELSTREAM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        code = "from feelstream.cli import main; main()"
        answer = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
        )
        assert answer.stdout.split() == [expected]


@pytest.mark.slow
def test_what_few_runs_need_is_not_imported_for_all() -> None:
    """A start takes a second of CPU time as it is: SciPy is a sixth of it, and pooch a twentieth."""
    code = (
        "import sys, feelstream.api, feelstream.verification.recheck\n"
        "heavy = {'scipy', 'pooch', 'matplotlib', 'plotly', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
