"""The board: everything that a round shows, redrawn from the race's views when there is something new."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
from nicegui import run, ui

from feelstream.columns import spent_j
from feelstream.display.chart import line_style
from feelstream.display.quantities import QUANTITIES, measures
from feelstream.run.explaining import number, shown_as
from feelstream.studio import charts, maps
from feelstream.studio.lanes import Lane, scenario_at
from feelstream.studio.panels import Chart, button, heading, panel
from feelstream.studio.session import Session
from feelstream.studio.views import RoundView, explained, place, ranking_of, why

ABOUT_MAP = (
    "Triangle: the server. Distance: channel loss. Discs: stored and fresh data. Ring: sent; dashed: dropped. "
    "Square: the selected device."
)
# Of one device by round: columns of `Lane.past`, titles and units.
PAST = {
    "queue_next_j": ("Queue", "mJ; dots: scheduled"),
    "spent_j": ("Energy spent", "mJ; dashed: granted by the budget"),
    "stored": ("Data stored", "samples"),
}
FACTS = {  # of the selected device, by column
    "stored": "stored", "fresh": "fresh", "f_hz": "frequency", "beta": "mean gain β", "gain": "gain",
    "amount": "amount", "dissimilarity": "dissimilarity", "importance": "importance I", "queue_j": "queue Q",
    "score": "score",
}  # fmt: skip
CURVES = ("accuracy", "loss", "energy_mean_cum_j")


class Board:
    """Charts over all lanes on top, one panel a lane below, then data by label and the selected device."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.legend = ui.html("", sanitize=False).classes("legend")
        self.curves_box = ui.element("div").classes("grid3")
        self.curves: dict[str, Chart] = {}
        self._fit_curves([])
        self.lanes_box = ui.element("div").classes("lanes")
        self.lanes: list[LanePanel] = []
        self.details = DeviceDetails(session)
        with panel("aside"):
            axes = ("label", "samples")
            self.used = Chart(session, "Data used so far", "samples by label", classes="used", axes=axes)

    def refresh(self) -> None:
        """Redraw, once there is a race."""
        session, race = self.session, self.session.race
        if not race.ready:
            return
        lanes, shown = list(race.lanes), race.shown
        self.legend.set_content(_legend(lanes))
        self._fit_curves(lanes)
        for name, chart in self.curves.items():
            chart.show(charts.curves(lanes, name, shown))
        if [panel.lane for panel in self.lanes] != lanes:
            self.lanes_box.clear()
            with self.lanes_box:
                self.lanes = [LanePanel(session, lane, index) for index, lane in enumerate(lanes)]
        views = [lane.view(shown) if lane.oldest <= shown <= lane.head else None for lane in lanes]
        if session.selected is None and views and views[0] is not None and len(views[0].chosen):
            assert views[0].devices is not None
            session.selected = int(views[0].devices["device"][views[0].chosen[0]])  # something to look at
        seen = [view.devices for view in views if view is not None and view.devices is not None]
        most_queue = max((float(devices["queue_j"].max()) for devices in seen), default=0.0)
        most_stored = max((float(devices["stored"].max()) for devices in seen), default=1.0)
        used = []
        for lane_panel, view in zip(self.lanes, views, strict=True):
            lane_panel.show(view, shown, most_queue, most_stored)
            if view is not None and view.used_labels is not None:
                used.append((lane_panel.lane.label, view.used_labels))
        self.used.show(charts.by_label(used))
        self.details.show(list(zip(lanes, views, strict=True)), shown)

    def _fit_curves(self, lanes: list[Lane]) -> None:
        """A chart for each of CURVES, and for each number of an evaluator that a lane has."""
        columns = dict.fromkeys(name for lane in lanes for row in lane.rows[-1:] for name in row)
        wanted = [*CURVES, *(quantity.name for quantity in measures(columns))]
        if wanted == list(self.curves):
            return
        self.curves_box.clear()
        with self.curves_box:
            self.curves = {name: self._curve(name) for name in wanted}

    def _curve(self, name: str) -> Chart:
        unit = QUANTITIES[name].full_unit + ("; dashed: budget" if name == charts.BUDGETED else "")
        with panel():
            return Chart(self.session, QUANTITIES[name].words, unit)


