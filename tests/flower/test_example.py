"""The example app, run as it is: its server against its clients, in this process."""

from __future__ import annotations

import importlib
import logging
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict

import feelstream as fs
from feelstream.flower.local_grid import LocalGrid

pytest.importorskip("torch", reason="needs PyTorch: install feelstream[torch]")
EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-mnist"
DEVICES = 5


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield importlib.import_module("flower_mnist.server_app"), importlib.import_module("flower_mnist.client_app")
    for name in [name for name in sys.modules if name.startswith("flower_mnist")]:
        del sys.modules[name]


def play(apps: Any, **changes: Any) -> LocalGrid:
    server_app, client_app = apps
    settings = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    config = settings | {"dataset": "synthetic", "num-rounds": 4, "local-steps": 2, "devices": DEVICES} | changes
    grid = LocalGrid()

    def answer(context: Context, message: Message) -> Message:
        context.run_config = config
        return client_app.app(message, context)

    for device in range(DEVICES):
        grid.add(50 - device, {"partition-id": device, "num-partitions": DEVICES}, answer)
    server_app.main(grid, Context(1, 1, {}, RecordDict(), config))
    return grid


@pytest.mark.slow
def test_the_example_schedules_trains_and_verifies(
    apps: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(apps, out=str(tmp_path / "run"))
    run = fs.read(tmp_path / "run")
    assert run.rounds["transmitted"].to_list() == [3, 3, 3, 3]
    assert run.devices is not None
    assert run.devices.filter(run.devices["scheduled"])["t_cmp_s_measured"].all()  # training time is measured
    assert run.rounds["loss"].n_unique() == 4  # the model moves in every round
    assert fs.verify(tmp_path / "run").ok
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_runs_with_private_label_counts(apps: Any, tmp_path: Path) -> None:
    play(apps, out=str(tmp_path / "run"), epsilon=0.5)
    devices = fs.read(tmp_path / "run").devices
    assert devices is not None
    assert fs.verify(tmp_path / "run").ok
    # 60 samples of two digits come with every round; noisy counts are of others too, and do not add up to it.
    first = devices.filter(devices["round"] == 1)
    assert (first["stored"] != 60).any()


@pytest.mark.slow
@pytest.mark.usefixtures("apps")
def test_the_first_run_shows_what_scheduling_saves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    main = runpy.run_path(str(EXAMPLE / "first_run.py"))["main"]
    with caplog.at_level(logging.INFO, logger="flwr"):  # it sets a level of its own, which ends here
        main(tmp_path, **{"num-rounds": 20})
    table = capsys.readouterr().out
    rows = {
        line.split()[0]: line.split() for line in table.splitlines() if line.startswith(("balanced", "lyap", "rand"))
    }
    assert set(rows) == {"balanced", "lyapunov", "random"}
    spent_j = {policy: float(row[-2]) for policy, row in rows.items()}
    assert spent_j["lyapunov"] < 0.5  # the budget
    assert spent_j["lyapunov"] < 0.8 * spent_j["random"]
    for policy in rows:
        run = fs.read(tmp_path / policy)
        assert run.rounds["transmitted"].to_list() == [3] * 20
        assert fs.verify(tmp_path / policy).ok
