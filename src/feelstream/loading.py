"""Users' own Python files, loaded by their path: once in a process, and from the bytes that their SHA-256 is of."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from feelstream import code


def load(path: Path) -> Any:
    """The module of a file, which may import from its own directory."""
    path = path.resolve()
    # The name holds the path, so that two files of one name do not collide.
    name = f"feelstream_user_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        content, known = path.read_bytes(), path in code.held
        code.check_held(path, content)
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        try:
            with _beside(path):
                exec(compile(content, str(path), "exec", dont_inherit=True), vars(module))
        except BaseException:
            del sys.modules[name]
            if not known:  # it may be mended
                del code.held[path]
            raise
    return sys.modules[name]


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Let a file import from its own directory, before all others; afterwards that comes last, for what functions do.

    A module that another directory has by that name, or that was imported before its file was held, is set aside.
    """
    home, known = path.parent, set(code.held) - {path}
    files = code.with_imported([path])
    tops = {file.relative_to(home).parts[0].removesuffix(".py") for file in files if file.is_relative_to(home)}
    tops -= {code.OURS, *sys.stdlib_module_names}
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
