"""Which files a run is made from, each known by the SHA-256 of the bytes that were read, whatever it holds later.

Of code these are the files of all classes and functions that its scenario names, and what these files import of their
own directory or package. Such a file is known by what it held when this process first asked: when a class of it was
made, or before it was loaded. If it holds something else when a run starts, that is refused. What else may decide is in
docs/trust.md.
"""

from __future__ import annotations

import ast
import importlib.util
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from inspect import unwrap
from itertools import groupby
from operator import attrgetter
from os.path import isfile, relpath
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from feelstream.errors import ScenarioError

OURS = "feelstream"
MAIN = "__main__:"  # begins the names of what the script or notebook that runs defines
_taken: ContextVar[dict[Path, str] | None] = ContextVar("taken", default=None)
held: dict[Path, tuple[str, list[Path]]] = {}  # SHA-256 of files, and what they import, when they were first asked for


@contextmanager
def taking() -> Iterator[None]:
    """While a run is made: what is read of a file first is what its digest is of."""
    token = _taken.set({})
    try:
        yield
    finally:
        _taken.reset(token)


def read(path: Path) -> tuple[bytes, str]:
    """The contents of a file and their SHA-256; OSError where others were read of it in the making of this run."""
    content = path.read_bytes()
    digest = sha256(content).hexdigest()
    taken = _taken.get()
    if taken is not None and taken.setdefault(path.resolve(), digest) != digest:
        raise OSError(f"{path} changed while it was read; give the same command again")
    return content, digest


def taken_digest(path: Path) -> str:
    """SHA-256 of a file as it was read in the making of this run, or as it is now if it was not read."""
    taken = _taken.get()
    known = taken.get(path.resolve()) if taken is not None else None
    return known or read(path)[1]


def stamp(path: Path) -> tuple[int, ...] | None:
    """Equal only while a file is the same: by its place on the disk, size and times, of which users can set but one."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def hold(path: Path, content: bytes = b"") -> tuple[str, list[Path]]:
    """The SHA-256 of a file, now and from now on, and the files that it imports."""
    if path not in held:
        content = content or path.read_bytes()
        held[path] = sha256(content).hexdigest(), list(_imports(path, content))
    return held[path]


def with_imported(files: list[Path]) -> dict[Path, str]:
    """SHA-256 of these files and of all that they import, directly or not."""
    found = dict[Path, str]()
    while files:
        if (file := files.pop()) not in found:
            found[file], more = hold(file)
            files += more
    return found


def note(module: str, found: Any) -> None:
    """Hold the file of a class or function of the user's, and what it imports, as they are now."""
    if module.partition(".")[0] != OURS and (path := _file(module, found)) is not None:
        with_imported([path])


