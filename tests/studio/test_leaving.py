"""A tab that is closed takes its page apart in the server's loop, where the timers of the page run."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("nicegui", reason="the extra studio is not installed")

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from nicegui import Client

from feelstream.studio import server


class Tab:
    """Stands for a client; notes where it is deleted."""

    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop] = []

    def delete(self) -> None:
        self.loops.append(asyncio.get_running_loop())  # there is none in a thread beside the loop


def test_a_closed_tab_is_deleted_in_the_loop_and_an_unknown_one_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    tab = Tab()
    monkeypatch.setattr(Client, "instances", {"known": tab})
    app = FastAPI()
    app.post("/leave/{client_id}")(server.leave)

    async def close(name: str) -> int:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://studio") as browser:
            return (await browser.post(f"/leave/{name}")).status_code

    assert [asyncio.run(close(name)) for name in ("known", "unknown")] == [200, 200]
    assert len(tab.loops) == 1
