"""A web server on this machine that fails in the ways that those of data sets do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from patience import PATIENCE_S

from feelstream.data.datasets.catalogue import Source


class Server(ThreadingHTTPServer):
    """Serves `bodies` under any folder and counts what was asked for."""

    daemon_threads = True

    def __init__(self, bodies: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies = bodies
        self.cut: set[str] = set()  # announced in full, but the connection ends half way
        self.silent = threading.Event()  # once set, no answer comes
        self.over = threading.Event()
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/data"

    @property
    def mirror(self) -> Source:
        return Source("website", self.address)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[1]
        assert isinstance(self.server, Server)
        self.server.asked.append(name)
        if self.server.silent.is_set():
            self.server.over.wait(PATIENCE_S)
            return
        body = self.server.bodies.get(name)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if name in self.server.cut else body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving(bodies: dict[str, bytes]) -> Iterator[Server]:
    with Server(bodies) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()
