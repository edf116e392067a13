"""The studio's server: loopback only, a token in the address, one session per tab."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread

from nicegui import app, ui
from nicegui.server import Server

from feelstream.errors import RunError
from feelstream.studio.gate import TokenGate
from feelstream.studio.lanes import stored_runs
from feelstream.studio.page import build
from feelstream.studio.session import SESSIONS, Session, prepare_first

HOST = "127.0.0.1"
RECONNECT_S = 12 * 3600.0  # a lid may stay closed for a night; a tab that is closed says so itself
END_S = 3  # what is under way may take so long when the studio ends


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def serve(start: Sequence[Path], port: int | None, show: bool, tell: Callable[[str], None]) -> None:
    """Serve until interrupted. tell: receives the address once it is known; start: stored runs or results to show."""
    for path in start:
        stored_runs(path)  # complains now rather than on the page
    port, token = port or free_port(), secrets.token_urlsafe(18)
    _check_free(port)
    if not start:
        Thread(target=prepare_first, daemon=True).start()

    @ui.page("/", title="feelstream studio", reconnect_timeout=RECONNECT_S)
    def _page() -> None:
        client = ui.context.client
        session = SESSIONS[client.id] = Session(start)
        build(session)
        client.on_disconnect(lambda: session.race.suspend())
        client.on_connect(lambda: session.race.suspend(False))
        client.on_delete(lambda: _end(client.id))

    @app.post("/leave/{client_id}")
    def _leave(client_id: str) -> None:
        """A tab says that it is being closed; a lost connection says nothing."""
        from nicegui import Client

        _end(client_id)
        if client_id in Client.instances:
            Client.instances[client_id].delete()

    app.add_middleware(TokenGate, token=token, port=port, ending=lambda: Server.instance.should_exit)
    app.on_shutdown(lambda: [_end(client_id) for client_id in list(SESSIONS)])
    app.on_startup(lambda: tell(f"http://{HOST}:{port}/{token}/"))
    ui.run(
        host=HOST, port=port, title="feelstream studio", favicon="📡", show=f"/{token}/" if show else False,
        reload=False, show_welcome_message=False, tailwind=False, dark=None, reconnect_timeout=RECONNECT_S,
        timeout_graceful_shutdown=END_S,
        gzip_middleware_factory=None,  # nothing leaves the machine, so that packing costs more than it saves
    )  # fmt: skip


def _end(client_id: str) -> None:
    if session := SESSIONS.pop(client_id, None):
        session.close()


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as problem:
            raise RunError(f"port {port} cannot be used: {problem.strerror}; leave --port out for a free one") from None
