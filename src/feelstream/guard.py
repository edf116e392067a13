"""What plug-ins promise, and the one way to call them: whatever a user's own does wrong becomes a sentence.

A contract stands beside the base class of a kind, as data: for each method what comes out of it, its shape, range and
laws. `ask` calls a method and holds what it gives to that; what goes in is read-only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from feelstream.arrays import Nested, read_only
from feelstream.errors import FeelstreamError, PluginError
from feelstream.plugins import Named, Plugin, in_a_sentence

Sizes = Mapping[str, int]  # of the axes that shapes name: K devices, n of them, d parameters, …
Law = Callable[..., str | None]  # of the plug-in, what came out, and what went in: what is wrong with it
Method = TypeVar("Method", bound=Callable[..., Any])


LARGEST = float(np.finfo(float).max)


class Array:
    """An array of plain numbers, finite unless `finite` is False; with `nan`, NaN stands for "there is none".

    Attributes:
        shape: Names of axes, numbers, None for any length; ... at the end for any further axes.
        kind: Letters of NumPy's kinds of types: f, i, u, b.
        least, most: Of every entry; `above`: least is not allowed itself.
        none: Whether None may stand in its place.
        dtype: Exactly this type, where it matters.
    """

    def __init__(
        self,
        shape: tuple[Any, ...] = ("K",),
        kind: str = "fiu",
        *,
        least: float = -np.inf,
        most: float = np.inf,
        above: bool = False,
        finite: bool = True,
        nan: bool = False,
        none: bool = False,
        dtype: Any = None,
    ) -> None:
        self.shape, self.kind, self.none, self.dtype, self.finite = shape, kind, none, dtype, finite
        self.least, self.most, self.above, self.nan = least, most, above, nan
        self._ranged = finite and kind != "b"
        # The least and the greatest entry tell it all, and a million entries take no memory: NaN fails by itself.
        self._low, self._high = (np.fmin, np.fmax) if nan else (np.minimum, np.maximum)
        self._least = max(float(np.nextafter(least, np.inf)) if above else least, -LARGEST)
        self._most = min(most, LARGEST)

    def problem(self, found: Any, sizes: Sizes) -> str | None:
        """What is wrong with what came out, as what it must be; None where nothing is."""
        if found is None and self.none:
            return None
        if (
            isinstance(found, np.ndarray)
            and found.dtype.kind in self.kind
            and (self.dtype is None or found.dtype == self.dtype)
        ):
            shape, wanted = found.shape, tuple([sizes[axis] if type(axis) is str else axis for axis in self.shape])
            if wanted and wanted[-1] is ...:
                wanted = wanted[:-1]
                shape = shape[: len(wanted)]
            if None in wanted and len(shape) == len(wanted):
                shape = tuple([None if any_length is None else n for any_length, n in zip(wanted, shape, strict=True)])
            if shape == wanted:
                if not self._ranged or not found.size:
                    return None
                flat = found if found.ndim == 1 else found.reshape(-1)
                lowest = float(self._low.reduce(flat))
                if self.nan and lowest != lowest:  # there is none at all
                    return None
                if lowest >= self._least and float(self._high.reduce(flat)) <= self._most:
                    return None
        return f"{self.words(sizes)}, not {shown(found)}"

    def words(self, sizes: Sizes) -> str:
        axes = ", ".join("any" if a is None else "…" if a is ... else str(sizes.get(a, a)) for a in self.shape)
        axes += "," if len(self.shape) == 1 else ""
        numbers = "truth values" if self.kind == "b" else "whole numbers" if self.kind in ("i", "iu") else "numbers"
        numbers = f"{np.dtype(self.dtype)} {numbers}" if self.dtype is not None else numbers
        finite = "" if self.kind in ("b", "i", "iu") or not self.finite else "finite "
        least = "" if self.least == -np.inf else f", {'above' if self.above else 'at least'} {self.least:g}"
        most = "" if self.most == np.inf else f", at most {self.most:g}"
        also = (", NaN where there is none" if self.nan else "") + (", or None" if self.none else "")
        return f"an array of {finite}{numbers} of shape ({axes}){least}{most}{also}"


def shown(found: Any) -> str:
    """What came instead, short."""
    if isinstance(found, np.ndarray) and found.dtype != object:
        return f"{found.dtype} of shape {found.shape}: {' '.join(np.array2string(found, threshold=6).split())[:80]}"
    return f"{found!r:.80}"


class One:
    """An object of a class, with these fields. none: None may stand in its place."""

    def __init__(self, of: type, /, *, none: bool = False, **fields: What) -> None:
        self.of, self.none, self.fields = of, none, fields

    def problem(self, found: Any, sizes: Sizes) -> str | None:
        if found is None and self.none:
            return None
        if not isinstance(found, self.of):
            return f"a {'dictionary' if self.of is Mapping else self.of.__name__}, not {shown(found)}"
        for name, what in self.fields.items():
            if why := what.problem(getattr(found, name), sizes):
                return f"a {self.of.__name__} whose {name} is {why}"
        return None


class Pair:
    """A tuple of two."""

    def __init__(self, first: What, second: What) -> None:
        self.both = first, second

    def problem(self, found: Any, sizes: Sizes) -> str | None:
        if not (isinstance(found, tuple) and len(found) == 2):
            return f"two things, not {shown(found)}"
        for place, what, part in zip(("first", "second"), self.both, found, strict=True):
            if why := what.problem(part, sizes):
                return f"two things, of which the {place} is {why}"
        return None


class State:
    """What a plug-in remembers: nested dictionaries of plain arrays, such as a checkpoint can keep."""

    def problem(self, found: Any, sizes: Sizes) -> str | None:
        plain = isinstance(found, dict) and all(
            isinstance(name, str)
            and (value.dtype.kind in "biuf" if isinstance(value, np.ndarray) else self.problem(value, sizes) is None)
            for name, value in found.items()
        )
        return None if plain else f"a dictionary of plain arrays by name, not {shown(found)}"


STATE = State()
What = Array | One | Pair | State  # that may come out of a method


class Out:
    """What comes out of a method: its form, and the laws that it obeys beyond that."""

    __slots__ = ("laws", "what")

    def __init__(self, what: What, *laws: Law) -> None:
        self.what, self.laws = what, laws


def default(method: Method) -> Method:
    """Marks a method of a base class whose results follow from what it is handed: they are right, and not looked at."""
    method.is_default = True  # type: ignore[attr-defined]
    return method


def broken(plugin: Plugin | Named, what: str) -> PluginError:
    """The error that says whose fault something is."""
    return PluginError(f"{plugin.plugin_field}: '{plugin.plugin_name()}' {what}")


def ask(plugin: Plugin | Named, method: str, *arguments: Any, at: int | None = None, **sizes: int) -> Any:
    """What a method gives, held to the contract; a state is read-only from then on.

    Our own errors and the user's interrupt pass as they are, all else becomes a sentence.

    Args:
        plugin: Whose method it is.
        method: Its name.
        *arguments: For the method; arrays are handed over read-only.
        at: The round, 0 before the first; None: of no round.
        **sizes: Lengths of the axes that the contract names.
    """
    given = [read_only(each) if isinstance(each, np.ndarray) else each for each in arguments]
    call = getattr(plugin, method)
    try:
        found = call(*given)
    except (FeelstreamError, KeyboardInterrupt):
        raise
    except BaseException as problem:
        if isinstance(problem, TypeError) and (expected := _signature(plugin, method, call, given)):
            raise broken(plugin, f"must take {expected}{_when(at, ',')}") from problem
        why = in_a_sentence(problem)
        advice = "; arrays that it is handed are read-only, so change a copy" if "read-only" in why else ""
        raise broken(plugin, f"failed{_when(at)}: {why}{advice}") from problem
    if getattr(call, "is_default", False):
        return found
    out = plugin.contract[method]
    if why := out.what.problem(found, sizes):
        whence = "" if method == "__call__" else f" from {method}"  # what is a function itself has one name
        raise broken(plugin, f"must return{whence} {why}{_when(at, ',')}")
    for law in out.laws:
        if why := law(plugin, found, *given):
            raise broken(plugin, f"{why}{_when(at, ',')}")
    for part in found if type(found) is tuple else (found,):  # nobody changes a state any more
        if type(part) is dict:
            freeze(part)
        elif type(part) is np.ndarray:
            part.flags.writeable = False
    return found


def _signature(plugin: Plugin | Named, method: str, call: Any, given: list[Any]) -> str:
    """How the base class writes a method and how this one does, where it cannot take what it is given; else empty."""
    base = [cls for cls in type(plugin).__mro__ if method in cls.__dict__][-1:]
    try:
        inspect.signature(call).bind(*given)
    except TypeError:
        own, ours = (", ".join(inspect.signature(each).parameters) for each in (call, getattr(base[0], method)))
        ours = ours.removeprefix("self, ")
        return f"{method}({ours}), not {method}({own})" if own != ours else ""
    except ValueError:  # a function of a compiled module tells no signature
        pass
    return ""


def _when(at: int | None, comma: str = "") -> str:
    return "" if at is None else f"{comma} in round {at}" if at else f"{comma} before the first round"


def freeze(state: Nested) -> Nested:
    """The same state, whose arrays refuse to be written to from now on."""
    for value in state.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif type(value) is dict:
            freeze(value)
    return state
