"""The chosen device: its label mix, its importance split into amount and dissimilarity, its score."""

from __future__ import annotations

import html
from collections.abc import Sequence

from nicegui import run, ui

from feelstream.columns import spent_j
from feelstream.run.explaining import number, shown_as
from feelstream.studio import bars
from feelstream.studio.lanes import Lane
from feelstream.studio.panels import Chart, heading, panel
from feelstream.studio.session import Session
from feelstream.studio.views import RoundView, explained

# Of one device by round: attributes of lanes.History, titles and units.
PAST = {
    "queue_j": ("Queue; dots: turns", "mJ"),
    "spent_j": ("Energy spent; dashed: granted", "mJ"),
    "stored": ("Data stored", "samples"),
}
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
    return {
        "status": view.status(at),
        "stored, fresh": f"{devices['stored'][at]}, {devices['fresh'][at]}",
        "frequency": shown("f_hz"),
        "mean gain β, gain": f"{shown('beta')}, {shown('gain')}",
        "amount": shown("amount"),
        "dissimilarity": shown("dissimilarity"),
        **importance,
        "queue Q": shown("queue_j"),
        "score": shown("score"),
        "energy spent": shown_as("e_tr_j", float(spent_j(devices)[at])),
    }


class DeviceDetails:
    """A panel; the device is chosen here by number or by a click on a map."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._explained: list[tuple[str, RoundView, int]] = []  # label, round and position of what `why` says
        self._complete = True  # whether it says all
        with panel("aside"):
            with ui.element("div").classes("head"):
                heading("Device")
                self.number = ui.number(min=0, precision=0, on_change=self._typed).props(
                    'dense outlined style="width: 6.5em" aria-label="Number of the device" placeholder="number"'
                )
                self.hint = ui.label("Click a device on a map, or type its number.").classes("caption")
            self.why = ui.html("", sanitize=False).classes("explained").props('aria-live="polite"')
            with ui.element("div").classes("details"):
                self.table = ui.html("", sanitize=False).classes("wide")
                with ui.element("div").classes("past"):
                    self.mix = self._chart("Fresh data by label", axes=("label", "fresh samples"))
                    self.past = {what: self._chart(*about) for what, about in PAST.items()}

    def _chart(self, title: str, unit: str = "", axes: tuple[str, str] | None = None) -> Chart:
        with ui.element("div"):
            return Chart(self.session, title, lambda: f"device {self.session.selected}", unit, "small", axes)

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
        self.mix.show(bars.by_label(mixes, self.session.dark))
        names = [lane for lane, _ in lanes]
        past = [(names.index(lane), lane.label, lane.history(device)) for lane, _, _ in found if device is not None]
        rounds = min((lane.scenario.system.rounds for lane in names), default=1)
        for what, chart in self.past.items():
            chart.show(bars.history(past, what, rounds, shown, self.session.dark))

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
