"""Who is who: which device names a run admits, and which node is which device, whatever ids Flower gives them.

    names=None                          "0" to "K−1", which are Flower's partition-ids
    names=["north", "south"]            exactly these
    names="sensor-*"                    whoever's name fits the pattern, in the order of joining, up to K devices
    names={"north": 1234, "south": 0}   these, "north" only for the node that is registered as 1234
    names={"north": {"node": 1234, "priority": 2}}    the same, and the importance of its data counts twice
    names=Path("devices.toml")          the same table in a file, which is read again when it changes

With Flower's node authentication a node id belongs to one public key (`flwr supernode register` prints it), so a name
that is given a node id is bound to that key.

What an operator should know of devices is a line for each kind of trouble, however many devices have it.
"""

from __future__ import annotations

import logging
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from feelstream.arrays import Flags, Nested
from feelstream.errors import FeelstreamError
from feelstream.flower.kept import Kept
from feelstream.flower.settings import Names
from feelstream.flower.wire import PRIORITIES, ReportError

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
SHOWN, REASONS = 20, 3  # names and reasons that a sentence lists


class UnknownNameError(ReportError):
    """A name that is not one of this run's."""


class Directory(Kept):
    """Devices are numbered in the order of their names; each has the node by which it was last reached."""

    kept = ("names", "device_of")

    def __init__(self, names: Names, devices: int, bind_names: bool = False) -> None:
        """bind_names: the first node that uses a name keeps it for the whole run, even while it is silent."""
        self.devices, self.bind_names = devices, bind_names
        self.pattern = names if isinstance(names, str) else None
        self._file: Path | None = None
        self._changed_ns, self._problem = 0, ""  # of the file, as it was last read; what was wrong with it
        self.owners: dict[str, int] = {}  # the only nodes that may use these names
        self.priorities: dict[str, float] = {}  # what the table says of devices' priorities
        self.names: list[str] = []  # in the order of the devices, as far as they are known
        self._number: dict[str, int] = {}  # by name
        self.device_of: dict[int, int] = {}  # by node id; a node that has not said yet which it is has none
        self.node_of: dict[int, int] = {}  # by device; connected or not
        self.here: frozenset[int] = frozenset()  # the nodes that are connected
        if isinstance(names, Path):
            self._file = names
            self._read_file()
        elif isinstance(names, Mapping):
            self._take(names, "names")
        elif not isinstance(names, str):
            for name in map(str, range(devices)) if names is None else names:
                self._add(name)
            if len(self._number) != len(self.names):
                raise FeelstreamError("device names must all be different")
        # A list is complete from the start; a table in a file, or a pattern, may be filled later.
        if self.pattern is None and self._file is None and len(self.names) != devices:
            raise FeelstreamError(f"names must list system.devices = {devices} names, not {len(self.names)}")

    @property
    def all_bound(self) -> bool:
        """Whether a table gives every name a node id."""
        return len(self.owners) == self.devices

    @property
    def wanted(self) -> str:
        """The names of this run, in words."""
        return f"fit '{self.pattern}'" if self.pattern else f"are {shortened(self.names)}"

    def update(self, nodes: Iterable[int]) -> list[int]:
        """These nodes are connected now; returned in ascending order, since Flower's order means nothing."""
        if self._file is not None:
            try:
                self._read_file()
                self._problem = ""
            except FeelstreamError as problem:  # half written, or gone for a moment
                if self._problem != str(problem):
                    log.warning("%s; what was read before still counts", problem)
                self._problem = str(problem)
        self.here = frozenset(nodes)
        return sorted(self.here)

    def name(self, device: int | None) -> str:
        return "?" if device is None else self.names[device]

    def connected(self) -> Flags:
        """(K,) which devices have a connected node."""
        mask = np.zeros(self.devices, bool)
        mask[[device for device, node in self.node_of.items() if node in self.here]] = True
        return mask

    def introduce(self, node: int, name: str, silent: Iterable[int] = ()) -> int:
        """Node `node` says it is device `name`: its number, or ReportError if it cannot be.

        silent: nodes that were asked and did not answer; such a node loses its name to one that answers, so that a
        device which comes back need not wait until Flower has given its old node up.
        """
        device = self._number.get(name)
        if device is None and not (self.pattern and fnmatchcase(name, self.pattern)):
            raise UnknownNameError(f"there is no device '{name[:40]}' in this run")
        before = self.device_of.get(node)
        if before is not None and before != device:
            raise ReportError(f"it called itself '{self.names[before]}' before and '{name[:40]}' now")
        if self.owners.get(name) not in (None, node):
            raise ReportError(f"'{name[:40]}' is bound to another node")
        if device is None:
            if len(self.names) == self.devices:
                raise ReportError(f"all {self.devices} devices of this run have joined")
            device = self._add(name)
        holder = self.node_of.get(device, node)
        if holder != node:
            if self.bind_names:
                raise ReportError(f"'{name[:40]}' is bound to the node that used it first")
            if holder in self.here and holder not in silent:
                raise ReportError(f"another connected node is device '{name[:40]}'")
            del self.device_of[holder]
        self.device_of[node], self.node_of[device] = device, node
        return device

    def _add(self, name: str) -> int:
        self._number[name] = len(self.names)
        self.names.append(name)
        return self._number[name]

    def _read_file(self) -> None:
        """Read the file again if it has changed; names may be added to it, and none is taken away."""
        assert self._file is not None
        try:
            changed_ns = self._file.stat().st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            table = tomllib.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise FeelstreamError(f"the names in {self._file} cannot be read: {problem}") from problem
        self._take(table, str(self._file))
        self._changed_ns = changed_ns

    def _take(self, table: Mapping[str, Any], where: str) -> None:
        entries = {name: _entry(name, given, where) for name, given in table.items()}
        if len(table) > self.devices:
            raise FeelstreamError(f"{where} lists {len(table)} names, and system.devices = {self.devices}")
        missing = next((name for name in self.names if name not in table), None)
        if missing is not None:
            raise FeelstreamError(f"{where} no longer lists '{missing}', and a run keeps its devices")
        for name in [name for name in table if name not in self._number]:
            self._add(name)
        self.owners = {name: entry["node"] for name, entry in entries.items() if entry["node"]}
        self.priorities = {name: float(entry["priority"]) for name, entry in entries.items() if "priority" in entry}

    def restore(self, state: Nested) -> None:
        super().restore(state)
        self._number = {name: number for number, name in enumerate(self.names)}
        self.node_of = {device: node for node, device in self.device_of.items()}


