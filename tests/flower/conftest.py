"""Everything here needs Flower; without it the tests skip. No test in this folder reaches beyond this machine."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("flwr", reason="needs Flower: install feelstream[flower]")
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_DISABLE_UPDATE_CHECK"] = "1"
