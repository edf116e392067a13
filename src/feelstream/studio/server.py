"""The studio's server: loopback only, a token in the address, one session per tab."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from nicegui import Client, app, ui
from nicegui.server import Server

from feelstream.errors import RunError
from feelstream.run import read
from feelstream.run.run import is_unfinished
from feelstream.studio.gate import TokenGate
from feelstream.studio.lanes import stored_runs
from feelstream.studio.page import build
from feelstream.studio.session import Session

HOST = "127.0.0.1"
SESSIONS: dict[str, Session] = {}  # by the tab's client id
RECONNECT_S = 12 * 3600.0  # a lid may stay closed for a night; a tab that is closed says so itself
GRACE_S = 2  # for open connections when the server is told to end: a browser that is stuck keeps its own open for good
POLL_S = 0.005
SWITCH_S = 0.0005  # how long a thread may keep the others waiting; the usual 5 ms add up over many small answers


def usable(port: int | None) -> int:
    """The port, if it is free; without one, any that is."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port or 0))
        except OSError as problem:
            raise RunError(f"port {port} cannot be used: {problem.strerror}; omit --port for a free one") from None
        return probe.getsockname()[1]


def serve(start: Sequence[Path], port: int | None, show: bool, tell: Callable[[str], None]) -> None:
    """Serve until interrupted. tell: receives the address once it answers; start: stored runs or results to show."""
    for path in start:  # complains now rather than on the page
        stored_runs(path)
        if (path / "run.json").is_file() and not is_unfinished(path):
            read(path)
    port, token = usable(port), secrets.token_urlsafe(18)
    sys.setswitchinterval(SWITCH_S)

    @ui.page("/", title="feelstream studio", reconnect_timeout=RECONNECT_S)
    async def _page() -> None:
        client = ui.context.client
        session = SESSIONS[client.id] = Session(start)
        session.race.suspend(not client.has_socket_connection)  # until there is someone to look, and cores to spare
        build(session)
        client.on_disconnect(lambda: session.race.suspend())
        client.on_connect(lambda: session.race.suspend(False))
        client.on_delete(lambda: _end(client.id))

    app.post("/leave/{client_id}")(leave)

    async def told() -> None:
        while not Server.instance.started:  # it listens only after everyone has heard that it starts
            await asyncio.sleep(POLL_S)
        tell(f"http://{HOST}:{port}/{token}/")

    # Requests that wait for news would keep the studio from ending.
    app.config.socket_io_js_transports = ["websocket"]
    app.add_middleware(TokenGate, token=token, port=port)
    app.on_startup(lambda: asyncio.create_task(told()))
    app.on_shutdown(_end_all)
    ui.run(
        host=HOST, port=port, title="feelstream studio", favicon="📡", show=f"/{token}/" if show else False,
        reload=False, show_welcome_message=False, tailwind=False, dark=None, reconnect_timeout=RECONNECT_S,
        gzip_middleware_factory=None,  # nothing leaves the machine, so that packing costs more than it saves
        timeout_graceful_shutdown=GRACE_S,
    )  # fmt: skip


async def leave(client_id: str) -> None:
    """A tab says that it is being closed; a lost connection says nothing.

    A coroutine, so that it runs where the timers of the page do: in a thread, where FastAPI calls plain functions, it
    would take elements apart while a timer removes itself from them.
    """
    _end(client_id)
    if client_id in Client.instances:
        Client.instances[client_id].delete()


def _end(client_id: str) -> None:
    if session := SESSIONS.pop(client_id, None):
        session.close()


def _end_all() -> None:
    for client_id in list(SESSIONS):
        _end(client_id)
