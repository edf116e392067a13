"""Small parts that every screen uses: a panel with a title, a chart that can be saved as a picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from nicegui import ui
from nicegui.json import dumps

from feelstream.studio import asset
from feelstream.studio.charts import Options, changed, enlarged, for_export, outline
from feelstream.studio.saving import file_name
from feelstream.studio.session import Session

EXPORT = asset("export.js")


@contextmanager
def panel(classes: str = ""):
    with ui.element("section").classes(f"panel {classes}") as section:
        yield section


def heading(text: str, level: str = "h2") -> ui.element:
    with ui.element(level) as element:
        label = ui.label(text)
        label.tag = "span"
    return element


class Drawing(ui.echart, component="chart.js"):
    """ECharts in the page, drawn by chart.js from the parts of its options that changed."""

    def __init__(self) -> None:
        super().__init__({"series": []})
        self._update_method = None  # an element that is sent once more, such as a hidden one, keeps its picture


class Chart:
    """An ECharts panel part with a menu to save it; `show` notes for the page what changed in its options."""

    def __init__(
        self,
        session: Session,
        title: str,
        of: Callable[[], str],
        unit: str = "",
        classes: str = "",
        axes: tuple[str, str] | None = None,
        large: bool | None = False,
    ) -> None:
        """of: whose chart it is, for pictures; axes: their names there; large: the size of the head, None without."""
        self.session, self.name = session, lambda: f"{title}, {of()}"
        self.axes = axes or ("round", f"{title}, {unit.partition(';')[0]}".rstrip(", "))
        self._options: Options = {"series": []}
        if large is not None:
            with ui.element("div").classes("head"):
                if large:
                    heading(title)
                ui.label(unit if large else ", ".join(filter(None, (title, unit)))).classes("unit")
                ui.space()
                self.menu()
        self.element = Drawing().classes(f"chart {classes}").props('role="img"')
        self.element._props["aria-label"] = self.name()

    def show(self, options: Options) -> None:
        options = enlarged(options) if self.session.talk else options
        if options != self._options:
            # ECharts keeps what it is not told of, so that it has to begin again where something is gone.
            is_new = outline(options) != outline(self._options)
            part = options if is_new else changed(self._options, options)
            self._options = options
            self.session.drawings.append((self.element.id, part, is_new))

    def menu(self) -> None:
        """The button beside a title that saves the chart."""
        with ui.button(icon="image").props('flat dense round size=sm aria-label="Save this chart"'), ui.menu():
            ui.menu_item("Save as PNG", lambda: self.save("png"))
            ui.menu_item("Save as SVG", lambda: self.save("svg"))

    def save(self, kind: str) -> None:
        options = for_export(self._options, self.name(), self.session.dark, self.axes)
        size = (640, 640) if "polar" in options else (900, 420)
        arguments = json.dumps([options, kind, *size, file_name(self.name())], allow_nan=False)
        ui.run_javascript(EXPORT.replace("ARGUMENTS", arguments))


def send_drawings(session: Session) -> None:
    """Send what changed in all charts as one message, to which the page answers `drawn`."""
    ui.run_javascript(f"drawCharts({dumps(session.drawings)})")
    session.drawings = []


def icon_button(icon: str, says: str, do: Callable[..., Any], key: str = "") -> ui.button:
    """A round button with a name for those who cannot see it; no ripple, which would be drawn for twenty frames."""
    button = ui.button(icon=icon, on_click=do).props(f'flat round dense :ripple=false aria-label="{says}"')
    with button:
        ui.tooltip(f"{says} ({key})" if key else says)
    return button
