"""A part of run.json, of which each value is read with its name."""

from __future__ import annotations

import math
from typing import Any

from feelstream.errors import RunError


class Section:
    """Looks a field up by its dotted name and complains in one sentence."""

    def __init__(self, tree: Any, name: str = "") -> None:
        self.tree, self.name = tree, name

    def __getitem__(self, key: str) -> Section:
        name = f"{self.name}.{key}" if self.name else key
        if not isinstance(self.tree, dict) or key not in self.tree:
            raise RunError(f"run.json lacks {name}, without which the run cannot be verified.")
        return Section(self.tree[key], name)

    def get(self, key: str) -> Section | None:
        present = isinstance(self.tree, dict) and self.tree.get(key) is not None
        return self[key] if present else None

    def number(self) -> float:
        value = self.tree
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise RunError(f"run.json: {self.name} must be a finite number, not {value!r}.")
        return float(value)

    def positive(self) -> float:
        value = self.number()
        if value <= 0:
            raise RunError(f"run.json: {self.name} must be greater than 0, not {value!r}.")
        return value

    def whole(self, least: int = 1) -> int:
        value = self.number()
        if not value.is_integer() or value < least:
            raise RunError(f"run.json: {self.name} must be a whole number of at least {least}, not {value!r}.")
        return int(value)

    def plain(self, key: str) -> Any:
        """What stands there, unread; None where nothing does."""
        return self.tree.get(key) if isinstance(self.tree, dict) else None

    def ratio(self) -> float:
        """A number in decibels, as a plain ratio."""
        return 10.0 ** (self.decibels() / 10.0)

    def decibels(self) -> float:
        value = self.number()
        if abs(value) > 1000:
            raise RunError(f"run.json: {self.name} must lie between -1000 and 1000, not {value!r}.")
        return value

    def one_of(self, *allowed: str) -> str:
        if self.tree not in allowed:
            raise RunError(f"run.json: {self.name} must be one of {', '.join(allowed)}, not {self.tree!r}.")
        return str(self.tree)

    def name_of(self) -> str:
        """What a plug-in is called: ours, a user's file.py:Name, or one known by an entry point."""
        if not isinstance(self.tree, str):
            raise RunError(f"run.json: {self.name} must be a name, not {self.tree!r}.")
        return self.tree

    def items(self, count: int) -> list[Section]:
        if not isinstance(self.tree, list) or len(self.tree) != count:
            raise RunError(f"run.json: {self.name} must be a list of {count} numbers.")
        return [Section(value, f"{self.name}[{i}]") for i, value in enumerate(self.tree)]

    def entries(self) -> list[Section]:
        if not isinstance(self.tree, list):
            raise RunError(f"run.json: {self.name} must be a list.")
        return [Section(value, f"{self.name}[{i}]") for i, value in enumerate(self.tree)]

    def weight(self) -> float:
        """V: a number of at least 0, or the string "inf"; NaN for "auto"."""
        value = {"inf": math.inf, "auto": math.nan}.get(str(self.tree)) or self.number()
        if value < 0:
            raise RunError(f"run.json: {self.name} must be at least 0, not {value!r}.")
        return value
