"""Profiles of CPU cores: ours by name (cores.toml beside this file), a user's own by the path of a TOML file."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from feelstream import code
from feelstream.errors import ScenarioError
from feelstream.model.energy import Core
from feelstream.plugins import near_or_all
from feelstream.scenario.fields import first_problem


@cache
def our_cores() -> dict[str, Core]:
    """The profiles that come with the package, by name."""
    text = resources.files("feelstream.scenario").joinpath("cores.toml").read_text(encoding="utf-8")
    return {name: Core.model_validate(table) for name, table in tomllib.loads(text).items()}


def core(name: str) -> Core:
    """The profile of this name, or in this file.

    >>> core("rk3399-a72").voltage_v[0]
    0.825
    """
    if name in our_cores():
        return our_cores()[name]
    path = Path(name)
    if path.suffix != ".toml":
        meant = near_or_all(name, list(our_cores()), ", or the path of a .toml file")
        raise ScenarioError(f"cpu.profile: '{name}' is not known; {meant}")
    try:
        return _parsed(path, code.read(path)[0])
    except OSError as problem:
        raise ScenarioError(f"cpu.profile: cannot read {path}: {problem.strerror or problem}") from problem


@lru_cache(maxsize=100)  # which may be asked for often
def _parsed(path: Path, content: bytes) -> Core:
    try:
        table: Any = tomllib.loads(content.decode())
        return Core.model_validate(table)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ScenarioError(f"cpu.profile: {path} is not a TOML file: {problem}") from problem
    except ValidationError as problem:
        raise ScenarioError(f"cpu.profile: in {path}, {first_problem(problem, model=Core)}") from problem
