"""Array types that every room shares, the device axis always first; and how nested ones become a flat table."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps, loads
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ids = NDArray[np.int64]  # device numbers
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
LabelCounts = NDArray[np.int32 | np.int64]  # (K, m), or (m,) for one device; or another feature vector
Nested = dict[str, Any]  # arrays by name, or further dictionaries of them: the state of something under way


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


def copied(state: Nested) -> Nested:
    """Copies of all arrays of a state, which may be written to."""
    return {name: copied(value) if isinstance(value, dict) else value.copy() for name, value in state.items()}


class Frozen:
    """Base of frozen dataclasses that plug-ins are handed: nobody can write to the arrays in their fields."""

    def __post_init__(self) -> None:
        fields = self.__dict__
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                fields[name] = read_only(value)


def flatten(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> dict[str, NDArray]:
    """Nested dictionaries of arrays as one, for a file; `unflatten` undoes it.

    Its names are the paths to the arrays, as JSON, so that names within may be any text; a path that ends in null is of
    an empty dictionary.

    >>> sorted(flatten({"round": np.array(3), "policy": {"a": np.zeros(2)}, "channel": {}}))
    ['["channel", null]', '["policy", "a"]', '["round"]']
    """
    flat: dict[str, NDArray] = {}
    for name, value in tree.items():
        if not isinstance(value, Mapping):
            flat[dumps((*above, name))] = value
        else:
            flat |= flatten(value, (*above, name)) or {dumps((*above, name, None)): np.empty(0)}
    return flat


def unflatten(flat: Mapping[str, NDArray]) -> Nested:
    """The nested dictionaries that `flatten` made flat.

    >>> unflatten({'["channel", null]': np.empty(0), '["policy", "a"]': np.zeros(2)})
    {'channel': {}, 'policy': {'a': array([0., 0.])}}
    """
    tree: Nested = {}
    for path, array in flat.items():
        *above, last = loads(path)
        place = tree
        for name in above:
            place = place.setdefault(name, {})
        if last is not None:
            place[last] = array
    return tree
