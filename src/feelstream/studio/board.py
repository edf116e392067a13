"""The board: everything that a round shows, redrawn from the race's views when there is something new."""

from __future__ import annotations

import html

import numpy as np
from nicegui import ui

from feelstream.display.quantities import QUANTITIES, measures
from feelstream.run.explaining import shown_as
from feelstream.studio import bars, charts, maps
from feelstream.studio.details import DeviceDetails
from feelstream.studio.lanes import Lane, scenario_at
from feelstream.studio.panels import Chart, heading, panel
from feelstream.studio.session import Session
from feelstream.studio.views import RoundView, place, ranking_of, why

ABOUT_MAP = (
    "Triangle: the server. Distance: channel loss. Discs: stored and fresh data. Ring: sent; dashed: dropped. "
    "Square: the chosen device."
)
CURVES = ("accuracy", "loss", "energy_mean_cum_j")


class Board:
    """Charts over all lanes on top, one panel a lane below, then data by label and the chosen device."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.legend = ui.html("", sanitize=False).classes("legend")
        self.curves_box = ui.element("div").classes("grid3")
        self.curves: dict[str, Chart] = {}
        self._fit_curves([])
        self.lanes_box = ui.element("div").classes("lanes")
        self.lanes: list[LanePanel] = []
        self.details = DeviceDetails(session)
        with ui.element("div").classes("aside"):
            self.used = self._chart("Data used so far", "samples by label", "used", ("label", "samples"))

    def _chart(self, title: str, unit: str, classes: str = "", axes: tuple[str, str] | None = None) -> Chart:
        with panel():
            return Chart(self.session, title, lambda: self.session.title, unit, classes, axes, large=True)

    def refresh(self) -> None:
        """Redraw, once there is a race."""
        session, race = self.session, self.session.race
        if not race.ready:
            return
        lanes, shown, dark = list(race.lanes), race.shown, session.dark
        self.legend.set_content(_legend(lanes, dark))
        self._fit_curves(lanes)
        for name, chart in self.curves.items():
            chart.show(charts.curves(lanes, name, shown, dark))
        if [panel.lane for panel in self.lanes] != lanes:
            self._rebuild(lanes)
        views = [lane.view(shown) if lane.oldest <= shown <= lane.head else None for lane in lanes]
        if session.selected is None and views and views[0] is not None and len(views[0].chosen):
            assert views[0].devices is not None
            session.selected = int(views[0].devices["device"][views[0].chosen[0]])  # something to look at
        seen = [view.devices for view in views if view is not None and view.devices is not None]
        most_queue = max((float(devices["queue_j"].max()) for devices in seen), default=0.0)
        most_stored = max((float(devices["stored"].max()) for devices in seen), default=1.0)
        for lane_panel, view in zip(self.lanes, views, strict=True):
            lane_panel.show(view, shown, most_queue, most_stored)
        used = [
            (lane.label, view.used_labels)
            for lane, view in zip(lanes, views, strict=True)
            if view is not None and view.used_labels is not None
        ]
        self.used.show(bars.by_label(used, dark))
        self.details.show(list(zip(lanes, views, strict=True)), shown)

    def _fit_curves(self, lanes: list[Lane]) -> None:
        """A chart for each of CURVES, and for each number of an evaluator that a lane has."""
        columns = dict.fromkeys(name for lane in lanes for row in lane.rows[-1:] for name in row)
        wanted = [*CURVES, *(quantity.name for quantity in measures(columns))]
        if wanted == list(self.curves):
            return
        self.curves_box.clear()
        with self.curves_box:
            self.curves = {name: self._chart(QUANTITIES[name].words, _unit(name)) for name in wanted}

    def _rebuild(self, lanes: list[Lane]) -> None:
        self.lanes_box.clear()
        with self.lanes_box:
            self.lanes = [LanePanel(self.session, lane, index) for index, lane in enumerate(lanes)]


class LanePanel:
    """One policy: why these devices, where they are, who was scheduled when."""

    def __init__(self, session: Session, lane: Lane, index: int) -> None:
        self.session, self.lane, self.index = session, lane, index

        def label() -> str:
            return lane.label

        with panel():
            with ui.element("div").classes("head"):
                self.swatch = ui.element("div").classes("swatch")
                heading(lane.label)
                if (policy := lane.scenario.policy.tag.rpartition(":")[2]) not in lane.label:
                    ui.label(policy).classes("unit")  # a stored run is labelled by its directory
                ui.space()
                corner = ui.element("div")
                if index:
                    remove = ui.button(icon="close", on_click=lambda: session.race.remove(index))
                    remove.props('flat dense round size=sm aria-label="Remove this lane"')
            self.figures = ui.html("", sanitize=False).classes("unit")
            self.why = ui.label().classes("why").props('aria-live="polite"')
            with ui.element("div").classes("lane-box"), ui.element("div").classes("lane-body"):
                with ui.element("div"):
                    self.map = Chart(session, "Devices", label, classes="map", large=None)
                    ui.label(ABOUT_MAP).classes("caption")
                with ui.element("div"):
                    self.scores = Chart(
                        session, "The best candidates", label, classes="scores", axes=("sum of the terms", "")
                    )
                    self.place = ui.label().classes("caption place")
                    self.unranked = ui.label(
                        "This policy ranks devices by no score, so there is nothing to draw."
                    ).classes("caption unranked")
                    self.times = Chart(
                        session, "Who was scheduled when", label, classes="when", axes=("round", "device")
                    )
            for chart in (self.map, self.times, self.scores):
                chart.element.on_point_click(self._choose)
        with corner:
            self.map.menu()

    def _choose(self, event) -> None:
        name = str(event.name or (event.value[1] if isinstance(event.value, list) else ""))
        if name.startswith("device "):
            self.session.selected = int(name.split()[1])

    def show(self, view: RoundView | None, shown: int, most_queue_j: float, most_stored: float) -> None:
        dark, selected = self.session.dark, self.session.selected
        self.swatch.style(f"border-top-color: {charts.colour(self.index, dark)}")
        if view is None:
            self.why.set_text("Not run yet." if shown < 1 else "This round is no longer in the history.")
            return
        self.why.set_text(why(view, scenario_at(self.lane, view.round)))
        self.figures.set_content(_figures(view))
        self.times.show(maps.timeline(self.lane, self.index, shown, selected, dark))
        ranking = ranking_of(view)
        self.scores.element.set_visibility(ranking is not None)
        self.unranked.set_visibility(ranking is None)
        if ranking is not None and view.scene is not None:
            self.place.set_text(place(ranking, view.scene.decision.schedule))
            self.scores.show(bars.scores(ranking, view.scene.decision.schedule, dark))
        if view.devices is not None:
            self.map.show(maps.device_map(view, most_queue_j, most_stored, selected, dark))


def _legend(lanes: list[Lane], dark: bool) -> str:
    """Which curve is whose, once for all charts."""
    lines = [
        f'<span><i style="border-top: 3px {charts.dash_name(index)} {charts.colour(index, dark)}"></i>'
        f"{html.escape(lane.label)}</span>"
        for index, lane in enumerate(lanes)
    ]
    return "".join(lines)


def _unit(name: str) -> str:
    return QUANTITIES[name].full_unit + ("; dashed: budget" if name == charts.BUDGETED else "")


def _figures(view: RoundView) -> str:
    row = view.row
    texts = [
        f"{QUANTITIES[name].heading} {shown_as(name, row[name])}"
        for name in ("accuracy", "queue_mean_j", "energy_mean_cum_j")
        if row.get(name) is not None and np.isfinite(row[name])
    ]
    return " · ".join(f'<span class="value">{html.escape(text)}</span>' for text in texts)
