"""The studio's server: loopback only, a token in the address, one session per tab.

It answers before the simulator is imported: a thread imports it while the browser reads the libraries of the page, and
prepares the first race while the browser lays the page out.
"""

from __future__ import annotations

import asyncio
import gc
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from nicegui import Client, app, ui
from nicegui.server import Server

from feelstream.errors import RunError
from feelstream.studio.curtain import curtain, furnish
from feelstream.studio.gate import TokenGate

if TYPE_CHECKING:
    from feelstream.studio.session import Session

HOST = "127.0.0.1"
RECONNECT_S = 12 * 3600.0  # a lid may stay closed for a night; a tab that is closed says so itself
CONNECT_S = 60.0  # for a browser to come back with the page's libraries, before its tab is given up
GRACE_S = 2  # for open connections when the server is told to end: a browser that is stuck keeps its own open for good
POLL_S = 0.005
SWITCH_S = 0.0005  # how long a thread may keep the others waiting; the usual 5 ms add up over many small answers


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def serve(start: Sequence[Path], port: int | None, show: bool, tell: Callable[[str], None]) -> None:
    """Serve until interrupted. tell: receives the address once it answers; start: stored runs or results to show."""
    if start:
        from feelstream.run import read
        from feelstream.run.run import is_unfinished
        from feelstream.studio.lanes import stored_runs

        for path in start:  # complains now rather than on the page
            stored_runs(path)
            if (path / "run.json").is_file() and not is_unfinished(path):
                read(path)
    port, token = port or free_port(), secrets.token_urlsafe(18)
    _check_free(port)
    sys.setswitchinterval(SWITCH_S)
    imported = Event()
    Thread(target=_load, args=(imported, not start), name="loading", daemon=True).start()

    @ui.page("/", title="feelstream studio", reconnect_timeout=RECONNECT_S)
    async def _page() -> None:
        client = ui.context.client
        furnish(client.id)
        if not imported.is_set():
            waiting = curtain()
            await client.connected(timeout=CONNECT_S)
            while not imported.is_set():
                await asyncio.sleep(POLL_S)
            if client.id not in Client.instances:  # closed meanwhile
                return
            waiting.delete()
        _open(client, start)

    app.post("/leave/{client_id}")(leave)

    async def told() -> None:
        while not Server.instance.started:  # it listens only after everyone has heard that it starts
            await asyncio.sleep(POLL_S)
        tell(f"http://{HOST}:{port}/{token}/")

    app.add_middleware(TokenGate, token=token, port=port, ending=lambda: Server.instance.should_exit)
    app.on_startup(lambda: asyncio.create_task(told()))
    app.on_shutdown(_end_all)
    ui.run(
        host=HOST, port=port, title="feelstream studio", favicon="📡", show=f"/{token}/" if show else False,
        reload=False, show_welcome_message=False, tailwind=False, dark=None, reconnect_timeout=RECONNECT_S,
        gzip_middleware_factory=None,  # nothing leaves the machine, so that packing costs more than it saves
        timeout_graceful_shutdown=GRACE_S,
    )  # fmt: skip


def _load(imported: Event, first: bool) -> None:
    """Import what a page needs, the simulator among it; first: and prepare the first race."""
    gc.disable()  # nothing of what is imported is ever garbage
    try:
        import feelstream.studio.page  # noqa: F401
        from feelstream.studio.session import prepare_first

        prepare = prepare_first() if first else None
        imported.set()
        if prepare is not None:
            prepare()
    finally:
        imported.set()  # also where something cannot be imported, which the page complains about
        gc.freeze()
        gc.enable()


def _open(client: Client, start: Sequence[Path]) -> None:
    from feelstream.studio.page import build
    from feelstream.studio.session import SESSIONS, Session

    session = SESSIONS[client.id] = Session(start)
    session.race.suspend(not client.has_socket_connection)  # until there is someone to look, and cores to spare
    build(session)
    client.on_disconnect(lambda: session.race.suspend())
    client.on_connect(lambda: session.race.suspend(False))
    client.on_delete(lambda: _end(client.id))


async def leave(client_id: str) -> None:
    """A tab says that it is being closed; a lost connection says nothing.

    A coroutine, so that it runs where the timers of the page do: in a thread, where FastAPI calls plain functions, it
    would take elements apart while a timer removes itself from them.
    """
    _end(client_id)
    if client_id in Client.instances:
        Client.instances[client_id].delete()


def _end(client_id: str) -> None:
    if session := _sessions().pop(client_id, None):
        session.close()


def _end_all() -> None:
    for client_id in list(_sessions()):
        _end(client_id)


def _sessions() -> dict[str, Session]:
    """Those of all tabs; none before the simulator is imported, for which nobody waits here."""
    module = sys.modules.get("feelstream.studio.session")
    return getattr(module, "SESSIONS", {})


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as problem:
            raise RunError(f"port {port} cannot be used: {problem.strerror}; leave --port out for a free one") from None
