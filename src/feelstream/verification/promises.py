"""What the plug-ins of a run promise, as far as a re-check goes by it: ours as written here, others' as run.json says.

run.json holds the flags of every plug-in under `promises`, by group; runs from before it did are of ours only, or
promise nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from feelstream.errors import RunError

Fields = dict[str, Any]


def _battery(fields: Fields) -> Fields:
    return {"battery_j": fields["capacity_j"], "charge_j": float(fields["start"]) * float(fields["capacity_j"])}


def _nothing(fields: Fields) -> Fields:
    return {}


def _most_held(fields: Fields) -> Fields:
    return {"most_held": fields["capacity"]}


# Group → kind → flags by its fields; the first kind of a group is the one where none is named.
OURS: dict[str, dict[str, Callable[[Fields], Fields]]] = {
    "buffers": {
        "keep": lambda fields: {"keeps": True},
        "window": _nothing,
        "fifo": _most_held,
        "reservoir": _most_held,
        "use_once": lambda fields: {"keeps": True, "empties_on_use": True},
    },
    "cost_rules": {"settings": lambda fields: {"of_settings": True, "keeps_bits": True}},
    "mobilities": {
        "static": lambda fields: {"fixed": True, "within_gain_db": True},
        "random_direction": _nothing,
        "tr38901": _nothing,
    },
    "availabilities": {
        "always": lambda fields: {"always_there": True},
        "markov": _nothing,
        "diurnal": _nothing,
        "trace": _nothing,
    },
    "faults": {"none": lambda fields: {"never_fails": True}, "random": _nothing, "markov": _nothing},
    "harvests": {"none": _nothing, "packets": _battery, "solar": _battery},
}


class Promises:
    """The flags of one plug-in; one that is not there is not promised."""

    def __init__(self, group: str, flags: Any) -> None:
        self.group, self.flags = group, flags if isinstance(flags, dict) else {}

    @classmethod
    def of(cls, group: str, settings: Any, stored: Any) -> Promises:
        """Of the plug-in with these settings in the scenario; stored: all that run.json says of promises."""
        fields = settings if isinstance(settings, dict) else {}
        ours = OURS.get(group, {})
        own = ours.get(str(fields.get("kind", next(iter(ours), ""))))
        if own is None:
            return cls(group, stored.get(group) if isinstance(stored, dict) else None)
        try:
            return cls(group, own(fields))
        except (KeyError, TypeError, ValueError):
            raise RunError(f"run.json: a field of {group} is missing or no number.") from None

    def __contains__(self, flag: str) -> bool:
        return self.flags.get(flag) is True

    def names(self, flag: str) -> set[str]:
        """A set of names, empty where nothing is promised."""
        value = self.flags.get(flag)
        return set(map(str, value)) if isinstance(value, list) else set()

    def number(self, flag: str) -> float | None:
        """A number of at least 0, or None where nothing is promised."""
        value = self.flags.get(flag)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise RunError(f"run.json: promises.{self.group}.{flag} must be a number of at least 0, not {value!r:.40}.")
        return float(value)
