"""The gate of the studio by itself: token in the path, Host and Origin on HTTP and websockets, headers of answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from feelstream.studio.gate import TokenGate

PORT, TOKEN = 8123, "the-token_1"
HOST, ORIGIN = ("host", f"127.0.0.1:{PORT}"), ("origin", f"http://127.0.0.1:{PORT}")


def asked(kind: str, path: str, *headers: tuple[str, str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the studio behind the gate was asked, and what the gate sent."""
    inside: list[dict[str, Any]] = []
    sent: list[dict[str, Any]] = []

    async def studio(scope: dict[str, Any], receive: Any, send: Any) -> None:
        inside.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []} if kind == "http" else {"type": "x"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": kind, "path": path, "headers": [(name.encode(), value.encode()) for name, value in headers],
    }  # fmt: skip
    asyncio.run(TokenGate(studio, TOKEN, PORT)(scope, None, send))
    return inside, sent


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "headers",
    [
        (HOST,),
        (HOST, ORIGIN),
        (("Host", f"LOCALHOST:{PORT}"), ("Origin", f"http://localhost:{PORT}")),
        (("host", f"[::1]:{PORT}"),),
    ],
)
def test_who_knows_the_token_and_asks_from_here_comes_in(kind: str, headers: Any) -> None:
    inside, _ = asked(kind, f"/{TOKEN}/any/where", *headers)
    assert [scope["root_path"] for scope in inside] == [f"/{TOKEN}"]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", (HOST,)),
        (f"/{TOKEN}", (HOST,)),
        (f"/{TOKEN}x/", (HOST,)),
        (f"/{TOKEN[:-1]}/", (HOST,)),
        (f"//{TOKEN}/", (HOST,)),
        (f"/?token={TOKEN}", (HOST,)),
        ("/", (HOST, ("cookie", f"feelstream-studio-{PORT}={TOKEN}"))),
        (f"/{TOKEN}/", ()),
        (f"/{TOKEN}/", (("host", f"evil.example:{PORT}"),)),  # a name that was made to resolve to this machine
        (f"/{TOKEN}/", (("host", "127.0.0.1"),)),
        (f"/{TOKEN}/", (("host", f"127.0.0.1:{PORT + 1}"),)),
        (f"/{TOKEN}/", (HOST, ("host", "evil.example"))),
        (f"/{TOKEN}/", (HOST, ("origin", "http://evil.example"))),
        (f"/{TOKEN}/", (HOST, ("origin", f"http://127.0.0.1:{PORT + 1}"))),  # another server of this machine
        (f"/{TOKEN}/", (HOST, ("origin", f"https://127.0.0.1:{PORT}"))),
        (f"/{TOKEN}/", (HOST, ("origin", "null"))),
        (f"/{TOKEN}/", (HOST, ORIGIN, ("origin", "http://evil.example"))),
        (f"/{TOKEN}/", (HOST, ("x-forwarded-prefix", "//evil.example"))),
    ],
)
def test_all_others_get_nothing_but_a_page_that_asks_for_the_token(kind: str, path: str, headers: Any) -> None:
    inside, sent = asked(kind, path, *headers)
    assert inside == []
    if kind == "websocket":
        assert sent == [{"type": "websocket.close", "code": 1008}]
    else:
        assert sent[0]["status"] == 403
        asks = not path.startswith(f"/{TOKEN}/")  # of this very machine: whoever has a wrong address is told what to do
        assert (b"Copy the address from the terminal" in sent[1]["body"]) == asks
        assert asks or sent[1]["body"] == b""
        assert TOKEN.encode() not in sent[1]["body"]


@pytest.mark.parametrize("path", [f"/{TOKEN}/", "/"])
def test_every_answer_forbids_frames_and_sets_no_cookie(path: str) -> None:
    _, sent = asked("http", path, HOST)
    headers = dict(sent[0]["headers"])
    assert b"frame-ancestors 'none'" in headers[b"content-security-policy"]
    assert headers[b"x-frame-options"] == b"DENY"
    assert headers[b"referrer-policy"] == b"no-referrer"
    assert b"set-cookie" not in headers
