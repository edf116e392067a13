"""Who is who: devices by their stable names, whatever node ids Flower gives them this time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Nested
from feelstream.flower.names import NameRules
from feelstream.flower.report import ReportError


class Directory:
    """Devices are numbered in the order of their names; each has the node by which it was last reached."""

    def __init__(self, rules: NameRules, bind_names: bool | None = False) -> None:
        """bind_names: the first node that uses a name keeps it for the whole run, even while it is silent.

        None: not known yet, since no node has connected.
        """
        self.rules, self.bind_names = rules, bind_names
        self.names = list(rules.listed)
        self._number = {name: number for number, name in enumerate(self.names)}
        self._device_of: dict[int, int] = {}  # by node id
        self._node_of: dict[int, int] = {}  # by device
        self._here: frozenset[int] = frozenset()

    def update(self, nodes: Iterable[int]) -> list[int]:
        """These nodes are connected now; returned in ascending order, since Flower's order means nothing."""
        self.rules.refresh()
        for name in self.rules.listed[len(self.names) :] if self.rules.pattern is None else ():
            self._add(name)
        self._here = frozenset(nodes)
        return sorted(self._here)

    @property
    def nodes(self) -> int:
        """How many nodes are connected."""
        return len(self._here)

    def device(self, node: int) -> int | None:
        """The number of the device behind a node; None if it has not said yet."""
        return self._device_of.get(node)

    def node(self, device: int) -> int | None:
        """The connected node of a device."""
        node = self._node_of.get(device)
        return node if node in self._here else None

    def name(self, device: int | None) -> str:
        return "?" if device is None else self.names[device]

    def connected(self) -> NDArray[np.bool_]:
        """(K,) which devices have a connected node."""
        mask = np.zeros(self.rules.devices, bool)
        mask[[device for device, node in self._node_of.items() if node in self._here]] = True
        return mask

    def introduce(self, node: int, name: str, silent: Iterable[int] = ()) -> int:
        """Node `node` says it is device `name`: its number, or ReportError if it cannot be.

        silent: nodes that were asked and did not answer; such a node loses its name to one that answers, so that a
        device which comes back need not wait until Flower has given its old node up.
        """
        device = self._number.get(name)
        if device is None and not self.rules.admits(name):
            raise UnknownNameError(f"there is no device '{name[:40]}' in this run")
        before = self._device_of.get(node)
        if before is not None and before != device:
            raise ReportError(f"it called itself '{self.names[before]}' before and '{name[:40]}' now")
        if self.rules.owner(name) not in (None, node):
            raise ReportError(f"'{name[:40]}' is bound to another node")
        if device is None:
            if len(self.names) == self.rules.devices:
                raise ReportError(f"all {self.rules.devices} devices of this run have joined")
            device = self._add(name)
        holder = self._node_of.get(device, node)
        if holder != node:
            if self.bind_names:
                raise ReportError(f"'{name[:40]}' is bound to the node that used it first")
            if holder in self._here and holder not in silent:
                raise ReportError(f"another connected node is device '{name[:40]}'")
            del self._device_of[holder]
        self._device_of[node], self._node_of[device] = device, node
        return device

    def _add(self, name: str) -> int:
        self._number[name] = len(self.names)
        self.names.append(name)
        return self._number[name]

    def snapshot(self) -> Nested:
        return {
            "nodes": np.array(list(self._device_of), np.uint64),
            "node_devices": np.array(list(self._device_of.values()), np.int64),
            "names": np.array(self.names, np.str_),
        }

    def restore(self, state: Nested) -> None:
        self.names = [str(name) for name in state["names"]]
        self._number = {name: number for number, name in enumerate(self.names)}
        self._device_of = {int(n): int(d) for n, d in zip(state["nodes"], state["node_devices"], strict=True)}
        self._node_of = {device: node for node, device in self._device_of.items()}


class UnknownNameError(ReportError):
    """A name that is not one of this run's."""
