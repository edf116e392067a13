"""`feelstream studio` before any page: mistakes get a sentence."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from feelstream.cli import app
from feelstream.errors import RunError

pytest.importorskip("nicegui", reason="the extra studio is not installed")


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["studio", "--no-open", *arguments])
    assert isinstance(result.exception, RunError)
    return str(result.exception)


def test_a_directory_without_runs_is_refused(tmp_path: Path) -> None:
    assert refused(str(tmp_path)) == f"{tmp_path} holds neither a run (run.json) nor results (plan.json)"


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} cannot be used" in refused("--port", port)
