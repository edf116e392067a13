"""`feelstream studio` before any page: mistakes get a sentence."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli import app
from feelstream.errors import RunError

pytest.importorskip("nicegui", reason="the extra studio is not installed")


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["studio", "--no-open", *arguments])
    assert isinstance(result.exception, RunError)
    return str(result.exception)


def test_a_directory_without_runs_is_refused(tmp_path: Path) -> None:
    assert refused(str(tmp_path)) == f"{tmp_path} holds neither a run (run.json) nor results (plan.json)"


@pytest.mark.parametrize("name", ["run.json", "rounds.parquet"])
def test_a_damaged_run_is_refused_before_a_page_is_served(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.simulate("tiny", rounds=2, engine="none", out=tmp_path / "run")
    file = tmp_path / "run" / name
    file.write_bytes(file.read_bytes()[:300])
    monkeypatch.setattr("feelstream.studio.server.usable", lambda port: pytest.fail("it is served"))
    assert refused(str(file.parent)).startswith(f"{file} is damaged")
    assert refused("--follow", str(file.parent)).startswith(f"{file} is damaged")


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} cannot be used" in refused("--port", port)
