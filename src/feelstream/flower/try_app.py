"""`feelstream flower try`: an app from its directory, in the world of a scenario."""

from __future__ import annotations

import random
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
from flwr.app import Context, RecordDict

from feelstream.errors import FeelstreamError, RunError, sentence_and_place
from feelstream.flower.world_grid import WorldGrid
from feelstream.run import Run, read
from feelstream.scenario import Scenario


def try_app(
    directory: Path, scenario: Scenario, out: Path, *, seed: int = 0, settings: Iterable[str] = (), name: str = ""
) -> Run:
    """Run it to its end. settings: TOML that replaces some of its pyproject.toml; name: what reports call its strategy.

    Where `Scheduled` drives it keeps the run directory itself: the app's setting `out`, if there is one, is this one.
    """
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; choose another directory")
    file = directory / "pyproject.toml"
    if not file.is_file():
        raise RunError(f"{directory} is not the directory of a Flower app: it has no pyproject.toml")
    try:
        about = tomllib.loads(file.read_text(encoding="utf-8"))
        named, app = about["project"]["name"], about["tool"]["flwr"]["app"]
        server, client = app["components"]["serverapp"], app["components"]["clientapp"]
        changes = [_flat(tomllib.loads(text)) for text in settings]
    except tomllib.TOMLDecodeError as problem:
        raise RunError(f"{file} and --run-config must be TOML, as in --run-config 'lr=0.1': {problem}") from problem
    except (KeyError, TypeError) as problem:
        raise RunError(f"{file} is not that of a Flower app: it lacks {problem}") from problem
    config = _flat(app.get("config", {}))
    config |= {"out": str(out.absolute())} if "out" in config else {}
    for change in changes:
        if unknown := change.keys() - config.keys():
            raise RunError(f"--run-config: the app has no setting '{min(unknown)}'; it has {', '.join(config)}")
        config |= change
    sys.path.insert(0, str(directory.absolute()))
    random.seed(seed)  # strategies sample by it
    np.random.seed(seed % 2**32)  # noqa: NPY002  (as apps do)
    try:
        grid = WorldGrid(scenario, resolve_name(client), seed=seed, run_config=config, name=name or named)
        resolve_name(server)(grid, Context(1, 0, {}, RecordDict(), config))
    except FeelstreamError:
        raise
    except Exception as problem:
        raise RunError(f"the app failed: {sentence_and_place(problem)}") from problem
    if grid.scheduled and not (out / "run.json").is_file():
        raise RunError("Scheduled keeps the run: let the app have a setting 'out', and give it to Scheduled(out=…)")
    return read(out) if grid.scheduled else grid.finish(out)


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Settings by the names under which an app finds them."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found
