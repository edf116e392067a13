"""Relative paths of a Flower app: they are meant from the app, not from where the SuperLink was started."""

from __future__ import annotations

import inspect
from pathlib import Path

OURS = Path(__file__).parent


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
    """The path as the app means it."""
    given = Path(path).expanduser()
    directory = None if given.is_absolute() else app_directory()
    return given if directory is None else directory / given


def scenario_from_app(name: str | Path) -> str | Path:
    """A scenario's file as the app means it; the name of a preset stays as it is."""
    found = from_app(name) if Path(name).suffix else Path(name)
    return found if found.is_file() else name
