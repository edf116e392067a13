"""Callbacks for the experiment trackers that people already use, each an extra: `pip install 'feelstream[mlflow]'`.

Each shows the rounds table as it grows. Beside them OpenMetrics, which needs no extra.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from feelstream.errors import FeelstreamError, needed
from feelstream.run import Run
from feelstream.run.callbacks import Callback, Row
from feelstream.scenario import Scenario
from feelstream.scenario.fields import flat
from feelstream.scenario.files import to_toml

LONGEST = 500  # letters of a parameter; MLflow refuses more than 6000, and nobody reads them
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def measured(row: Row) -> dict[str, float]:
    """The values of a row that were measured, without the round itself."""
    return {name: float(value) for name, value in row.items() if value is not None and name != "round"}


def titled(scenario: Scenario, seed: int) -> str:
    return f"{scenario.policy.plugin_name()}, seed {seed}"


class TensorBoard(Callback):
    """Write event files, with a scalar for each column; look at them with `tensorboard --logdir DIRECTORY`."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._writer = needed("tensorboard.summary", "tensorboard").Writer(str(self.directory))

    def on_start(self, scenario: Scenario, seed: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        text = to_toml(scenario, f"seed {seed}")
        (self.directory / f"scenario-seed{seed}.toml").write_text(text, encoding="utf-8")

    def on_round(self, row: Row) -> None:
        for name, value in measured(row).items():
            self._writer.add_scalar(name, value, step=row["round"])

    def on_end(self, run: Run) -> None:
        self._writer.close()


class MLflow(Callback):
    """Log to a tracking server (`http://…`), or to DIRECTORY/mlflow.db: the scenario's fields as parameters, the
    columns as metrics.

    Look at the latter with `mlflow ui --backend-store-uri sqlite:///DIRECTORY/mlflow.db`.
    """

    def __init__(self, where: str | Path, experiment: str = "feelstream") -> None:
        module = needed("mlflow.tracking", "mlflow")
        self.uri = str(where)
        if "://" not in self.uri:  # a file of its own: MLflow has given up keeping runs in plain directories
            needed("sqlalchemy", "mlflow")
            Path(where).mkdir(parents=True, exist_ok=True)
            self.uri = f"sqlite:///{(Path(where) / 'mlflow.db').resolve()}"
        self._client = module.MlflowClient(tracking_uri=self.uri)
        known = self._client.get_experiment_by_name(experiment)
        self._experiment = known.experiment_id if known else self._client.create_experiment(experiment)
        self._run = ""

    def on_start(self, scenario: Scenario, seed: int) -> None:
        self._run = self._client.create_run(self._experiment, run_name=titled(scenario, seed)).info.run_id
        for field, value in {"seed": seed, **flat(scenario.as_dict())}.items():
            self._client.log_param(self._run, field, str(value)[:LONGEST])

    def on_round(self, row: Row) -> None:
        for name, value in measured(row).items():
            self._client.log_metric(self._run, name, value, step=int(row["round"] or 0))

    def on_end(self, run: Run) -> None:
        self._client.set_terminated(self._run)


class WandB(Callback):
    """Log to a wandb run. Mode `offline` keeps it in the directory, and nothing leaves the machine until `wandb sync`;
    `online` sends it to the service.
    """

    def __init__(
        self, directory: str | Path, project: str = "feelstream", mode: Literal["offline", "online"] = "offline"
    ) -> None:
        self._wandb = needed("wandb", "wandb")
        self.directory, self.project, self.mode = Path(directory), project, mode
        self._run: Any = None

    def on_start(self, scenario: Scenario, seed: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = {"seed": seed, **flat(scenario.as_dict())}
        own = {"project": self.project, "dir": str(self.directory), "mode": self.mode}
        self._run = self._wandb.init(name=titled(scenario, seed), config=config, **own)

    def on_round(self, row: Row) -> None:
        self._run.log(measured(row), step=row["round"])

    def on_end(self, run: Run) -> None:
        self._run.finish()


# Each keeps its files in a directory and sends nothing anywhere by itself.
LOGGERS: dict[str, Callable[[Path], Callback]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}


class OpenMetrics(Callback):
    """Serve http://127.0.0.1:PORT/metrics while a run goes on, for Prometheus and its like: a gauge for each column of
    the rounds table, with its value in the last round.

    Only this machine can reach it: a collector elsewhere needs a proxy of yours, with whatever rights you give it.
    """

    def __init__(self, port: int = 0) -> None:
        """port: 0 takes a free one, which `port` then tells."""
        self._page = "# EOF\n"
        page = self  # what the handler, which Python makes for each request, looks at

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.split("?")[0] == "/metrics"
                body = page._page.encode() if found else b"see /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: a line for every collection would drown the log of the run."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as problem:
            raise FeelstreamError(f"port {port} of 127.0.0.1 cannot be used for metrics: {problem}") from problem
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def on_start(self, scenario: Scenario, seed: int) -> None:
        self._labels = f'{{policy="{scenario.policy.plugin_name()}",seed="{seed}"}}'

    def on_round(self, row: Row) -> None:
        lines = []
        for name, value in {"round": row["round"], **measured(row)}.items():
            lines += [f"# TYPE feelstream_{name} gauge", f"feelstream_{name}{self._labels} {value}"]
        self._page = "\n".join([*lines, "# EOF", ""])

    def on_end(self, run: Run) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
