"""Reading one known pickle without running anything it asks for.

The file is a dictionary of old pandas data frames. Every global it names is answered with a stand-in of ours
that only keeps what it is handed; every other global is refused. Nothing of pandas is needed, and NumPy's own
reconstruction is not used either: an array is made here from its bytes, and only if it holds plain numbers.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_NUMBERS = 10**8


class RefusedError(Exception):
    """The pickle asks for what is not needed to read numbers."""


class Kept:
    """Stands in for an object: keeps its state and does nothing."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class KeptArray(Kept):
    """Stands in for a NumPy array: (version, shape, type, Fortran order, bytes)."""

    def numbers(self) -> NDArray[Any]:
        """The array, if it holds float64 or int64 in little-endian order."""
        try:
            _, shape, kind, fortran, data = self.state
            code, order = kind.code, kind.state[1]
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            raise RefusedError("an array is not described as arrays are") from error
        if code not in ("f8", "i8") or order != "<" or not isinstance(data, bytes):
            raise RefusedError(f"an array of {code!r} does not hold plain numbers")
        if not isinstance(shape, tuple) or not all(isinstance(side, int) and side >= 0 for side in shape):
            raise RefusedError("an array has no shape")
        if math.prod(shape) > MOST_NUMBERS or math.prod(shape) * 8 != len(data):
            raise RefusedError("an array's shape does not fit its bytes")
        return np.frombuffer(data, f"<{code}").reshape(shape, order="F" if fortran else "C")


class KeptType(Kept):
    """Stands in for a NumPy type: its code, such as f8, and the byte order in its state."""

    __slots__ = ("code",)

    def __init__(self, code: Any, *rest: Any) -> None:
        super().__init__()
        self.code = code


def _object(*rest: Any) -> Kept:
    return Kept()


def _array(*rest: Any) -> KeptArray:
    return KeptArray()


def _nothing(*rest: Any) -> None:
    return None


def _encode(text: Any, encoding: Any = None) -> bytes:
    """How a pickle of protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise RefusedError("bytes are not written as bytes are")
    return text.encode("latin1")


STAND_INS: dict[tuple[str, str], Any] = {
    ("copy_reg", "_reconstructor"): _object,
    ("__builtin__", "object"): None,
    ("__builtin__", "slice"): _nothing,
    ("_codecs", "encode"): _encode,
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): KeptType,
    ("numpy.core.multiarray", "_reconstruct"): _array,
    ("pandas.core.frame", "DataFrame"): None,
    ("pandas.core.internals.managers", "BlockManager"): None,
    ("pandas.core.indexes.base", "_new_Index"): _nothing,
    ("pandas.core.indexes.base", "Index"): None,
    ("pandas.core.indexes.range", "RangeIndex"): None,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return STAND_INS[module_name, global_name]
        except KeyError:
            raise RefusedError(f"it asks for {module_name}.{global_name}") from None

    def persistent_load(self, pid: Any, /) -> Any:
        raise RefusedError("it asks for an object kept elsewhere")


def read(raw: bytes) -> Any:
    """What the pickle holds: dictionaries, lists, texts and numbers, and `Kept` for every object."""
    try:
        return _Unpickler(io.BytesIO(raw)).load()
    except RefusedError:
        raise
    except Exception as error:  # a malformed pickle may raise anything
        raise RefusedError(f"it is damaged ({type(error).__name__})") from error
