"""Pages in a real Chromium, with everything that they complain about or ask for."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from patience import PATIENCE_S

api = pytest.importorskip("playwright.sync_api", reason="the playwright package is not installed")

PATIENCE_MS = 1000 * PATIENCE_S
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed (Debian: apt-get install chromium)"
)
START: dict[str, Any] = {
    "executable_path": CHROMIUM,
    "args": ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"],
}  # fmt: skip


class Watched:
    """A page, its problems, and what it asked for but what it holds itself (blob:)."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.set_default_timeout(PATIENCE_MS)
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: message.type in ("error", "warning") and self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: request.url.startswith("blob:") or self.requests.append(request.url))
