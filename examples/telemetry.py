"""The last round of a run or a deployment as OpenTelemetry gauges: `Scheduled(..., callbacks=[Telemetry()])`.

Needs opentelemetry-api; with opentelemetry-sdk and an exporter the numbers leave the process:

    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader

    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter())]))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import metrics  # pyright: ignore[reportMissingImports]

import feelstream as fs

SHOWN = ("round", "scheduled", "transmitted", "energy_mean_j", "queue_max_j", "accuracy", "loss")


class Telemetry(fs.Callback):
    """A gauge for each number of a round, named feelstream.COLUMN."""

    def __init__(self) -> None:
        meter = metrics.get_meter("feelstream")
        self.gauges = {name: meter.create_gauge(f"feelstream.{name}") for name in SHOWN}

    def on_round(self, row: Mapping[str, Any]) -> None:
        for name, gauge in self.gauges.items():
            if row.get(name) is not None:  # not every round is evaluated
                gauge.set(row[name])
