"""The files that a scenario names, and what those import from beside them: all of it decides the outcome of a run."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from feelstream.inputs import digest_of
from feelstream.run.main_code import is_in_main, main_digest
from feelstream.user_code import digest_of_code, has_changed, imported_from_beside


def texts(value: Any) -> Iterator[str]:
    """All texts in a tree of tables and lists."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from texts(entry)
    elif isinstance(value, str):
        yield value


def named_files(scenario: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of the contents of every file that the scenario names: as a path, file.py:Name or package.module:Name.

    A Python file brings those that it imports from its own directory or package, by `import` or `from … import`. What
    is defined in a script or a notebook (`__main__:Name`) is known by its code.
    """
    digests: dict[str, str] = {}
    for text in texts(scenario):
        if is_in_main(text):
            if (code := main_digest(text)) is not None:
                digests[text] = code
            continue
        path = _file_of(text)
        if path is None:
            continue
        digests[text] = _digest(path)
        if path.suffix == ".py":
            home = path.resolve().parent
            for other in imported_from_beside(path):
                digests[f"{text} > {Path(os.path.relpath(other, home)).as_posix()}"] = _digest(other)
    return digests


def changed_code(scenario: dict[str, Any]) -> str | None:
    """The first name in a scenario whose file was run in this process and is another by now."""
    for text in texts(scenario):
        path = _file_of(text)
        if path is not None and path.suffix == ".py" and has_changed(path):
            return text
    return None


def _file_of(text: str) -> Path | None:
    where = text.rpartition(":")[0]
    try:
        if re.fullmatch(r"\w+(\.\w+)*", where) and not where.endswith(".py"):
            found = importlib.util.find_spec(where)
            path = Path(found.origin) if found and found.origin else None
        else:
            path = Path(where if where.endswith(".py") else text)
        return path if path is not None and path.is_file() else None
    except (ImportError, ValueError, OSError, AttributeError):  # not the name of anything
        return None


def _digest(path: Path) -> str:
    """Of what was run or read of the file, where that happened already."""
    return digest_of_code(path) if path.suffix == ".py" else digest_of(path)
