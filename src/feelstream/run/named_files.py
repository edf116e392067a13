"""The files that a scenario names, and what those import from beside them: all of it decides the outcome of a run."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from feelstream.inputs import digest_of
from feelstream.plugins import Inert
from feelstream.run.live_code import digest_of_live
from feelstream.run.main_code import found_in_main, is_in_main
from feelstream.scenario import Scenario
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


def named_files(scenario: Scenario) -> dict[str, str]:
    """SHA-256 of the contents of every file that the scenario names: as a path, file.py:Name or package.module:Name.

    A Python file brings those that it imports from its own directory or package, by `import` or `from … import`. What
    is defined in a script or a notebook (`__main__:Name`) is known by its code, and what an installed package offers
    by the file of its class.
    """
    digests: dict[str, str] = {}
    classes = {part.plugin_name(): type(part) for part in scenario.plugins() if not isinstance(part, Inert)}
    for text in texts(scenario.as_dict()):
        if is_in_main(text):
            if (found := classes.get(text) or found_in_main(text)) is not None:
                digests[text] = digest_of_live(found)
            continue
        path = _file_of(text) or _file_of_class(classes.get(text))
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


def _file_of_class(cls: type | None) -> Path | None:
    """The file of a plug-in that is known by a name of its package's choice; ours have the version of the package."""
    if cls is None or cls.__module__.startswith(f"{__name__.partition('.')[0]}."):
        return None
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return Path(file) if file else None


def _file_of(text: str) -> Path | None:
    where = text.rpartition(":")[0]
    try:
        if re.fullmatch(r"\w+(\.\w+)*", where) and not where.endswith(".py"):
            found = importlib.util.find_spec(where)
            path = found.origin if found else None
        else:
            path = where if where.endswith(".py") else text
        return Path(path) if path and os.path.isfile(path) else None  # most texts name none: no Path is made of them
    except (ImportError, ValueError, OSError, AttributeError):  # not the name of anything
        return None


def _digest(path: Path) -> str:
    """Of what was run or read of the file, where that happened already."""
    return digest_of_code(path) if path.suffix == ".py" else digest_of(path)
