"""Where the relative paths of an app lead: from the app, and never from where the server happens to run."""

from __future__ import annotations

import runpy
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk

APP = """
from pathlib import Path

from feelstream.flower import ScheduledFedAvg

strategy = ScheduledFedAvg("devices.toml", names=Path("names.toml"), out={out!r})
"""
PYPROJECT = '[project]\nname = "cameras"\n\n[tool.flwr.app]\npublisher = "somebody"\n'


def run_app(directory: Path, out: str, devices: int = 2) -> Path:
    """Write and run an app that makes a strategy: the strategy's run directory."""
    code = directory / "cameras"
    code.mkdir(parents=True)
    (directory / "pyproject.toml").write_text(PYPROJECT)
    rows = "".join(f"{device},{0.25 * 2**device}\n" for device in range(devices))
    (directory / "budgets.csv").write_text(f"device,energy_budget_j\n{rows}")
    (directory / "devices.toml").write_text(
        f'[system]\ndevices = {devices}\nround_s = 30.0\n[devices]\ntable = "budgets.csv"\n'
    )
    (directory / "names.toml").write_text("north = 0\nsouth = 0\n")
    (code / "server_app.py").write_text(APP.format(out=out))
    strategy = runpy.run_path(str(code / "server_app.py"))["strategy"]
    assert strategy.scenario.system.devices == devices
    assert strategy.scenario.population.energy_budget_j.tolist()[:2] == [0.25, 0.5]
    assert strategy.deployment.directory.names == ["north", "south"]
    return strategy.out


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flower"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "flower"


def test_from_an_apps_own_directory(home: Path, tmp_path: Path) -> None:
    assert run_app(tmp_path / "cameras", "runs/monday") == tmp_path / "cameras" / "runs" / "monday"


def test_an_unpacked_app_has_its_runs_where_another_version_of_it_finds_them(home: Path) -> None:
    found = {run_app(home / "apps" / f"somebody.cameras.1.0.{n}.ab{n}", "monday", 2 + n) for n in range(2)}
    assert found == {home / "runs" / "somebody.cameras" / "monday"}


def test_flowers_home_is_in_the_users_home_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLWR_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = run_app(tmp_path / ".flwr" / "apps" / "somebody.cameras.1.0.0.ab", "monday")
    assert found == tmp_path / ".flwr" / "runs" / "somebody.cameras" / "monday"


def test_an_absolute_path_stays_as_it_is(home: Path, tmp_path: Path) -> None:
    assert run_app(home / "apps" / "somebody.cameras.1.0.0.ab", str(tmp_path / "out")) == tmp_path / "out"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a package that Flower uses
def test_a_table_of_devices_is_packed_with_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower packs no CSV, but it packs JSON Lines, and the app finds the table again."""
    app = tmp_path / "cameras"
    app.mkdir()
    (app / "pyproject.toml").write_text(
        '[project]\nname = "cameras"\nversion = "1.0.0"\nlicense = "Apache-2.0"\n\n[tool.flwr.app]\n'
        'publisher = "somebody"\n\n[tool.flwr.app.components]\n'
        'serverapp = "server_app:app"\nclientapp = "server_app:app"\n'
    )
    (app / "server_app.py").write_text(
        "from feelstream.flower import ScheduledFedAvg\n\n"
        'strategy = ScheduledFedAvg({"system": {"devices": 2}, "devices": {"table": "devices.jsonl"}})\napp = None\n'
    )
    (app / "devices.jsonl").write_text(
        '{"device": 0, "energy_budget_j": 0.25}\n{"device": 1, "energy_budget_j": 0.5}\n'
    )
    packed = build_fab_from_disk(app)
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        assert "devices.jsonl" in archive.namelist()
        archive.extractall(tmp_path / "unpacked")
    monkeypatch.chdir(tmp_path)
    strategy = runpy.run_path(str(tmp_path / "unpacked" / "server_app.py"))["strategy"]
    assert strategy.scenario.population.energy_budget_j.tolist() == [0.25, 0.5]
