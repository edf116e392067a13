"""The studio's server: mistakes get a sentence, its address answers, tabs are closed, and a signal ends it cleanly."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from patience import PATIENCE_S
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli import app
from feelstream.errors import RunError

pytest.importorskip("nicegui", reason="the extra studio is not installed")

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from nicegui import Client

from feelstream.studio import server


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


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_at_its_address_and_ends_without_a_word_on_standard_error(tmp_path: Path, number: int) -> None:
    # The first race is being prepared when the signal comes: a thread in compiled code, at which Python would abort.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment |= {"PYTHONPATH": str(Path(fs.__file__).parents[1]), "FEELSTREAM_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "feelstream", "studio", "--no-open"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", server.stdout.readline())
            assert found is not None
            with urllib.request.urlopen(found.group(), timeout=PATIENCE_S) as answer:
                assert answer.status == 200
            server.send_signal(number)
            told, complained = server.communicate(timeout=PATIENCE_S)
        finally:
            server.kill()
    assert (server.returncode, complained) == (0, "")
    assert told.endswith("The studio has ended.\n")


class Tab:
    """Stands for a client; notes where it is deleted."""

    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop] = []

    def delete(self) -> None:
        self.loops.append(asyncio.get_running_loop())  # there is none in a thread beside the loop


def test_a_closed_tab_is_deleted_in_the_loop_and_an_unknown_one_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    tab = Tab()
    monkeypatch.setattr(Client, "instances", {"known": tab})
    web = FastAPI()
    web.post("/leave/{client_id}")(server.leave)

    async def close(name: str) -> int:
        async with AsyncClient(transport=ASGITransport(web), base_url="http://studio") as browser:
            return (await browser.post(f"/leave/{name}")).status_code

    assert [asyncio.run(close(name)) for name in ("known", "unknown")] == [200, 200]
    assert len(tab.loops) == 1
