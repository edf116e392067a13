"""How a deployment deals with its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from feelstream.columns import MEASURED
from feelstream.flower.measurements import Plans
from feelstream.flower.names import Names


@dataclass(frozen=True)
class DeploymentSettings:
    """How a deployment deals with its nodes; `Scheduled` explains each."""

    classes: int = 10
    seed: int = 0
    deadline_s: float = 60.0
    query_timeout_s: float = 30.0
    wait_s: float = 120.0
    max_report_age: int = 5
    enough_reports: float = 0.9
    names: Names = None
    bind_names: bool | None = None
    give_up_after: int | None = 5
    max_examples: float | Literal["auto"] | None = "auto"
    max_priority: float = 1.0
    passes: bool = True
    check_updates: bool = True  # that they look like the model
    measured: tuple[str, ...] = MEASURED
    plans: Plans = "measured"
    first: int | None = None
    adaptive_timeout: bool = False
    late: Literal["waste", "use"] = "waste"
