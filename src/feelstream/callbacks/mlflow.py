"""MLflow: a run with the scenario's fields as parameters and the rounds table as metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from feelstream.callbacks import needed
from feelstream.callbacks.settings import measured, parameters
from feelstream.run import Run
from feelstream.run.callbacks import Callback, Row
from feelstream.scenario import Scenario

LONGEST = 500  # letters of a parameter; MLflow refuses more than 6000, and nobody reads them


class MLflow(Callback):
    """Log to a tracking server (`http://…`), or to DIRECTORY/mlflow.db.

    Look at the latter with `mlflow ui --backend-store-uri sqlite:///DIRECTORY/mlflow.db`.
    """

    def __init__(self, where: str | Path, experiment: str = "feelstream") -> None:
        module = needed("mlflow.tracking", "mlflow")
        self.uri = str(where) if "://" in str(where) else _database(Path(where))
        self._client: Any = module.MlflowClient(tracking_uri=self.uri)
        known = self._client.get_experiment_by_name(experiment)
        self._experiment = known.experiment_id if known else self._client.create_experiment(experiment)
        self._run = ""

    def on_start(self, scenario: Scenario, seed: int) -> None:
        name = f"{scenario.policy.plugin_name()}, seed {seed}"
        self._run = self._client.create_run(self._experiment, run_name=name).info.run_id
        for field, value in parameters(scenario, seed).items():
            self._client.log_param(self._run, field, str(value)[:LONGEST])

    def on_round(self, row: Row) -> None:
        for name, value in measured(row).items():
            self._client.log_metric(self._run, name, value, step=int(row["round"] or 0))

    def on_end(self, run: Run) -> None:
        self._client.set_terminated(self._run)


def _database(directory: Path) -> str:
    """A file of its own: MLflow has given up keeping runs in plain directories."""
    needed("sqlalchemy", "mlflow")
    directory.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{(directory / 'mlflow.db').resolve()}"