class LanePanel:
    """One policy: why these devices, where they are, who was scheduled when."""

    def __init__(self, session: Session, lane: Lane, index: int) -> None:
        self.session, self.lane, self.index = session, lane, index

        def chart(title: str, classes: str, axes: tuple[str, str] | None = None) -> Chart:
            made = Chart(session, title, of=lambda: lane.label, classes=classes, axes=axes)
            made.element.on_point_click(self._select)
            return made

        with panel():
            with ui.element("div").classes("head"):
                ui.element("div").classes("swatch").style(_edge(index))
                heading(lane.label)
                if (policy := lane.scenario.policy.tag.rpartition(":")[2]) not in lane.label:
                    ui.label(policy).classes("unit")  # a stored run is labelled by its directory
                ui.space()
                if index:
                    button("Remove", "close", lambda: session.race.remove(index)).props("size=sm")
            self.figures = ui.html("", sanitize=False).classes("unit")
            self.why = ui.label().classes("why").props('aria-live="polite"')
            with ui.element("div").classes("lane-box"), ui.element("div").classes("lane-body"):
                with ui.element("div"):
                    self.map = chart("Map of devices", "map")
                    ui.label(ABOUT_MAP).classes("caption")
                with ui.element("div"):
                    self.scores = chart("Best candidates", "scores", ("sum of the terms", ""))
                    self.place = ui.label().classes("caption place")
                    says = "This policy ranks devices by no score, so there is nothing to draw."
                    self.unranked = ui.label(says).classes("caption unranked")
                    self.times = chart("Who was scheduled when", "when", ("round", "device"))

    def _select(self, event) -> None:
        name = str(event.name or (event.value[1] if isinstance(event.value, list) else ""))
        if name.startswith("device "):
            self.session.selected = int(name.split()[1])

    def show(self, view: RoundView | None, shown: int, most_queue_j: float, most_stored: float) -> None:
        selected = self.session.selected
        if view is None:
            self.why.set_text("Not run yet." if shown < 1 else "This round is no longer in the history.")
            return
        self.why.set_text(why(view, scenario_at(self.lane, view.round)))
        self.figures.set_content(_figures(view))
        self.times.show(maps.timeline(self.lane, self.index, shown, selected))
        ranking = ranking_of(view)
        self.scores.element.set_visibility(ranking is not None)
        self.unranked.set_visibility(ranking is None)
        if ranking is not None and view.scene is not None:
            self.place.set_text(place(ranking, view.scene.decision.schedule))
            self.scores.show(charts.scores(ranking, view.scene.decision.schedule))
        if view.devices is not None:
            self.map.show(maps.device_map(view, most_queue_j, most_stored, selected))


def _legend(lanes: list[Lane]) -> str:
    """Which curve is whose, once for all charts."""
    each = (f'<span><i style="{_edge(n)}"></i>{html.escape(lane.label)}</span>' for n, lane in enumerate(lanes))
    return "".join(each)


def _edge(index: int) -> str:
    """A border like the curve of a lane, as near as its dashes can be."""
    dash = {"solid": "solid", "dot": "dotted"}.get(line_style(index).plotly_dash, "dashed")
    return f"border-top: 3px {dash} var({charts.colour(index)})"


def _figures(view: RoundView) -> str:
    row = view.row
    texts = [
        f"{QUANTITIES[name].heading} {shown_as(name, row[name])}"
        for name in ("accuracy", "queue_mean_j", "energy_mean_cum_j")
        if row.get(name) is not None and np.isfinite(row[name])
    ]
    return " · ".join(f'<span class="value">{html.escape(text)}</span>' for text in texts)


def facts(view: RoundView, at: int) -> dict[str, str]:
    """What is known of the device at position `at`, by name."""
    devices, found = view.devices, explained(view, at)
    assert devices is not None
    return {
        "status": view.status(at),
        **{heading: shown_as(name, float(devices[name][at])) for name, heading in FACTS.items()},
        **({name: number(value) for name, value in found.terms.items()} if found else {}),
        "energy spent": shown_as("e_tr_j", float(spent_j(devices)[at])),
    }


