"""The gate before the studio: who does not know the token gets no further, over HTTP and over websockets.

The token is the first part of every path. It is no cookie, since browsers send cookies to all ports of a host, so that
any other server on this machine would receive it; and it is in no header, since a link could not carry it. Host and
Origin are checked as well: a name of someone else's that resolves to this machine, and a page of another origin, are
refused even with the token. Who asks from here without it gets a page that says where to find the whole address.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Any

from feelstream.studio import asset

NAMES = ("127.0.0.1", "localhost", "[::1]")
# The page is made by scripts that it holds itself, and some of its elements compile their templates.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class TokenGate:
    """ASGI middleware: what lies under /TOKEN/ at this host and port, asked for by this very page or by no page."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.prefix = app, f"/{token}"
        self.hosts = {f"{name}:{port}".encode() for name in NAMES} | {name.encode() for name in NAMES if port == 80}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif not self._is_from_here(scope):
            await _refuse(scope, send)
        elif not self._knows_the_token(scope["path"]):
            await _refuse(scope, send, asset("refused.html"))
        else:

            async def send_with_headers(message: dict[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
                await send(message)

            await self.app({**scope, "root_path": self.prefix}, receive, send_with_headers)

    def _is_from_here(self, scope: dict[str, Any]) -> bool:
        """One Host, and it is ours; every Origin that is stated is ours."""
        given = [(name.lower(), value.lower()) for name, value in scope.get("headers", [])]
        hosts = [value for name, value in given if name == b"host"]
        origins = [value for name, value in given if name == b"origin"]
        forwarded = any(name.startswith(b"x-forwarded") for name, _ in given)  # no proxy stands before it
        return len(hosts) == 1 and hosts[0] in self.hosts and all(o in self.origins for o in origins) and not forwarded

    def _knows_the_token(self, path: str) -> bool:
        first, slash, _ = path.removeprefix("/").partition("/")
        return bool(slash) and compare_digest(f"/{first}".encode(), self.prefix.encode())


async def _refuse(scope: dict[str, Any], send: Any, page: str = "") -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = page.encode()
    said = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": [*said, *HEADERS]})
    await send({"type": "http.response.body", "body": body})
