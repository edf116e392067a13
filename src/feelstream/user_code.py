"""Users' own Python files: loaded once, from the very bytes that their SHA-256 is of.

Python itself may run what it compiled from an earlier version of a file (it goes by a time in whole seconds and the
size), and says nothing of what it read. So the files that a scenario names, and those that they import from their own
directory, are loaded here.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PREFIX = "feelstream_user_"
_ran: dict[Path, str] = {}  # SHA-256 of what was run, by resolved path
_specs: dict[Path, Any] = {}  # with which Python imported what it imported by itself
_held: dict[Path, bytes] = {}  # what a digest is of, of files that nothing has run yet: a function may import them
_borrowed: dict[str, ModuleType] = {}  # modules that users' files imported from beside them, by name


class _AsRead(SourceFileLoader):
    """Compiles what it reads, or what was read of the file when a run was made, and notes what that was."""

    def get_code(self, fullname: str) -> CodeType | None:
        file = self.get_filename(fullname)
        path = Path(file).resolve()
        source = _held.pop(path, None)
        source = path.read_bytes() if source is None else source
        code = compile(source, file, "exec", dont_inherit=True)
        _ran[path] = sha256(source).hexdigest()
        return code

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if not module.__name__.startswith(PREFIX):
            _borrowed[module.__name__] = module


LOADERS: Any = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (_AsRead, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


def digest_of_code(path: Path) -> str:
    """SHA-256 of a Python file: of what was run in this process, or, if nothing was, of what is there.

    That is then what runs, if a function imports it later, whatever becomes of the file.
    """
    path = path.resolve()
    if path in _ran:
        return _ran[path]
    _held[path] = path.read_bytes()
    return sha256(_held[path]).hexdigest()


def note_imported(module: str) -> None:
    """Remember what the file of a module holds while Python imports it: later it may hold something else.

    What it imports from beside it was imported before; of that the first that was seen since then counts.
    """
    file = getattr(sys.modules.get(module), "__file__", None)
    if module == "__main__" or module.startswith(PREFIX) or not file or not file.endswith(".py"):
        return
    path = Path(file).resolve()
    loaded = {str(getattr(each, "__file__", "")): each for each in list(sys.modules.values())}
    for each in (path, *imported_from_beside(path)):
        spec = getattr(loaded.get(str(each)), "__spec__", None)  # another one after each import
        if each == path or each not in _ran or (spec is not None and _specs.get(each) is not spec):
            with suppress(OSError):  # from an archive, or gone by now: nothing can be told
                _ran[each], _specs[each] = sha256(each.read_bytes()).hexdigest(), spec


def load(path: Path, *, again: bool = False) -> Any:
    """The module of a file. again: run it anew if it, or a file beside it that it imports, has changed since."""
    path = path.resolve()
    # The name holds the path, so two files of one name do not collide, and a file is run once.
    name = f"{PREFIX}{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules and again and _changed(path):
        _forget(path)
        del sys.modules[name]
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path, loader=_AsRead(name, str(path)))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with _beside(path.parent):
                spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
    return sys.modules[name]


def is_current(cls: type) -> bool:
    """Whether a class of a user's file is still the one that the file stands for, after what was loaded since."""
    if not cls.__module__.startswith(PREFIX):
        return True
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is cls or "<locals>" in cls.__qualname__


def has_changed(path: Path) -> bool:
    """Whether a file that was run in this process, or one beside it that it imports, is another by now."""
    path = path.resolve()
    return path in _ran and _changed(path)


def _changed(path: Path) -> bool:
    try:
        files = (path, *(each for each in imported_from_beside(path) if each in _ran))
        return any(sha256(each.read_bytes()).hexdigest() != _ran.get(each) for each in files)
    except OSError:
        return True  # loading it will tell


def _forget(path: Path) -> None:
    """Let the modules beside a file be imported anew too: one of them may be what has changed."""
    for name, module in list(_borrowed.items()):
        if Path(module.__file__ or "").parent == path.parent:
            del _borrowed[name]
            _ran.pop(Path(module.__file__ or "").resolve(), None)
            if sys.modules.get(name) is module:
                del sys.modules[name]


@contextmanager
def _beside(directory: Path) -> Iterator[None]:
    """Let a file import from its own directory, as a script may; a module of that name from another's does not count.

    Afterwards the directory comes last in sys.path, for imports that only happen when a function is called.
    """
    place = str(directory)
    for file in [file for file in _held if file.parent == directory]:
        del _held[file]  # the file is loaded as it is now
    hidden = {
        name: sys.modules.pop(name)
        for name, module in _borrowed.items()
        if sys.modules.get(name) is module and Path(module.__file__ or "").parent != directory
    }
    before = set(sys.modules)
    finder: Any = _Here(place)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if place not in sys.path:
            sys.path.append(place)
        sys.path_importer_cache[place] = FileFinder(place, *LOADERS)  # so that those are noted too
        for name in sys.modules.keys() - before:
            module = sys.modules[name]
            if Path(getattr(module, "__file__", None) or "").parent == directory:
                _borrowed[name] = module
        for name, module in hidden.items():
            sys.modules.setdefault(name, module)


class _Here:
    """Finds modules in one directory, before all other places."""

    def __init__(self, place: str) -> None:
        self.files = FileFinder(place, (_AsRead, [".py"]))

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if path is not None:
            return None  # within a package, which knows its own places
        found = self.files.find_spec(fullname)
        return found if found is not None and found.loader is not None else None


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
    # Among installed packages all others lie beside this one, and none of them is the user's: only its own counts.
    own = path.relative_to(root).with_suffix("").parts[0] if root in library_places() else None

    def absolute(names: list[str]) -> Iterator[Path]:
        for home in homes:
            if home != root or own in (None, names[0]):
                yield from _module_files(home, names)

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from absolute(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            origin = node.module.split(".") if node.module else []
            for names in (origin, *([*origin, alias.name] for alias in node.names)):
                if 0 < node.level <= len(path.parents):
                    yield from _module_files(path.parents[node.level - 1], names)
                elif names:
                    yield from absolute(names)


def library_places() -> frozenset[Path]:
    """Where Python keeps modules: its own and installed packages. Not by its prefix: projects may lie below /usr."""
    return _places(tuple(place for place in sys.path if place.endswith("-packages")))


@cache
def _places(more: tuple[str, ...]) -> frozenset[Path]:
    known = sysconfig.get_paths()
    return frozenset(
        Path(place).resolve()
        for place in (*(known[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")), *more)
    )


def _module_files(home: Path, names: list[str]) -> Iterator[Path]:
    """The file of a module and those of the packages it is in, as far as they are here."""
    for count in range(1, len(names) + 1):
        stem = home.joinpath(*names[:count])
        for file in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
            if file.is_file():
                yield file.resolve()
