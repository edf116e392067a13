"""Which stored runs of a plan are played again because a file has changed that they were made from."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feelstream import code
from feelstream.errors import RunError
from feelstream.experiment.identity import canonical
from feelstream.experiment.plan import Plan
from feelstream.experiment.store import Key
from feelstream.run.manifest import Manifest


def tell_repeated(
    stored_runs: Path,
    earlier: Mapping[str, Any],
    plan: Plan,
    directories: Mapping[Key, Path],
    known: Mapping[str, Mapping[str, Any]],
) -> None:
    """Say so before they are. earlier: the plan that is stored, with its runs; directories: where the plan's runs are
    or will be; known: what each arm is made with.
    """
    arms = {arm.label: arm for arm in plan.arms}
    runs, changed, without = 0, set[str](), set[str]()
    for stored in earlier["arms"]:
        arm = arms.get(stored["label"])
        if arm is None or arm.label not in known or canonical(arm.scenario.as_dict()) != canonical(stored["scenario"]):
            continue
        new, once = known[arm.label]["files"], set(code.without_file(arm.scenario))
        for seed, name in stored["runs"].items():
            here = directories.get((arm.label, int(seed)))
            if here is None or here.exists() or (old := _files(stored_runs / name)) is None:
                continue
            other = {file for file in old | new if old.get(file) != new.get(file)}
            runs, changed, without = runs + bool(other or once), changed | (other - once), without | once
    if not runs:
        return
    script = {name for name in changed if name.startswith(code.MAIN) and " > " not in name}
    files = {name.rpartition(" > ")[2] for name in changed - script}
    why = [f"{file.rpartition(':')[0] or file} has changed" for file in sorted(files)]
    why += ["the script has changed"] * bool(script) + [f"{name} has no file" for name in sorted(without)]
    keep = "; in a file of its own (file.py:Name) a policy keeps its runs" if script or without else ""
    are = "stored run is" if runs == 1 else "stored runs are"
    logging.getLogger("feelstream").warning(f"{runs} {are} played again, since {' and '.join(why)}{keep}")


def _files(directory: Path) -> dict[str, str] | None:
    """The files that a finished run was made from; None where there is none that can be used."""
    try:
        manifest = Manifest.read(directory)
    except RunError:
        return None
    return manifest.files if manifest.complete else None
