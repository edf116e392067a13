"""The frames in which the page's script draws charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Frame:
    """Where a chart will be: its element's name, what stands above it, and what it shows, in words."""

    id: str
    caption: str
    label: str
    tall: bool = False


class Charts:
    """The charts of one page, numbered as they are added."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def frame(self, chart: dict[str, Any], caption: str = "", tall: bool = False) -> Frame:
        """Take a chart into the page; caption: default, its title."""
        chart = chart | {"id": f"chart-{len(self.all)}"}
        self.all.append(chart)
        return Frame(chart["id"], caption or chart["title"], chart["axis"], tall)