class DeviceDetails:
    """A panel; the device is selected here by number or by a click on a map."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._explained: list[tuple[str, RoundView, int]] = []  # label, round and position of what `why` says
        self._complete = True  # whether it says all
        with panel("aside"):
            with ui.element("div").classes("head"):
                heading("Selected device")
                self.number = ui.number(min=0, precision=0, on_change=self._typed).props(
                    'dense outlined style="width: 6.5em" aria-label="Number of the device" placeholder="number"'
                )
                self.hint = ui.label("Click a device on a map, or type its number.").classes("caption")
            self.why = ui.html("", sanitize=False).classes("explained").props('aria-live="polite"')
            with ui.element("div").classes("details"):
                self.table = ui.html("", sanitize=False).classes("wide")
                with ui.element("div").classes("past"):
                    self.mix = self._chart("Fresh data by label", "samples", ("label", "fresh samples"))
                    self.past = {what: self._chart(*about) for what, about in PAST.items()}

    def _chart(self, title: str, unit: str, axes: tuple[str, str] | None = None) -> Chart:
        with ui.element("div"):
            return Chart(self.session, title, unit, lambda: f"device {self.session.selected}", "small", axes)

    def _typed(self, event) -> None:
        self.session.selected = None if event.value is None else int(event.value)

    def show(self, lanes: Sequence[tuple[Lane, RoundView | None]], shown: int) -> None:
        device = self.session.selected
        if device is not None and self.number.value != device:
            self.number.set_value(device)
        found = [
            (lane, view, at)
            for lane, view in lanes
            if view is not None and device is not None and (at := view.where(device)) is not None
        ]
        most = max((lane.scenario.system.devices for lane, _ in lanes), default=1) - 1
        self.number.max = most
        if device is not None and not 0 <= device <= most:
            hint = f"There is no device {device}; they are 0 to {most}."
        elif device is not None and not found:
            hint = "This device is not among those shown."
        else:
            hint = f"in round {shown}" if found else "Click a device on a map, or type its number."
        self.hint.set_text(hint)
        self.table.set_content(_table([(lane.label, facts(view, at)) for lane, view, at in found]))
        self._explained = [(lane.label, view, at) for lane, view, at in found]
        self._complete = self.session.race.playing
        self.why.set_content("".join(_sentence(*each) for each in self._explained))
        mixes = [(lane.label, view.devices["fresh_labels"][at]) for lane, view, at in found if view.devices]
        self.mix.show(charts.by_label(mixes))
        names = [lane for lane, _ in lanes]
        past = [(names.index(lane), lane.label, lane.past(device)) for lane, _, _ in found if device is not None]
        rounds = min((lane.scenario.system.rounds for lane in names), default=1)
        for what, chart in self.past.items():
            chart.show(charts.history(past, what, rounds, shown))

    async def complete(self) -> None:
        """Once the race rests: what would have changed the decision. It is decided again many times for that, in
        another thread, so that no step waits for it."""
        if not self._complete:
            self._complete, about = True, self._explained
            text = await run.io_bound(_completed, about)
            if text is not None and about is self._explained:  # None: the server is ending
                self.why.set_content(text)


def _completed(explained: Sequence[tuple[str, RoundView, int]]) -> str:
    return "".join(_sentence(*each, with_thresholds=True) for each in explained)


def _sentence(label: str, view: RoundView, at: int, with_thresholds: bool = False) -> str:
    """Why the device was scheduled, or not; what would change it where the policy decides quickly."""
    quick = view.scene is not None and not view.scene.policy.fills_round
    found = explained(view, at, with_thresholds=with_thresholds and quick)
    return f"<p><b>{html.escape(label)}</b> {html.escape(found.text)}</p>" if found else ""


def _table(columns: Sequence[tuple[str, dict[str, str]]]) -> str:
    if not columns:
        return ""
    names = list(dict.fromkeys(name for _, shown in columns for name in shown))
    head = "".join(f"<th scope='col'>{html.escape(label)}</th>" for label, _ in columns)
    rows = "".join(
        f"<tr><th scope='row'>{name}</th>"
        + "".join(f"<td>{html.escape(shown.get(name, '–'))}</td>" for _, shown in columns)
        + "</tr>"
        for name in names
    )
    return f"<table class='facts'><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>"