def _entry(name: str, given: Any, where: str) -> dict[str, Any]:
    """What a table says of one device, checked: its node id, and what more is stated."""
    entry = {"node": 0, **given} if isinstance(given, Mapping) else {"node": given}
    stranger = next((key for key in entry if key not in ("node", "priority")), None)
    if stranger is not None:
        raise FeelstreamError(f"{where}: '{name}' may state node and priority, not {stranger!r:.40}")
    node, priority = entry["node"], entry.get("priority", 1.0)
    if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < 2**64:
        raise FeelstreamError(f"{where}: '{name}' must be given a node id, or 0 for any node, not {node!r:.40}")
    low, high = PRIORITIES
    if isinstance(priority, bool) or not isinstance(priority, int | float) or not low <= priority <= high:
        raise FeelstreamError(
            f"{where}: the priority of '{name}' must be above 0 and at most {high:g}, not {priority!r:.40}"
        )
    return entry


def shortened(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown or "nobody"


class Notices:
    """What is noticed of devices until `tell` warns of it; of each device once for each kind. All of it is at DEBUG."""

    def __init__(self, name: Callable[[int | None], str] = str, noun: str = "device") -> None:
        self._name, self._noun = name, noun
        self._new: dict[str, dict[int | None, str]] = {}  # by kind: who has it for the first time, and why
        self._told: set[tuple[str, int | None]] = set()

    def add(self, round: int, kind: str, device: int | None, reason: str) -> None:
        log.debug("round %d: %s: %s (%s %s)", round, kind, reason, self._noun, self._name(device))
        if (kind, device) not in self._told:
            self._told.add((kind, device))
            self._new.setdefault(kind, {})[device] = reason

    def tell(self, round: int) -> None:
        """Warn of what is new, by kind."""
        for kind, found in self._new.items():
            log.warning("round %d: %s: %s", round, kind, by_reason(found, self._name, self._noun))
        self._new.clear()

    def forget(self, here: Collection[int]) -> None:
        """Those who are gone leave nothing behind."""
        self._told = {(kind, device) for kind, device in self._told if device in here}


def by_reason(found: Mapping[Any, str], name: Callable[[int | None], str], noun: str = "device") -> str:
    """Reasons, with the devices that they are true of, the most common one first."""
    common = Counter(found.values()).most_common()
    parts = []
    for reason, number in common[:REASONS]:
        devices = [name(device) for device in sorted(found, key=lambda each: each or 0) if found[device] == reason]
        parts.append(f"{reason} ({noun}{'s' if number > 1 else ''} {shortened(devices)})")
    return "; ".join(parts) + (f"; and {len(common) - REASONS} other reasons" if len(common) > REASONS else "")
