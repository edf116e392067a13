"""Who is who: devices by their stable names, whatever node ids Flower gives them this time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import FeelstreamError
from feelstream.flower.report import ReportError


class Directory:
    """The devices' names in a fixed order, and the node behind which each was last met."""

    def __init__(self, names: Sequence[str]) -> None:
        if len(set(names)) != len(names):
            raise FeelstreamError("device names must all be different")
        self.names = tuple(names)
        self._number = {name: number for number, name in enumerate(names)}
        self._device_of: dict[int, int] = {}  # by node id
        self._here: set[int] = set()

    def meet(self, nodes: Iterable[int]) -> list[int]:
        """These nodes are connected now; returned in ascending order, since Flower's order means nothing."""
        self._here = set(nodes)
        return sorted(self._here)

    def device(self, node: int) -> int | None:
        """The number of the device behind a node; None if it has not said yet."""
        return self._device_of.get(node)

    def node(self, device: int) -> int | None:
        """The connected node of a device."""
        return next((node for node, d in self._device_of.items() if d == device and node in self._here), None)

    def connected(self) -> NDArray[np.bool_]:
        """(K,) which devices have a connected node."""
        mask = np.zeros(len(self.names), bool)
        mask[[device for node, device in self._device_of.items() if node in self._here]] = True
        return mask

    def introduce(self, node: int, name: str, silent: Iterable[int] = ()) -> int:
        """Node `node` says it is device `name`: its number, or ReportError if it cannot be.

        silent: nodes that were asked and did not answer; such a node loses its name to one that answers, so that a
        device which comes back need not wait until Flower has given its old node up.
        """
        device = self._number.get(name)
        if device is None:
            raise ReportError(f"there is no device '{name[:40]}' in this run")
        before = self._device_of.get(node, device)
        if before != device:
            raise ReportError(f"it called itself '{self.names[before]}' before and '{name[:40]}' now")
        holder = self.node(device)
        if holder not in (None, node):
            if holder not in silent:
                raise ReportError(f"another connected node is device '{name[:40]}'")
            del self._device_of[holder]
        self._device_of = {n: d for n, d in self._device_of.items() if d != device or n in self._here}
        self._device_of[node] = device
        return device

    def snapshot(self) -> dict[str, NDArray]:
        nodes = list(self._device_of)
        return {"nodes": np.array(nodes, np.uint64), "node_devices": np.array(list(self._device_of.values()), np.int64)}

    def restore(self, state: dict[str, NDArray]) -> None:
        self._device_of = {
            int(node): int(device) for node, device in zip(state["nodes"], state["node_devices"], strict=True)
        }
