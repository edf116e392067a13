"""A small federation on this machine: one SuperLink and some SuperNodes on free ports, nothing beyond loopback.

All processes belong to one host process (hosting.py), which ends them when this one ends, however it ends. Telemetry,
update check and the installation of an app's dependencies at run time are off, so no other host is needed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
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
from feelstream.run.files import usable_directory
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict, to_toml
from feelstream.version import __version__

OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.25",
}
CONFIG = '[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\naddress = "127.0.0.1:{}"\ninsecure = true\n'
COLOUR = re.compile(r"\x1b\[[\d;]*m")
# The line that ends a traceback; source lines above it, which may name errors as well, are indented.
EXCEPTION = re.compile(r"(?:feelstream\.errors\.\w+: (?P<sentence>.+)|[\w.]*(?:Error|Exception)\b.*)$")
STARTUP_S, NODES_S, STOP_S = 60.0, 120.0, 30.0
LOGS = "logs"  # in the run directory
APP = Path(__file__).parent / "replay_app"


class Federation:
    """SuperLink and SuperNodes on this machine, by name."""

    def __init__(self, directory: Path, logs: Path) -> None:
        self.directory, self.logs = directory, logs
        self.port = free_port()
        self.names: list[str] = []
        (directory / "config.toml").write_text(CONFIG.format(self.port))
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / "host.log").open("ab") as log:
            self._host = subprocess.Popen(
                [sys.executable, "-m", "feelstream.flower.hosting"], text=True, cwd=directory,
                env={**os.environ, **OFFLINE, "FLWR_HOME": str(directory), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip

    def start_superlink(self) -> None:
        self._serve("superlink", self.port, "flower-superlink", "--disable-runtime-dependency-installation")

    def wait_for_superlink(self) -> None:
        end = monotonic() + STARTUP_S
        while not listens(self.port):
            if self.has_ended("superlink") or monotonic() > end:
                raise RunError(f"Flower's SuperLink did not start: {self.last_words('superlink')}")
            sleep(0.1)

    def warm(self, scenario: Path) -> None:
        """Load the data of a scenario in the host, before nodes are forked from it."""
        self._ask(do="warm", scenario=str(scenario))

    def start_node(self, device: int, devices: int, **config: str | float) -> None:
        """A SuperNode for one device; config: more of its node-config."""
        values = {"partition-id": device, "num-partitions": devices, **config}
        text = " ".join(f"{key}={value!r}" for key, value in values.items())
        superlink = "--superlink", f"127.0.0.1:{self.port}"
        self._serve(f"node-{device}", free_port(), "flower-supernode", *superlink, "--node-config", text)

    def nodes(self) -> list[str]:
        return [name for name in self.names if name.startswith("node-")]

    def submit(self, app: Path, config: Mapping[str, str | float]) -> None:
        """Start a run of an app; `wait` follows it."""
        text = " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in config.items())
        self._start("run", ["flwr", "run", str(app), "loopback", "--stream", "--run-config", text])

    def wait(self, done: Callable[[], bool], timeout_s: float, lost: Callable[[str], None] = lambda name: None) -> None:
        """Until the run's files are complete; RunError if it ends or lasts too long without that.

        lost: called with each SuperNode that ended by itself.
        """
        end, gone = monotonic() + timeout_s, set[str]()
        while not done():
            for name in ("superlink", "run"):  # without the first, the second only says that it lost its connection
                if self.has_ended(name) and not done():
                    why = f"{self._why(name)}; the same command goes on"
                    raise RunError(f"the federation stopped before the run was complete: {why}")
            for name in self.nodes():
                if name not in gone and self.has_ended(name):
                    gone.add(name)
                    lost(name)
            if monotonic() > end:
                raise RunError(f"the federation did not finish within {timeout_s:g} s: {self.last_words('run')}")
            sleep(0.2)

    def has_ended(self, name: str) -> bool:
        return self._ask(do="poll", name=name)["ended"] is not None

    def kill(self, name: str) -> None:
        """End one process at once, as a crash would, with the helpers it has started."""
        self._ask(do="kill", name=name)

    def stop(self) -> None:
        """End all that was started here."""
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._host.communicate(timeout=STOP_S)
        self._host.kill()
        self._host.wait()

    def last_words(self, name: str) -> str:
        """Why a process failed, as far as its log tells."""
        return reason((self.logs / f"{name}.log").read_text(errors="replace"))

    def _why(self, name: str) -> str:
        """Why a process has ended; one that was killed had no last words."""
        code = self._ask(do="poll", name=name)["ended"]
        return f"'{name}' was ended by signal {-code}" if code < 0 else self.last_words(name).rstrip(".")

    def _serve(self, name: str, port: int, *command: str) -> None:
        """Start a command that hands out apps at a port; they are run beside it."""
        here = "--insecure", "--isolation", "process", "--host", "127.0.0.1", "--port", str(port)
        self._start(name, [*command, *here], port)

    def _start(self, name: str, command: list[str], port: int | None = None) -> None:
        self._ask(do="start", name=name, command=command, port=port, log=str(self.logs / f"{name}.log"))
        self.names.append(name)

    def _ask(self, **command: object) -> dict[str, Any]:
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            self._host.stdin.write(json.dumps(command) + "\n")
            self._host.stdin.flush()
            line = self._host.stdout.readline()
        answer = json.loads(line) if line else {"error": "its host process has ended"}
        if "error" in answer:
            raise RunError(f"the federation cannot go on: {answer['error']}")
        return answer


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
def federation(logs: Path | None = None) -> Iterator[Federation]:
    """A federation with a running SuperLink and no nodes yet; everything is stopped at the end.

    logs: where the logs of all processes stay; without it they go with everything else.
    """
    with TemporaryDirectory(prefix="feelstream-flower-", ignore_cleanup_errors=True) as directory:
        started = Federation(Path(directory), Path(directory) / "logs" if logs is None else logs)
        try:
            started.start_superlink()
            yield started
        finally:
            started.stop()


def run_in_federation(
    scenario: Scenario,
    seed: int,
    out: Path,
    *,
    deadline_s: float,
    query_timeout_s: float,
    progress: Callable[[int], None] = lambda rounds: None,
    lost: Callable[[str], None] = lambda sentence: None,
) -> Run:
    """Run a scenario through SuperLink and one SuperNode per device, and store the ordinary run directory.

    The logs of all processes stay in its `logs`; lost: called with each node that ended.
    """
    out, scenario = out.resolve(), with_absolute_paths(scenario)
    if (out / "run.json").exists():
        _check_same_run(out, scenario, seed)
        if is_complete(out):
            return read(out)
    usable_directory(out)
    with federation(out / LOGS) as flower:
        flower.warm(write_scenario(flower, scenario))
        flower.wait_for_superlink()
        for device in range(scenario.system.devices):
            flower.start_node(device, scenario.system.devices)
        submit_replay(flower, scenario, seed, out, deadline_s=deadline_s, query_timeout_s=query_timeout_s)

        def done() -> bool:
            progress(rounds_done(out))
            return is_complete(out)

        limit_s = NODES_S + scenario.system.rounds * (deadline_s + 2 * query_timeout_s)
        flower.wait(done, limit_s, lambda name: lost(f"{name} has ended: {flower.last_words(name)}"))
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
    file = write_scenario(flower, scenario)
    flower.wait_for_superlink()
    config = {
        "scenario": str(file),
        "seed": seed,
        "out": str(out),
        "nodes": len(flower.nodes()),
        "max-report-age": max_report_age,
    }
    times = {"deadline-s": float(deadline_s), "query-timeout-s": float(query_timeout_s)}
    app = flower.directory / "app"
    shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    flower.submit(app, {**config, **times})


def write_scenario(flower: Federation, scenario: Scenario) -> Path:
    file = flower.directory / "scenario.toml"
    file.write_text(to_toml(scenario), encoding="utf-8")
    return file


def rounds_done(out: Path) -> int:
    return len(list((out / "progress").glob("rounds-*.parquet")))


def is_complete(out: Path) -> bool:
    """Whether run.json says so, which is written after all else."""
    return (out / "run.json").exists() and Manifest.read(out).complete


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
