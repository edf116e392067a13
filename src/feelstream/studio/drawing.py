"""A chart in the page, which chart.js draws from changes of its options."""

from __future__ import annotations

from nicegui import ui


class Drawing(ui.echart, component="chart.js"):
    """ECharts in the page, drawn by chart.js from changes of its options."""

    def __init__(self) -> None:
        super().__init__({"series": []})
        self._update_method = None  # an element that is sent once more, such as a hidden one, keeps its picture
