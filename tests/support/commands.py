"""The command line as the tests call it: in this process, in a directory of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from feelstream.cli import app, main

Command = Callable[..., tuple[int, str, str]]
QUICK = ["--set", "learning.engine=none"]


@pytest.fixture
def feelstream(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run the command in a directory of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["feelstream", *arguments])
        with pytest.raises(SystemExit) as exit:
            main()
        printed = capsys.readouterr()
        code = exit.value.code
        assert code is None or isinstance(code, int)
        return code or 0, printed.out, printed.err

    return command


def invoked(*words: str | Path, code: int = 0) -> Result:
    """The command without its entry point, in the directory of the test; it must end with this code."""
    done = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "160"})
    assert done.exit_code == code, f"{done.output}{done.exception}"
    return done


def set_to(*overrides: str) -> list[str]:
    """Each after its own --set."""
    return [word for override in overrides for word in ("--set", override)]


def check_one_sentence(result: tuple[int, str, str], *told: str) -> None:
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("feelstream: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert "pydantic" not in err
    assert len(err) < 600
    for words in told:
        assert words in err, err
