"""The chosen device: its label mix, its importance split into amount and dissimilarity, its score."""

from __future__ import annotations

import html
from collections.abc import Sequence

from nicegui import ui

from feelstream.run.explaining.wording import number, shown_as
from feelstream.studio import charts
from feelstream.studio.lanes import Lane
from feelstream.studio.panels import Chart, heading, panel
from feelstream.studio.session import Session
from feelstream.studio.views import RoundView
from feelstream.studio.words import explained

Shown = Sequence[tuple[Lane, RoundView | None]]


def facts(view: RoundView, at: int) -> dict[str, str]:
    """What is known of the device at position `at`, by name; a dash where there is nothing to tell."""
    devices = view.devices
    assert devices is not None

    def shown(name: str) -> str:
        return shown_as(name, float(devices[name][at]))

    importance = {"importance I": shown("importance")}
    if (found := explained(view, at)) is not None and found.terms:
        importance |= {name: number(value) for name, value in found.terms.items()}
    status = "sent" if devices["transmitted"][at] else "dropped" if devices["scheduled"][at] else "idle"
    if status == "idle" and not devices["feasible"][at]:
        status = "too slow" if devices["available"][at] else "not available"
    parts = [devices[name][at] for name in ("e_cmp_j", "e_tr_j", "e_down_j") if name in devices]
    return {
        "status": status,
        "stored, fresh": f"{devices['stored'][at]}, {devices['fresh'][at]}",
        "frequency": shown("f_hz"),
        "mean gain β, gain": f"{shown('beta')}, {shown('gain')}",
        "amount": shown("amount"),
        "dissimilarity": shown("dissimilarity"),
        **importance,
        "queue Q": shown("queue_j"),
        "score": shown("score"),
        "energy spent": shown_as("e_tr_j", float(sum(parts))),
    }


class DeviceDetails:
    """A panel; the device is chosen here by number or by a click on a map."""

    def __init__(self, session: Session) -> None:
        self.session = session
        with panel():
            with ui.element("div").classes("head"):
                heading("Device")
                self.number = ui.number(min=0, precision=0, on_change=self._typed).props(
                    'dense outlined style="width: 6.5em" aria-label="Number of the device" placeholder="number"'
                )
                self.hint = ui.label("Click a device on a map, or type its number.").classes("caption")
                ui.space()
                menu = ui.element("div")
            with ui.element("div").classes("lane-body details"):
                self.table = ui.html("", sanitize=False).classes("wide")
                self.mix = Chart(session, lambda: f"Fresh data of device {session.selected}, by label", "used")
            self.why = ui.html("", sanitize=False).classes("explained").props('aria-live="polite"')
        with menu:
            self.mix.menu()

    def _typed(self, event) -> None:
        self.session.selected = None if event.value is None else int(event.value)

    def show(self, lanes: Shown, shown: int) -> None:
        device = self.session.selected
        if device is not None and self.number.value != device:
            self.number.set_value(device)
        found = [
            (lane, view, at)
            for lane, view in lanes
            if view is not None and device is not None and (at := view.where(device)) is not None
        ]
        missing = device is not None and not found
        asks = "Click a device on a map, or type its number."
        self.hint.set_text(
            "This device is not among those shown." if missing else f"in round {shown}" if found else asks
        )
        self.table.set_content(_table([(lane.label, facts(view, at)) for lane, view, at in found]))
        paused = not self.session.race.playing
        self.why.set_content("".join(_sentence(lane.label, view, at, paused) for lane, view, at in found))
        mixes = [(lane.label, view.devices["fresh_labels"][at]) for lane, view, at in found if view.devices]
        self.mix.show(charts.by_label(mixes, self.session.dark, "fresh samples"))


def _sentence(label: str, view: RoundView, at: int, paused: bool) -> str:
    """Why the device was scheduled, or not; what would change it only while the race rests, since that is decided again
    many times."""
    quick = view.scene is not None and not view.scene.policy.fills_round
    found = explained(view, at, with_thresholds=paused and quick)
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
