"""Callbacks for the experiment trackers that people already use, each an extra: `pip install 'feelstream[mlflow]'`.

Each shows the rounds table as it grows. Beside them OpenMetrics, which needs no extra.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
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
DEPLOYED = {"round_seconds": "seconds", "timeout_seconds": "timeout_s", "reliability_min": "reliability_min"}
Series = dict[str, dict[str | None, Any]]
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

    Of a deployment also gauges of what is no part of the trace (round_seconds by the clock on the wall, in place of
    sim_time_s; timeout_seconds, reliability_min, meters_stuck), and counters since the server began: failed and late
    replies, energy_joules, and wasted_joules of devices that trained in vain.

    Only this machine can reach it: a collector elsewhere needs a proxy of yours, with whatever rights you give it.
    """

    def __init__(self, port: int = 0, devices: bool = False) -> None:
        """port: 0 takes a free one, which `port` then tells. devices: series for each device of a deployment, by its
        name: device_failed, device_energy_joules, device_queue_j, device_reliability.
        """
        self._page, self._devices = "# EOF\n", devices
        self._gauges: Series = {}  # of the last deployed round, by name, and by device, or None for all together
        self._totals: Series = {}
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
        self._labels = {"policy": scenario.policy.plugin_name(), "seed": str(seed)}
        self._gauges, self._totals = {}, defaultdict(lambda: defaultdict(float))

    def on_deployed(self, line: Mapping[str, Any], devices: Mapping[str, Any]) -> None:
        self._gauges = {name: {None: line[column]} for name, column in DEPLOYED.items()}
        self._gauges["meters_stuck"] = {None: len(line["meters_stuck"])}
        for name in ("failed", "late"):
            self._totals[name][None] += len(line[name])
        for name in ("energy", "wasted"):
            self._totals[f"{name}_joules"][None] += line[f"{name}_j"]
        if not self._devices:
            return
        for name in ("queue_j", "reliability"):
            self._gauges[f"device_{name}"] = dict(zip(devices["name"], devices[name].tolist(), strict=True))
        for device, energy_j in zip(devices["name"], devices["energy_j"].tolist(), strict=True):
            self._totals["device_energy_joules"][device] += energy_j
            self._totals["device_failed"][device] += device in line["failed"]

    def on_round(self, row: Row) -> None:
        shown = {"round": row["round"], **measured(row)}
        if self._gauges:
            del shown["sim_time_s"]  # devices work by the clock on the wall
        lines = []
        gauges: Series = {name: {None: value} for name, value in shown.items()}
        for name, values in (gauges | self._gauges).items():
            lines += [f"# TYPE feelstream_{name} gauge", *self._samples(name, values)]
        for name, values in self._totals.items():
            lines += [f"# TYPE feelstream_{name} counter", *self._samples(f"{name}_total", values)]
        self._page = "\n".join([*lines, "# EOF", ""])

    def _samples(self, name: str, values: Mapping[str | None, Any]) -> list[str]:
        """A line for each value; its labels are those of the run, and the device's name, if it is of one."""
        run = ",".join(_label(*each) for each in self._labels.items())
        labels = ((run if device is None else f"{run},{_label('device', device)}", values[device]) for device in values)
        return [f"feelstream_{name}{{{found}}} {value}" for found, value in labels]

    def on_end(self, run: Run) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def _label(name: str, value: str) -> str:
    """Escaped, since devices choose their names themselves."""
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{escaped}"'
