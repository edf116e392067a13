"""A small federation on this machine: one SuperLink and some SuperNodes on free ports, nothing beyond loopback.

Every process is started here and stopped here, by its own handle. Telemetry, update check and the installation of an
app's dependencies at run time are off, so no other host is needed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from feelstream.errors import RunError
from feelstream.run import Run, read
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict, to_toml
from feelstream.version import __version__

OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
COLOUR = re.compile(r"\x1b\[[\d;]*m")
# The line that ends a traceback; source lines above it, which may name errors as well, are indented.
EXCEPTION = re.compile(r"(?:feelstream\.errors\.\w+: (?P<sentence>.+)|[\w.]*(?:Error|Exception)\b.*)$")
STARTUP_S = 60.0
NODES_S = 120.0

# Flower wants a value for every key; all are given anew with each run.
PYPROJECT = """[project]
name = "feelstream-replay"
version = "1.0.0"
description = "A feelstream scenario, replayed by real messages"
license = "Apache-2.0"
dependencies = []

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "feelstream"

[tool.flwr.app.components]
serverapp = "replay_app:server_app"
clientapp = "replay_app:client_app"

[tool.flwr.app.config]
scenario = ""
seed = 0
out = ""
nodes = 1
max-report-age = 0
deadline-s = 0.0
query-timeout-s = 0.0
"""


class Federation:
    """SuperLink and SuperNodes under one temporary directory; use it in a `with`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        home = directory / "flower"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\naddress = "127.0.0.1:{self.port}"\n'
            "insecure = true\n"
        )
        # Flower starts its own helpers by name, so they must be found where this Python is.
        here = str(Path(sys.executable).parent)
        path = os.pathsep.join([here, os.environ.get("PATH", "")])
        self.environment = {**os.environ, **OFFLINE, "FLWR_HOME": str(home), "PATH": path, "OMP_NUM_THREADS": "1"}

    def start_superlink(self) -> None:
        self._start(
            "superlink", "flower-superlink", "--insecure", "--host", "127.0.0.1", "--port", str(self.port),
            "--disable-runtime-dependency-installation",
        )  # fmt: skip
        end = monotonic() + STARTUP_S
        while not _listens(self.port):
            if self.processes["superlink"].poll() is not None or monotonic() > end:
                raise RunError(f"Flower's SuperLink did not start: {self.last_words('superlink')}")
            sleep(0.2)

    def start_node(self, device: int, devices: int, **config: str | float) -> None:
        """A SuperNode for one device; config: more of its node-config."""
        values = {"partition-id": device, "num-partitions": devices, **config}
        text = " ".join(f"{key}={value!r}" for key, value in values.items())
        self._start(
            f"node-{device}", "flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{self.port}",
            "--host", "127.0.0.1", "--port", str(free_port()), "--node-config", text,
        )  # fmt: skip

    def nodes(self) -> list[str]:
        return [name for name in self.processes if name.startswith("node-")]

    def submit(self, app: Path, config: Mapping[str, str | float]) -> None:
        """Start a run of an app; `wait` follows it."""
        text = " ".join(f"{key}={_toml(value)}" for key, value in config.items())
        self._start("run", "flwr", "run", str(app), "loopback", "--stream", "--run-config", text)

    def wait(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Until the run's files are complete; RunError if it ends or lasts too long without that."""
        end = monotonic() + timeout_s
        while not done():
            over = self.processes["run"].poll() is not None
            if over and not done():
                raise RunError(f"the federation stopped before the run was complete: {self.last_words('run')}")
            if monotonic() > end:
                raise RunError(f"the federation did not finish within {timeout_s:g} s: {self.last_words('run')}")
            sleep(0.2)

    def kill(self, name: str) -> None:
        """End one process at once, as a crash would, with the helpers it has started."""
        process = self.processes[name]
        _signal(process, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End all that was started here; those that do not go when asked are killed."""
        for process in reversed(self.processes.values()):
            _signal(process, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
            _signal(process, signal.SIGKILL)  # helpers of its own that outlived it

    def last_words(self, name: str) -> str:
        """Why a process failed, as far as its log tells."""
        return reason((self.directory / f"{name}.log").read_text(errors="replace"))

    def _start(self, name: str, command: str, *arguments: str) -> None:
        program = shutil.which(command, path=self.environment["PATH"])
        if program is None:
            raise RunError(f"'{command}' is not installed; install feelstream[flower]")
        with (self.directory / f"{name}.log").open("wb") as log:
            # A session of its own: signals reach it and its helpers, and nothing else.
            self.processes[name] = subprocess.Popen(
                [program, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.directory,
                env=self.environment, start_new_session=True,
            )  # fmt: skip


def reason(log: str) -> str:
    """The last exception in a log, of ours only the sentence; without one, the last line that says something."""
    lines = COLOUR.sub("", log).splitlines()
    raised = [found for found in map(EXCEPTION.match, lines) if found]
    if raised:
        return raised[-1]["sentence"] or raised[-1][0]
    said = [line.strip("│ ") for line in lines if any(letter.isalpha() for letter in line)]
    said = [line for line in said if not line.startswith("For more information")]  # a link to Flower's exit codes
    return said[-1] if said else "it said nothing"


@contextmanager
def federation() -> Iterator[Federation]:
    """A federation with a running SuperLink and no nodes yet; everything is stopped at the end."""
    with TemporaryDirectory(prefix="feelstream-flower-", ignore_cleanup_errors=True) as directory:
        started = Federation(Path(directory))
        try:
            started.start_superlink()
            yield started
        finally:
            started.stop()


def write_app(directory: Path) -> Path:
    """A Flower app whose clients replay the simulator."""
    app = directory / "app"
    app.mkdir()
    (app / "pyproject.toml").write_text(PYPROJECT)
    # Flower looks for assignments in this file before it runs it, and would not find imported names.
    (app / "replay_app.py").write_text(
        "from feelstream.flower import replay\n\nserver_app = replay.server_app\nclient_app = replay.client_app\n"
    )
    return app


def run_in_federation(
    scenario: Scenario,
    seed: int,
    out: Path,
    *,
    deadline_s: float,
    query_timeout_s: float,
    progress: Callable[[int], None] = lambda rounds: None,
) -> Run:
    """Play a scenario through SuperLink and one SuperNode per device, and store the ordinary run directory."""
    out, scenario = out.resolve(), with_absolute_paths(scenario)
    if (out / "run.json").exists():
        _check_same_run(out, scenario, seed)
        if is_complete(out):
            return read(out)
    with federation() as flower:
        for device in range(scenario.system.devices):
            flower.start_node(device, scenario.system.devices)
        submit_replay(flower, scenario, seed, out, deadline_s=deadline_s, query_timeout_s=query_timeout_s)

        def done() -> bool:
            progress(rounds_done(out))
            return is_complete(out)

        flower.wait(done, NODES_S + scenario.system.rounds * (deadline_s + 2 * query_timeout_s))
    return read(out)


def _check_same_run(out: Path, scenario: Scenario, seed: int) -> None:
    """Refuse a wrong directory at once; the server would, but only when all is up, and far from the user."""
    stored = Manifest.read(out)
    if stored.engine.get("name") != "flower":
        raise RunError(f"{out} holds a run with another engine; choose another directory or remove it")
    wanted = {"seed": seed, "scenario": scenario.as_dict()}
    if not stored.complete:
        wanted["feelstream"] = __version__
    check_same_run(out, stored, wanted)


def with_absolute_paths(scenario: Scenario) -> Scenario:
    """The scenario with every file it names, as `data.npz` or `file.py:Name`, where Flower's processes find it too."""
    return from_dict(_absolute(scenario.as_dict()))


def _absolute(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _absolute(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_absolute(entry) for entry in value]
    if not isinstance(value, str):
        return value
    file, colon, name = value.rpartition(":") if ".py:" in value else (value, "", "")
    # Names of ours have no suffix: a file that happens to be called mnist is not what "mnist" means.
    return f"{Path(file).absolute()}{colon}{name}" if Path(file).suffix and os.path.isfile(file) else value


def submit_replay(
    flower: Federation,
    scenario: Scenario,
    seed: int,
    out: Path,
    *,
    deadline_s: float,
    query_timeout_s: float,
    max_report_age: int = 0,
) -> None:
    """Start a run in which the nodes, as many as there are now, replay the scenario's devices."""
    file = flower.directory / "scenario.toml"
    file.write_text(to_toml(scenario), encoding="utf-8")
    config = {
        "scenario": str(file),
        "seed": seed,
        "out": str(out),
        "nodes": len(flower.nodes()),
        "max-report-age": max_report_age,
    }
    times = {"deadline-s": float(deadline_s), "query-timeout-s": float(query_timeout_s)}
    flower.submit(write_app(flower.directory), {**config, **times})


def rounds_done(out: Path) -> int:
    return len(list((out / "progress").glob("rounds-*.parquet")))


def is_complete(out: Path) -> bool:
    """Whether run.json says so, which is written after all else."""
    return (out / "run.json").exists() and Manifest.read(out).complete


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _signal(process: subprocess.Popen[bytes], what: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, what)


def _toml(value: str | float) -> str:
    """JSON's strings are TOML's basic strings."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
