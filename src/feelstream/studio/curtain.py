"""What a tab shows before its session is there: the frame of the page, with the libraries that the charts will need."""

from __future__ import annotations

from nicegui import ui

from feelstream.studio.assets import asset
from feelstream.studio.drawing import Drawing


def furnish(client_id: str) -> None:
    """The style and the scripts of the page."""
    ui.add_css(asset("studio.css"))
    script = asset("page.js").replace("CLIENT", client_id)
    ui.add_body_html(f"<script>{script}</script>")


def curtain() -> ui.element:
    """Empty panels in the places of those to come."""
    with ui.element("div").classes("curtain") as whole:
        ui.html("feelstream <span>studio</span>", sanitize=False).classes("brand")
        ui.label("The first race is being prepared …").classes("caption").props('role="status"')
        with ui.element("div").classes("grid3"):
            for _ in range(3):
                ui.element("section").classes("panel")
        with ui.element("div").classes("grid2"):
            for _ in range(2):
                ui.element("section").classes("panel tall")
        Drawing().classes("unseen")  # so that the browser reads the library of the charts meanwhile
    return whole
