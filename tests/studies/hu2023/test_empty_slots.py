from __future__ import annotations

import polars as pl
import pytest

from feelstream_studies.hu2023.conclusion import empty_share


def test_only_scheduled_devices_count():
    devices = pl.DataFrame({"stored": [0, 5, 0, 0, 7], "scheduled": [True, True, False, True, True]})
    assert empty_share(devices) == pytest.approx(0.5)
    assert empty_share(devices.filter(~pl.col("scheduled"))) is None
