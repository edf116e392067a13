"""Array types that every room shares, the device axis always first; and how nested ones become a flat table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ids = NDArray[np.int64]  # device numbers
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
LabelCounts = NDArray[np.int32]  # (K, m), or (m,) for one device
Nested = dict[str, Any]  # arrays by name, or further dictionaries of them: the state of something under way
T = TypeVar("T")


def read_only(array: NDArray) -> NDArray:
    """A view that refuses to be written to; the array itself where it refuses already.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def frozen(value: T) -> T:
    """The same with all arrays read-only: of an array, or of dictionaries of them.

    >>> frozen({"seen": {"best": np.zeros(2)}})["seen"]["best"].flags.writeable
    False
    """
    if isinstance(value, np.ndarray):
        return read_only(value)
    if isinstance(value, dict):
        return {name: frozen(inner) for name, inner in value.items()}  # pyright: ignore[reportReturnType]
    return value


class Frozen:
    """Base of frozen dataclasses that plug-ins are handed: nobody can write to the arrays in their fields."""

    def __post_init__(self) -> None:
        fields = self.__dict__
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                fields[name] = read_only(value)


def flatten(tree: Mapping[str, Any]) -> dict[str, NDArray]:
    """Nested dictionaries of arrays as one, for a file: names joined by `/`, any name allowed; `unflatten` undoes it.

    In a name `~` becomes `~0` and `/` becomes `~1`, as in a JSON pointer (RFC 6901); the empty name is `~`, so that an
    empty dictionary can be recognised by the `/` at its end.

    >>> sorted(flatten({"round": np.array(3), "policy": {"a/b": np.zeros(2)}, "channel": {}}))
    ['channel/', 'policy/a~1b', 'round']
    """
    return dict(_leaves(tree, ""))


def _leaves(tree: Mapping[str, Any], above: str) -> Iterator[tuple[str, NDArray]]:
    for name, value in tree.items():
        path = above + (name.replace("~", "~0").replace("/", "~1") or "~")
        if not isinstance(value, Mapping):
            yield path, value
        elif value:
            yield from _leaves(value, f"{path}/")
        else:
            yield f"{path}/", np.empty(0)


def unflatten(flat: Mapping[str, NDArray]) -> Nested:
    """The nested dictionaries that `flatten` made flat.

    >>> unflatten({"channel/": np.empty(0), "policy/a~1b": np.zeros(2)})
    {'channel': {}, 'policy': {'a/b': array([0., 0.])}}
    """
    tree: Nested = {}
    for path, array in flat.items():
        *above, last = path.split("/")
        place = tree
        for name in map(_name, above):
            place = place.setdefault(name, {})
        if last:
            place[_name(last)] = array
    return tree


def _name(part: str) -> str:
    return "" if part == "~" else part.replace("~1", "/").replace("~0", "~")
