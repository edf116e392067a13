"""Relative paths of a Flower app, wherever the SuperLink was started.

What an app brings with it (`scenario`, its `devices.table`, a file of `names`) is found in the app's directory, the one
with its pyproject.toml. What it leaves behind (`out`) is put there too, unless Flower has unpacked the app: that copy
has a name with a hash of the code, so nobody would find it, and a change of the code would start the run again. The
runs of such an app are in `runs/PUBLISHER.APP` of Flower's home.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feelstream.scenario.overrides import Override

OURS = Path(__file__).parent
RUNS = "runs"  # beside Flower's own `apps`


def app_directory() -> Path | None:
    """The directory, with a pyproject.toml, of the app whose code is calling; None outside of any."""
    for frame in inspect.stack(0)[1:]:
        file = Path(frame.filename)
        if not file.is_file() or OURS in file.parents:
            continue
        for directory in file.resolve().parents:
            if (directory / "pyproject.toml").is_file():
                return directory
        return None
    return None


def from_app(path: str | Path) -> Path:
    """A file of the app's as the app means it."""
    given = Path(path).expanduser()
    directory = None if given.is_absolute() else app_directory()
    return given if directory is None else directory / given


def run_directory(out: str | Path) -> Path:
    """Where the app's run is kept; absolute, so that what is printed of it can be found."""
    given = Path(out).expanduser()
    directory = None if given.is_absolute() else app_directory()
    if directory is None:
        return given.absolute()
    home = Path(os.environ.get("FLWR_HOME") or "~/.flwr").expanduser().resolve()
    if directory.parent != home / "apps":
        return directory / given
    about = tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))
    name = f"{about['tool']['flwr']['app']['publisher']}.{about['project']['name']}"  # Flower has checked them
    return home / RUNS / name / given


def scenario_from_app(name: str | Path) -> str | Path:
    """A scenario's file as the app means it; the name of a preset stays as it is."""
    found = from_app(name) if Path(name).suffix else Path(name)
    return found if found.is_file() else name


def own_table(given: Mapping[str, Any] | str | Path) -> list[Override]:
    """What lets a relative `devices.table` of a scenario be the file in the app's directory, where there is one."""
    tables: Any = given
    if not isinstance(given, Mapping):
        try:
            tables = tomllib.loads(Path(given).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):  # a preset; or what is wrong is said where it is read
            return []
    devices = tables.get("devices")
    table = devices.get("table") if isinstance(devices, Mapping) else None
    if not isinstance(table, str) or not table or not (found := from_app(table)).is_file():
        return []
    return [Override("devices.table", str(found))]
