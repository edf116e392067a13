"""The gate before the studio: who does not know the token gets nothing, over HTTP and over websockets."""

from __future__ import annotations

from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

COOKIE = "feelstream-studio"


class TokenGate:
    """ASGI middleware. The token may come in the address or, once the page was opened, in a cookie of this port."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token, self.cookie = app, token, f"{COOKIE}-{port}"

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if not self._known(scope):
            await _refuse(scope, send)
            return

        async def remember(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                extra = [(b"set-cookie", cookie.encode()), (b"referrer-policy", b"no-referrer")]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        await self.app(scope, receive, remember)

    def _known(self, scope: dict[str, Any]) -> bool:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        for name, value in scope.get("headers", []):
            if name == b"cookie":
                try:
                    morsel = SimpleCookie(value.decode("latin-1")).get(self.cookie)
                except CookieError:
                    continue
                given += [morsel.value] if morsel else []
        return any(compare_digest(each.encode(), self.token.encode()) for each in given)


async def _refuse(scope: dict[str, Any], send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
