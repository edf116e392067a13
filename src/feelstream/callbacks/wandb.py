"""Weights & Biases, offline unless you say otherwise: nothing leaves the machine until `wandb sync`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from feelstream.callbacks import needed
from feelstream.callbacks.settings import measured, parameters
from feelstream.run import Run
from feelstream.run.callbacks import Callback, Row
from feelstream.scenario import Scenario


class WandB(Callback):
    """Log to a wandb run; mode `offline` keeps it in the directory, `online` sends it to the service."""

    def __init__(
        self, directory: str | Path, project: str = "feelstream", mode: Literal["offline", "online"] = "offline"
    ) -> None:
        self._wandb: Any = needed("wandb", "wandb")
        self.directory, self.project, self.mode = Path(directory), project, mode
        self._run: Any = None

    def on_start(self, scenario: Scenario, seed: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._run = self._wandb.init(
            project=self.project,
            dir=str(self.directory),
            mode=self.mode,
            name=f"{scenario.policy.plugin_name()}, seed {seed}",
            config=parameters(scenario, seed),
        )

    def on_round(self, row: Row) -> None:
        self._run.log(measured(row), step=row["round"])

    def on_end(self, run: Run) -> None:
        self._run.finish()
