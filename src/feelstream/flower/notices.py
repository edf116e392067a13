"""What an operator should know of devices: a line for each kind of trouble, however many devices have it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from feelstream.flower.directory import shortened

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
SHOWN = 3  # reasons in a line


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
    for reason, number in common[:SHOWN]:
        devices = [name(device) for device in sorted(found, key=lambda each: each or 0) if found[device] == reason]
        parts.append(f"{reason} ({noun}{'s' if number > 1 else ''} {shortened(devices)})")
    return "; ".join(parts) + (f"; and {len(common) - SHOWN} other reasons" if len(common) > SHOWN else "")
