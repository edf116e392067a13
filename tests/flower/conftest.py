"""Everything here needs Flower; without it the tests skip. No test in this folder reaches beyond this machine."""

from __future__ import annotations

import logging
import os

import pytest

pytest.importorskip("flwr", reason="needs Flower: install feelstream[flower]")
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_DISABLE_UPDATE_CHECK"] = "1"

from deployed_clients import Clock


@pytest.fixture(autouse=True)
def _logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Flower and we log reaches caplog."""
    monkeypatch.setattr(logging.getLogger("flwr"), "propagate", True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of who waits for replies."""
    found = Clock()
    monkeypatch.setattr("feelstream.flower.exchange.sleep", found.sleep)
    monkeypatch.setattr("feelstream.flower.exchange.monotonic", lambda: found.now)
    return found
