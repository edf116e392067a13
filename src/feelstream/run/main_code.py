"""The identity of code that lives in no file a run can name: a class written in a script or a notebook.

What counts is the code that ran, not its text: the byte code of the class's methods, and of all that they use of
`__main__`, with the constants among it. So another comment is the same code, and another number is not.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from feelstream.user_code import digest_of_code, imported_from_beside

MAIN = "__main__"
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def is_in_main(name: str) -> bool:
    """Whether a name in a scenario is that of something in the script or notebook that runs."""
    return name.startswith(f"{MAIN}:")


def main_digest(name: str) -> str | None:
    """SHA-256 of the code behind `__main__:Name`; None where there is no such thing.

    Where any part of it cannot be determined (an object of some other library as a global variable), the digest
    is a random one: equal to no other, so that no stored run is ever taken for this code's.
    """
    try:
        found = attrgetter(name.partition(":")[2])(sys.modules[MAIN])
    except AttributeError:
        return None
    digest = sha256(sys.version.encode())  # byte code is that of one Python
    for part in _parts(found, set()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """Everything that decides what a value does, as texts; each object once."""
    if isinstance(value, PLAIN):
        yield repr(value)
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, CodeType):
        yield from _of_code(value, seen)
    elif isinstance(value, FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, staticmethod | classmethod):
        yield from _parts(value.__func__, seen)
    elif isinstance(value, property | cached_property):
        for name in ("fget", "fset", "func"):
            yield from _parts(getattr(value, name, None), seen)
    elif isinstance(value, type):
        yield from _of_class(value, seen)
    elif isinstance(value, ModuleType):
        yield from _of_module(value)
    elif isinstance(value, BuiltinFunctionType | np.ufunc):
        yield f"{getattr(value, '__module__', '')}:{value.__name__}"
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield f"{value.dtype.str} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, list | tuple):
        yield type(value).__name__
        for entry in value:
            yield from _parts(entry, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted("".join(_parts(entry, seen)) for entry in value)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _parts(key, seen)
            yield from _parts(entry, seen)
    else:
        yield secrets.token_hex()


def _of_code(code: CodeType, seen: set[int]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_names))
    yield repr((code.co_varnames, code.co_freevars, code.co_cellvars, code.co_exceptiontable))
    for constant in code.co_consts:
        yield from _parts(constant, seen)


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    if function.__module__ != MAIN:
        yield from _elsewhere(function)
        return
    yield from _of_code(function.__code__, seen)
    for value in (function.__defaults__, function.__kwdefaults__):
        yield from _parts(value, seen)
    for cell in function.__closure__ or ():
        yield from _parts(cell.cell_contents, seen)
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name
            yield from _parts(function.__globals__[name], seen)


def _names(code: CodeType) -> list[str]:
    """The names that a function, or one within it, may look up; attributes are among them, which does no harm."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return sorted({*code.co_names, *(name for each in inner for name in _names(each))})


def _of_class(cls: type, seen: set[int]) -> Iterator[str]:
    if cls.__module__ != MAIN:
        yield from _elsewhere(cls)
        return
    yield cls.__qualname__
    for base in cls.__bases__:
        yield from _parts(base, seen)
    for name, value in sorted(vars(cls).items()):
        ours = isinstance(value, FunctionType | staticmethod | classmethod | property | cached_property)
        if ours or not name.startswith(("_", "model_")):  # the rest is pydantic's
            yield name
            yield from _parts(value, seen)


def _elsewhere(thing: Any) -> Iterator[str]:
    yield f"{thing.__module__}:{thing.__qualname__}"
    module = sys.modules.get(thing.__module__)
    if module is not None:
        yield from _of_module(module)


def _of_module(module: ModuleType) -> Iterator[str]:
    """Its name; of a file that is not installed, its contents and those of what it imports from beside it."""
    yield module.__name__
    file = getattr(module, "__file__", None)
    path = Path(file) if file else None
    if path is None or path.suffix != ".py" or _is_installed(path):
        return
    for each in (path, *imported_from_beside(path)):
        yield digest_of_code(each)


def _is_installed(path: Path) -> bool:
    """Whether a file belongs to Python or to a package, whose versions are recorded elsewhere."""
    ours = Path(__file__).parents[1]
    homes = [Path(sys.prefix), Path(sys.base_prefix), ours, *(Path(p) for p in sys.path if p.endswith("-packages"))]
    return any(path.resolve().is_relative_to(home.resolve()) for home in homes)
