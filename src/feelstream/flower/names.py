"""Which device names a run admits, and which node may use one.

    names=None                          "0" to "K−1", which are Flower's partition-ids
    names=["north", "south"]            exactly these
    names="sensor-*"                    whoever's name fits the pattern, in the order of joining, up to K devices
    names={"north": 1234, "south": 0}   these, "north" only for the node that is registered as 1234
    names={"north": {"node": 1234, "priority": 2}}    the same, and the importance of its data counts twice
    names=Path("devices.toml")          the same table in a file, which is read again when it changes

With Flower's node authentication a node id belongs to one public key (`flwr supernode register` prints it), so a name
that is given a node id is bound to that key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from feelstream.errors import FeelstreamError
from feelstream.flower.report import PRIORITIES

Names = Sequence[str] | Mapping[str, int | Mapping[str, float]] | Path | str | None


class NameRules:
    """The names that may join, up to so many devices."""

    def __init__(self, names: Names, devices: int) -> None:
        self.devices, self.pattern, self.file = devices, None, None
        self.owners: dict[str, int] = {}
        self.priorities: dict[str, float] = {}
        self._places: dict[str, None] = {}  # the listed names, in order; found at once among 100,000
        self._changed_ns = 0
        if isinstance(names, Path):
            self.file = names
            self.refresh()
        elif isinstance(names, str):
            self.pattern = names
        elif isinstance(names, Mapping):
            self._take(names, "names")
        else:
            given = [str(number) for number in range(devices)] if names is None else list(names)
            self._places = dict.fromkeys(given)
            if len(self._places) != len(given):
                raise FeelstreamError("device names must all be different")
        # A list is complete from the start; a table in a file, or a pattern, may be filled later.
        if self.pattern is None and self.file is None and len(self._places) != devices:
            raise FeelstreamError(f"names must list system.devices = {devices} names, not {len(self._places)}")

    @property
    def listed(self) -> list[str]:
        """The names that were given one by one, in order."""
        return list(self._places)

    def refresh(self) -> None:
        """Read the file again if it has changed; names may be added to it, and none is taken away."""
        if self.file is None:
            return
        try:
            changed_ns = self.file.stat().st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            table = tomllib.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise FeelstreamError(f"the names in {self.file} cannot be read: {problem}") from problem
        self._take(table, str(self.file))
        self._changed_ns = changed_ns

    def admits(self, name: str) -> bool:
        return name in self._places if self.pattern is None else fnmatchcase(name, self.pattern)

    def owner(self, name: str) -> int | None:
        """The only node that may use the name; None: any."""
        return self.owners.get(name)

    def priority(self, name: str) -> float | None:
        """What the table says of the device's priority; None: nothing."""
        return self.priorities.get(name)

    def _take(self, table: Mapping[str, Any], where: str) -> None:
        entries = {name: _entry(name, given, where) for name, given in table.items()}
        if len(table) > self.devices:
            raise FeelstreamError(f"{where} lists {len(table)} names, and system.devices = {self.devices}")
        missing = next((name for name in self._places if name not in table), None)
        if missing is not None:
            raise FeelstreamError(f"{where} no longer lists '{missing}', and a run keeps its devices")
        self._places |= dict.fromkeys(table)
        self.owners = {name: entry["node"] for name, entry in entries.items() if entry["node"]}
        self.priorities = {name: float(entry["priority"]) for name, entry in entries.items() if "priority" in entry}


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
