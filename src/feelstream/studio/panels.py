"""Small parts that every screen uses: a panel with a title, a button, a chart that can be saved as a picture."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from nicegui import ui
from nicegui.json import dumps

from feelstream.studio.charts import Options
from feelstream.studio.saving import file_name
from feelstream.studio.session import Session


@contextmanager
def panel(classes: str = ""):
    with ui.element("section").classes(f"panel {classes}") as section:
        yield section


def heading(text: str) -> ui.element:
    with ui.element("h2") as element:
        label = ui.label(text)
        label.tag = "span"
    return element


def button(text: str, icon: str, do: Callable[..., Any], key: str = "") -> ui.button:
    """A flat button; no ripple, which would be drawn for twenty frames. key: of the keyboard, that does the same."""
    made = ui.button(text, icon=icon or None, on_click=do).props("flat dense :ripple=false")
    with made:
        ui.tooltip(f"key: {key}") if key else None
    return made


class Drawing(ui.echart, component="chart.js"):
    """ECharts in the page, drawn by chart.js."""

    def __init__(self) -> None:
        super().__init__({"series": []})
        self._update_method = None  # an element that is sent once more, such as a hidden one, keeps its picture


class Chart:
    """A chart under its title, with buttons that save it; `show` notes for the page what it is to draw."""

    def __init__(
        self,
        session: Session,
        title: str,
        unit: str = "",
        of: Callable[[], str] | None = None,
        classes: str = "",
        axes: tuple[str, str] | None = None,
    ) -> None:
        """of: whose chart it is, for pictures, by default the race's; axes: their names there."""
        self.session, self.name = session, lambda: f"{title}, {of() if of else session.title}"
        self.axes = axes or ("round", f"{title}, {unit.partition(';')[0]}".rstrip(", "))
        self._options: Options = {"series": []}
        with ui.element("div").classes("head"):
            heading(title)
            ui.label(unit).classes("unit")
            ui.space()
            for kind in ("png", "svg"):
                save = button(kind.upper(), "", lambda kind=kind: self.save(kind)).classes("picture")
                save.props(f'size=sm aria-label="Save {title} as {kind.upper()}"')
        self.element = Drawing().classes(f"chart {classes}").props('role="img"')
        self.element._props["aria-label"] = self.name()

    def show(self, options: Options) -> None:
        if options != self._options:
            self._options = options
            self.session.drawings.append((self.element.id, options))

    def save(self, kind: str) -> None:
        self.element.run_method("save", kind, self.name(), self.axes, file_name(self.name()))


def send_drawings(session: Session) -> None:
    """Send all charts that changed as one message, to which the page answers `drawn`."""
    ui.run_javascript(f"drawCharts({dumps(session.drawings)})")
    session.drawings = []