def texts(value: Any) -> Iterator[str]:
    """All texts in a tree of tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from texts(entry)


def named_files(scenario: Any) -> dict[str, str]:
    """SHA-256 by name of all code and data files that a scenario names; `NAME > FILE` is what the code imports."""
    digests = {text: taken_digest(Path(text)) for text in texts(scenario.as_dict()) if isfile(text)}
    for name, path in _code(scenario):
        digests[name], files = _known(path)
        for file in sorted(files.keys() - {path}):
            digests[f"{name} > {Path(relpath(file, path and path.parent)).as_posix()}"] = files[file]
    return digests


def without_file(scenario: Any) -> list[str]:
    """Names whose finished runs are never used again: no file says all of what they do."""
    return [name for name, path in _code(scenario) if path is None or "<locals>" in name]


def check(scenario: Any) -> None:
    """Refuse to run code whose file holds something else by now."""
    for file in [file for _, path in _code(scenario) for file in _known(path)[1]]:
        check_held(file, file.read_bytes() if file.is_file() else b"")


def check_held(file: Path, content: bytes) -> None:
    """Refuse a file that holds this by now, where that is not what was held of it."""
    if hold(file, content)[0] != sha256(content).hexdigest():
        raise ScenarioError(f"{file} changed after it was loaded; start Python (a notebook's kernel) again to run it")


def _code(scenario: Any) -> Iterator[tuple[str, Path | None]]:
    """The names of code that is not ours, each with its file; None where it has none."""
    classes = {part.plugin_name(): type(part) for part in scenario.plugins()}
    for text in sorted(set(texts(scenario.as_dict()))):
        where, _, name = text.rpartition(":")
        module = classes[text].__module__ if text in classes else where
        if where.endswith(".py"):
            if (path := Path(where).resolve()) in held or path.is_file():
                yield text, path
        elif module in sys.modules and module.partition(".")[0] != OURS:
            with suppress(AttributeError):  # names nothing
                yield text, _file(module, classes.get(text) or attrgetter(name)(sys.modules[module]))
        elif where == module and where.replace(".", "").isidentifier():  # may be imported later
            with suppress(ImportError, ValueError, AttributeError):
                if (spec := importlib.util.find_spec(where)) and spec.origin and isfile(spec.origin):
                    yield text, Path(spec.origin).resolve()


def _file(module: str, found: Any) -> Path | None:
    """The file of a module, unless this class or function of it was typed in somewhere else."""
    file = getattr(sys.modules.get(module), "__file__", None)
    parts = (getattr(part, "__func__", part) for part in (found, *getattr(found, "__dict__", {}).values()))
    own = [unwrap(part) for part in parts if isinstance(part, FunctionType) and part.__module__ == module]
    typed_in = own and all(part.__code__.co_filename != file for part in own)
    return Path(file).resolve() if file and isfile(file) and not typed_in else None


def _known(path: Path | None) -> tuple[str, dict[Path, str]]:
    """SHA-256 of code, and of the files that make it up. Where it has none: of all cells that a notebook has run so far
    (again at once counts once), so that an unfinished run goes on after the same cells; else like no other."""
    if path:
        return hold(path)[0], with_imported([path])
    cells = [cell for cell, _ in groupby(getattr(sys.modules["__main__"], "In", [])) if cell]  # IPython's list
    files = [file for cell in cells for file in _imports(Path.cwd() / "notebook", cell.encode())]
    return sha256("\0".join(cells).encode()).hexdigest() if cells else secrets.token_hex(32), with_imported(files)


def _imports(path: Path, content: bytes) -> Iterator[Path]:
    """The files that code imports, also in functions, of its own directory and package; if installed, of that alone."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):  # importing it will tell
        return
    root = path.parent
    while (root / "__init__.py").is_file():  # of a package: where its absolute imports begin
        yield (root / "__init__.py").resolve()
        root = root.parent
    own = path.relative_to(root).parts[0].removesuffix(".py")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            level, origin = getattr(node, "level", 0), getattr(node, "module", None)
            every = [".".join(filter(None, (origin, alias.name))).split(".") for alias in node.names]
            for home in path.parents[level - 1 : level] if level else {path.parent, root}:
                alone = not level and home.name.endswith("-packages")  # the others there are not the user's
                for names in [names for names in every if names[0] == own or not alone]:
                    for stem in (home.joinpath(*names[: count + 1]) for count in range(len(names))):
                        files = stem.with_name(f"{stem.name}.py"), stem / "__init__.py"
                        yield from (file.resolve() for file in files if file.is_file())


def load(path: Path) -> Any:
    """The module of a file, which may import from its own directory."""
    path = path.resolve()
    # The name holds the path, so that two files of one name do not collide.
    name = f"feelstream_user_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        content, known = path.read_bytes(), path in held
        check_held(path, content)
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        try:
            with _beside(path):
                exec(compile(content, str(path), "exec", dont_inherit=True), vars(module))
        except BaseException:
            del sys.modules[name]
            if not known:  # it may be mended
                del held[path]
            raise
    return sys.modules[name]


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Let a file import from its own directory, before all others; afterwards that comes last, for what functions do.

    A module that another directory has by that name, or that was imported before its file was held, is set aside.
    """
    home, known = path.parent, set(held) - {path}
    files = with_imported([path])
    tops = {file.relative_to(home).parts[0].removesuffix(".py") for file in files if file.is_relative_to(home)}
    tops -= {OURS, *sys.stdlib_module_names}
    aside = dict[str, ModuleType]()
    for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
        file = Path(getattr(sys.modules[name], "__file__", None) or "").resolve()
        installed = any(part.endswith("-packages") for part in file.parts)
        if not installed and not (file in files and file in known):
            aside[name] = sys.modules.pop(name)
    for file in files:
        compiled = Path(importlib.util.cache_from_source(str(file)))
        with suppress(OSError):  # there is none; else Python would run it if both are of one second and one size
            if compiled.stat().st_mtime_ns < file.stat().st_ctime_ns:
                compiled.unlink()
    importlib.invalidate_caches()
    sys.path.insert(0, str(home))
    try:
        yield
    finally:
        sys.path.remove(str(home))
        if str(home) not in sys.path:
            sys.path.append(str(home))
        for name, module in aside.items():
            sys.modules.setdefault(name, module)
