"""What a server keeps comes back as it was, from a file of plain arrays."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feelstream.arrays import flatten, unflatten
from feelstream.flower.directory import Directory
from feelstream.flower.kept import Kept, restored, saved
from feelstream.run.files import read_arrays, write_arrays


class Inner(Kept):
    kept = ("count", "on")

    def __init__(self) -> None:
        self.count, self.on = 0, False


class Outer(Kept):
    kept = ("table", "reasons", "names", "array", "inner")

    def __init__(self) -> None:
        self.table, self.reasons, self.names = dict[int, int](), dict[int, str](), list[str]()
        self.array, self.inner = np.zeros(2), Inner()


def stored(kept: Kept, file: Path) -> dict[str, object]:
    write_arrays(file, flatten(kept.snapshot()))
    return unflatten(read_arrays(file))


def test_every_kind_of_attribute_comes_back(tmp_path: Path) -> None:
    full = Outer()
    full.table, full.reasons, full.names = {1: 7, 2**64 - 1: 8}, {3: "late"}, ["north", "süd"]
    full.array, full.inner.count, full.inner.on = np.array([1.5, np.nan]), 4, True
    for given in (full, Outer()):
        again = Outer()
        again.restore(stored(given, tmp_path / "state.npz"))
        assert (again.table, again.reasons, again.names) == (given.table, given.reasons, given.names)
        assert (again.inner.count, again.inner.on) == (given.inner.count, given.inner.on)
        assert type(again.inner.on) is bool
        np.testing.assert_array_equal(again.array, given.array)


@pytest.mark.parametrize("counted", [{}, {"a": 2}, {7: 2}, {7: np.ones(2)}])
def test_a_dictionary_stays_of_its_kind(counted: dict[Any, Any]) -> None:
    found = restored(saved(defaultdict(int, counted)), defaultdict(int, {"before": 1}))
    assert found.keys() == counted.keys()
    assert found["new"] == 0


def test_nodes_of_any_id_are_remembered(tmp_path: Path) -> None:
    """Flower draws 64 bits; as floats two of them might become one."""
    nodes = {5: "0", 2**63 + 1: "1", 2**64 - 1: "2"}
    directory = Directory(None, 3)
    directory.update(nodes)
    for node, name in nodes.items():
        directory.introduce(node, name)
    again = Directory(None, 3)
    again.restore(stored(directory, tmp_path / "state.npz"))
    again.update(nodes)
    assert [again.device_of[node] for node in nodes] == [0, 1, 2]
    assert [again.node_of[device] for device in range(3)] == list(nodes)
