"""A package index on this machine, of one project called tiny-data."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Index(ThreadingHTTPServer):
    """Answers paths with a status, headers and a body, and writes down what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.password: str | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def page(self, text: str, kind: str = "text/html; charset=utf-8", path: str = "/simple/tiny-data/") -> None:
        self.answers[path] = (200, {"Content-Type": kind}, text.encode())

    def file(self, content: bytes, path: str) -> None:
        self.answers[path] = (200, {"Content-Type": "application/octet-stream"}, content)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Index)
        self.server.asked.append(self.path)
        self.server.headers.append(dict(self.headers))
        status, headers, body = self.server.answers.get(self.path, (404, {}, b"nothing here"))
        password = self.server.password
        if password and self.headers.get("Authorization") != f"Basic {b64encode(password.encode()).decode()}":
            status, headers, body = 401, {}, b"who are you?"
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving() -> Iterator[Index]:
    with Index() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()
