"""The files that a scenario names, and what those import from beside them: all of it decides the outcome of a run."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from feelstream.run.main_code import is_in_main, main_digest


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


def imported_from_beside(path: Path) -> list[Path]:
    """The Python files that this one imports, directly or not, from its own directory or package; sorted."""
    path = path.resolve()
    found, waiting = {path}, [path]
    while waiting:
        for other in _imports_of(waiting.pop()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return sorted(found - {path})


def _imports_of(path: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):  # importing it will tell
        return
    root = path.parent
    while (root / "__init__.py").is_file() and root != root.parent:  # of a package: where its absolute imports begin
        root = root.parent
    homes = {path.parent, root}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                for home in homes:
                    yield from _module_files(home, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            origin = node.module.split(".") if node.module else []
            starts = [path.parents[node.level - 1]] if 0 < node.level <= len(path.parents) else homes
            for start in starts if node.level else homes:
                yield from _module_files(start, origin)
                for alias in node.names:
                    yield from _module_files(start, [*origin, alias.name])


def _module_files(home: Path, names: list[str]) -> Iterator[Path]:
    """The file of a module and those of the packages it is in, as far as they are here."""
    for count in range(1, len(names) + 1):
        stem = home.joinpath(*names[:count])
        for file in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
            if file.is_file():
                yield file.resolve()


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
    return sha256(path.read_bytes()).hexdigest()
