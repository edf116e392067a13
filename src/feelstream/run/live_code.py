"""SHA-256 of code as it is in memory: what a class does, with all that it uses, constants too.

What counts is the code that runs, not its text: another comment is the same code, and another number is not. What
belongs to an installed package is known by its name; all else (the script or notebook, modules beside it) is followed.
"""

from __future__ import annotations

import builtins
import dis
import importlib.util
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from hashlib import sha256
from inspect import getattr_static
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

import numpy as np
from pydantic import BaseModel

from feelstream.user_code import digest_of_code, imported_from_beside, library_places

MAIN = "__main__"
PLAIN = {type(None), bool, int, float, complex, str, bytes, type(Ellipsis)}
SEVERAL = {list, tuple, dict, set, frozenset, MappingProxyType}
METHODS = (FunctionType, staticmethod, classmethod, property, cached_property)
OPAQUE = (GetSetDescriptorType, MemberDescriptorType)  # what Python makes of slots
OF_PYTHON = {"_abc_impl"}
ANYTHING = {"globals", "eval", "exec", "__import__", "import_module"}  # with these a function may use what it likes


def digest_of_live(thing: Any) -> str:
    """SHA-256 of a class or function.

    Where any part of it cannot be determined (a generator or an open file as a global variable, `eval`), it is a random
    one: equal to no other, so that no stored run is ever taken for this code's.
    """
    digest = sha256(sys.version.encode())  # byte code is that of one Python
    try:
        for part in _Walk().parts(thing):
            digest.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    except RecursionError:
        digest.update(secrets.token_bytes())
    return digest.hexdigest()


class _Walk:
    """Everything that decides what a value does, as texts; an object that is met again, as its number."""

    def __init__(self) -> None:
        self.met: dict[int, tuple[int, Any]] = {}  # with the object, for else another may have its id later
        self.used: set[tuple[int, tuple[str, ...]]] = set()  # modules, and the names that were looked up in them
        self.in_file = False  # whether what is met stands in a module whose file is part of the digest already

    def parts(self, value: Any) -> Iterator[str]:
        if type(value) in PLAIN:
            yield repr(value)
            return
        if id(value) in self.met:
            yield f"number {self.met[id(value)][0]}"
            return
        self.met[id(value)] = (len(self.met), value)
        yield type(value).__qualname__
        if isinstance(value, CodeType):
            yield from self._of_code(value)
        elif isinstance(value, FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, staticmethod | classmethod):
            yield from self.parts(value.__func__)
        elif isinstance(value, property | cached_property):
            for name in ("fget", "fset", "func"):
                yield from self.parts(getattr(value, name, None))
        elif isinstance(value, type):
            yield from self._of_class(value)
        elif isinstance(value, ModuleType):
            yield from self._of_module(value, ())
        elif isinstance(value, np.ufunc):
            yield value.__name__
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            yield f"{value.dtype.str} {value.shape} {sha256(value.tobytes()).hexdigest()}"
        elif type(value) in SEVERAL:
            yield from self._of_several(value)
        else:
            yield from self._of_object(value)

    def _of_several(self, value: Any) -> Iterator[str]:
        yield str(len(value))
        if isinstance(value, dict | MappingProxyType):
            value = [part for entry in value.items() for part in entry]
        if isinstance(value, set | frozenset):  # in no order
            yield from sorted(digest_of_live(entry) for entry in value)
        else:
            for entry in value:
                yield from self.parts(entry)

    def _of_object(self, value: Any) -> Iterator[str]:
        """What it would be pickled as: what makes it, from what, and its state."""
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType | type | None):
            yield f"{value.__module__}:{value.__qualname__}"
            return
        try:
            made = value.__reduce_ex__(4)
        except Exception:
            yield self._not_to_be_told()
            return
        if isinstance(made, tuple):
            for part in (*made[:3], *(list(entries or ()) for entries in made[3:5])):
                yield from self.parts(part)
        elif (inner := getattr_static(value, "__wrapped__", None)) is not None:  # a cache around a function
            yield from self.parts(inner)
        elif _is_of_installed(getattr(value, "__module__", None)):
            yield made
        else:
            yield self._not_to_be_told()

    def _not_to_be_told(self) -> str:
        return "" if self.in_file else secrets.token_hex()

    def _of_code(self, code: CodeType) -> Iterator[str]:
        yield code.co_code.hex()
        yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_names))
        yield repr((code.co_varnames, code.co_freevars, code.co_cellvars, code.co_exceptiontable))
        for constant in code.co_consts:
            yield from self.parts(constant)

    def _of_function(self, function: FunctionType) -> Iterator[str]:
        yield f"{function.__module__}:{function.__qualname__}"
        home = function.__globals__.get("__name__")
        for value in (function.__defaults__, function.__kwdefaults__, vars(function)):
            yield from self.parts(value)
        for cell in function.__closure__ or ():  # also where a decorator from elsewhere holds what is the user's
            yield from self.parts(_content(cell))
        if _is_of_installed(home):
            return
        if home != MAIN:
            yield from _of_file(function.__globals__.get("__file__"))
        yield from self._of_code(function.__code__)
        names = _names(function.__code__)
        with self._within(home):
            for name in names:
                if name in function.__globals__:
                    yield name
                    yield from self._used(function.__globals__[name], names)
            yield from self._set_on(builtins, tuple(name for name in names if name not in function.__globals__))
            for name in _imported_in(function.__code__):
                yield from self._imported(name, names)
            if ANYTHING.intersection(names):
                yield self._not_to_be_told()

    @contextmanager
    def _within(self, module: str | None) -> Iterator[None]:
        before = self.in_file
        self.in_file = module != MAIN and bool(getattr(sys.modules.get(module or ""), "__file__", None))
        yield
        self.in_file = before

    def _used(self, value: Any, names: tuple[str, ...]) -> Iterator[str]:
        if isinstance(value, ModuleType):
            yield from self._of_module(value, names)
        else:
            yield from self.parts(value)

    def _of_class(self, cls: type) -> Iterator[str]:
        yield f"{cls.__module__}:{cls.__qualname__}"
        if _is_of_installed(cls.__module__):
            return
        if cls.__module__ != MAIN:
            yield from _of_file(getattr(sys.modules.get(cls.__module__), "__file__", None))
        for base in cls.__bases__:
            yield from self.parts(base)
        if not _is_of_installed(type(cls).__module__):  # a metaclass decides what an attribute is
            yield from self.parts(type(cls))
        with self._within(cls.__module__):
            yield from self._of_attributes(cls)

    def _of_attributes(self, cls: type) -> Iterator[str]:
        for name, value in sorted(vars(cls).items()):
            its_own_name = name == "tag" and value == f"{cls.__module__}:{cls.__qualname__}"  # set when it is looked up
            dunder = name.startswith("__") and name.endswith("__")  # the rest of these is Python's or pydantic's
            if isinstance(value, METHODS) or not (dunder or its_own_name or name in OF_PYTHON):
                yield name
                yield from self.parts(value) if not isinstance(value, OPAQUE) else ()
        if not issubclass(cls, BaseModel):
            return
        for name, private in sorted(cls.__private_attributes__.items()):
            yield name
            yield from self.parts([private.default, private.default_factory])
        for name, field in sorted(cls.__pydantic_fields__.items()):
            if field.exclude:  # all others are part of the scenario
                yield name
                yield from self.parts([field.default, field.default_factory])

    def _of_module(self, module: ModuleType, names: tuple[str, ...]) -> Iterator[str]:
        """Its name; of one that is not installed also its file, what it imports from beside it, and what is used of it
        as it is by now: the file may be newer than what was imported, and a script may set what it likes."""
        yield module.__name__
        if (id(module), names) in self.used:
            return
        self.used.add((id(module), names))
        if _is_of_installed(module.__name__):
            yield from self._set_on(module, names)
            return
        if module.__name__ != MAIN:
            yield from _of_file(getattr(module, "__file__", None))
        with self._within(module.__name__):
            for name in names:
                if name in vars(module):
                    yield name
                    yield from self._used(vars(module)[name], names)

    def _set_on(self, module: ModuleType, names: tuple[str, ...]) -> Iterator[str]:
        """What is used of an installed module and may have been set by a script: all but the functions, classes and
        objects of installed packages."""
        for name in names:
            value = vars(module).get(name, module)
            if isinstance(value, ModuleType):
                if value is not module:
                    yield from self._of_module(value, names)
            elif _is_plain(value) or isinstance(value, partial) or not _is_of_installed(_home(value)):
                yield name
                yield from self.parts(value)

    def _imported(self, name: str, names: tuple[str, ...]) -> Iterator[str]:
        """What a function imports when it is called."""
        top = name.partition(".")[0]
        if top in sys.modules:
            yield from self._used(sys.modules[top], names)
            return
        try:
            found = importlib.util.find_spec(top)  # of a name without a dot: it imports nothing
        except (ImportError, ValueError):
            found = None
        if found is not None and found.origin and not _is_installed(Path(found.origin)):
            yield from _of_file(found.origin)


