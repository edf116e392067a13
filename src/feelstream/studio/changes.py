"""What is different between two sets of options of a chart, so that only this is sent to the page."""

from __future__ import annotations

from typing import Any

FEW = 16  # lists of settings, such as series, are compared one by one; longer ones are data


def differences(old: Any, new: Any, path: tuple[str | int, ...] = ()) -> list[list[Any]]:
    """Changes that make `old` into `new`: [path, value], [path, kept, rest] of a list, [path] of what is gone.

    >>> differences({"a": 1, "data": [1, 2]}, {"a": 1, "data": [1, 2, 3]})
    [[('data',), 2, [3]]]
    >>> differences({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}})
    [[('a',)], [('b', 'c'), 3]]
    """
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[list[Any]] = [[(*path, name)] for name in old if name not in new]
        for name, value in new.items():
            found += differences(old[name], value, (*path, name)) if name in old else [[(*path, name), value]]
        return found
    if isinstance(old, list) and isinstance(new, list):
        return _of_lists(old, new, path)
    return [] if old == new and type(old) is type(new) else [[path, new]]


def _of_lists(old: list, new: list, path: tuple[str | int, ...]) -> list[list[Any]]:
    settings = all(isinstance(each, dict) for each in (*old, *new))
    if settings and len(old) == len(new) <= FEW:
        return [change for at in range(len(new)) for change in differences(old[at], new[at], (*path, at))]
    kept = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    if kept == len(old) == len(new):
        return []
    # Other curves than before are sent whole, so that the page begins the chart again.
    return [[path, new]] if path == ("series",) else [[path, kept, new[kept:]]]
