"""TensorBoard: one event file per run, with a scalar for each column of the rounds table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from feelstream.callbacks import needed
from feelstream.callbacks.settings import measured
from feelstream.run import Run
from feelstream.run.callbacks import Callback, Row
from feelstream.scenario import Scenario


class TensorBoard(Callback):
    """Write event files; look at them with `tensorboard --logdir DIRECTORY`."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._writer: Any = needed("tensorboard.summary", "tensorboard").Writer(str(self.directory))

    def on_start(self, scenario: Scenario, seed: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        name = f"scenario-seed{seed}.toml"
        from feelstream.scenario.files import to_toml

        (self.directory / name).write_text(to_toml(scenario, f"seed {seed}"), encoding="utf-8")

    def on_round(self, row: Row) -> None:
        step = row["round"]
        for name, value in measured(row).items():
            self._writer.add_scalar(name, value, step=step)

    def on_end(self, run: Run) -> None:
        self._writer.close()