def _is_plain(value: Any) -> bool:
    if type(value) in SEVERAL:
        entries = [*value, *value.values()] if isinstance(value, dict | MappingProxyType) else value
        return all(type(entry) in PLAIN for entry in entries)
    return type(value) in PLAIN or isinstance(value, np.ndarray | np.generic)


def _home(value: Any) -> str | None:
    """The module of a function or class, or of the class of an object."""
    named = value if isinstance(value, type | FunctionType | BuiltinFunctionType) else type(value)
    return named.__module__


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty as yet
        return None


def _names(code: CodeType) -> tuple[str, ...]:
    """The names that a function, or one within it, may look up; attributes are among them, which does no harm."""
    return tuple(sorted({name for each in _codes(code) for name in each.co_names}))


def _imported_in(code: CodeType) -> list[str]:
    every = (step for each in _codes(code) for step in dis.get_instructions(each))
    return sorted({step.argval for step in every if step.opname == "IMPORT_NAME" and step.argval})


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _of_file(file: str | None) -> Iterator[str]:
    path = Path(file) if file else None
    if path is not None and path.suffix == ".py" and path.is_file():
        for each in (path, *imported_from_beside(path)):
            yield digest_of_code(each)


def _is_of_installed(module: str | None) -> bool:
    """Whether a module belongs to Python or to a package, whose versions are recorded elsewhere."""
    if module == MAIN or module is None:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return _is_installed(Path(file)) if file else module.partition(".")[0] in sys.stdlib_module_names


def _is_installed(path: Path) -> bool:
    ours = Path(__file__).parents[1].resolve()
    return any(path.resolve().is_relative_to(home) for home in (*library_places(), ours))
