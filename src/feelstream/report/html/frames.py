"""Charts and the frames that the page's script draws them in."""

from __future__ import annotations

from html import escape
from typing import Any


class Charts:
    """The charts of one page, numbered as they are added."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def frame(self, chart: dict[str, Any], caption: str = "", tall: bool = False) -> str:
        """Take a chart into the page: the HTML of the frame in which it will be drawn. caption: default, its title."""
        chart = chart | {"id": f"chart-{len(self.all)}"}
        self.all.append(chart)
        return frame(chart["id"], caption or chart["title"], chart["axis"], tall)


def frame(name: str, title: str, label: str, tall: bool = False, below: str = "") -> str:
    size = "plot tall" if tall else "plot"
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<div class="{size}" id="{name}" role="img" aria-label="{escape(label)}"></div>{below}</figure>'
    )


def grid(frames: list[str]) -> str:
    return f'<div class="grid">{"".join(frames)}</div>'
