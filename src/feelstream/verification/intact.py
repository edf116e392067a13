"""Whether the files of a run are the ones that it wrote, by their SHA-256; nothing else has parsed them yet."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from feelstream.errors import RunError

SEAL = "sha256"  # the field of run.json that holds the SHA-256 of all others


def read_sealed(path: Path) -> Any:
    """run.json, which must have the SHA-256 that it states: that of its fields, sorted and written without spaces."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        fields = {name: value for name, value in tree.items() if name != SEAL} if isinstance(tree, dict) else tree
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    except FileNotFoundError:
        raise RunError(f"{path.parent} is not a run directory: it has no run.json.") from None
    except (OSError, ValueError, RecursionError):
        raise RunError(f"{path} is damaged: it cannot be read as JSON.") from None
    if isinstance(tree, dict) and SEAL in tree and tree[SEAL] != hashlib.sha256(text.encode()).hexdigest():
        raise RunError(f"{path} is damaged: its contents do not have the SHA-256 that it states.")
    return tree


def check_files(directory: Path, tables: tuple[str, ...]) -> int:
    """Compare every file that run.json lists with its SHA-256, `tables` among them; how many there are, and run.json.

    Nothing has parsed the tables yet.
    """
    about = read_sealed(directory / "run.json")
    digests = about.get("digests")
    if SEAL not in about or not isinstance(digests, dict) or not digests.keys() >= set(tables):
        names = " and ".join(("run.json", *tables))
        raise RunError(f"run.json lacks the SHA-256 of {names}, without which the run cannot be verified.")
    for name, wanted in digests.items():
        path = directory / name
        if Path(name).name != name or not path.is_file():
            raise RunError(f"{directory} is not a whole run: {name} is missing.")
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise RunError(f"{path} cannot be read: {problem.strerror}.") from None
        if found != wanted:
            raise RunError(f"{path} is damaged or was changed: its SHA-256 is not the one in run.json.")
    return 1 + len(digests)
