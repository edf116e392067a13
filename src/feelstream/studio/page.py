"""The page: bar, notices, board, dialogs, and the clock that redraws what changed.

Controls: play, pause, step, speed, jump; V, size and budget while the race runs; the keys of the keyboard.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from time import monotonic

from nicegui import ui

from feelstream.errors import FeelstreamError
from feelstream.loop.changes import CHANGEABLE
from feelstream.scenario.overrides import as_text
from feelstream.studio import asset
from feelstream.studio.board import Board
from feelstream.studio.charts import colours
from feelstream.studio.dialogs import new_dialog, open_dialog, save_dialog
from feelstream.studio.lanes import Lane, scenario_at
from feelstream.studio.panels import button, heading, panel, send_drawings
from feelstream.studio.race import SPEEDS, has_field
from feelstream.studio.session import Session

REDRAW_S = 0.02  # how often the page looks for what changed, which costs nothing where nothing has
SLOW_S = 2.0  # a page that drew nothing for so long is sent the next round all the same: it may be in the background
REST_S = 0.2  # without a change, before what takes longer is worked out


class Transport:
    """The bar on top."""

    def __init__(self, session: Session) -> None:
        self.session = session
        button("Back", "skip_previous", lambda: session.race.step(-1), "←")
        self.play = button("Play", "play_arrow", self.toggle, "space")
        button("Step", "skip_next", lambda: session.race.step(), "→")
        self.seek = ui.slider(min=0, max=1, value=0).classes("seek").props('aria-label="Round to show" label')
        self.seek.on("update:model-value", lambda e: session.race.jump(int(e.args)), throttle=0.1)
        self.round = ui.label("preparing").classes("round")
        names = {speed: name for name, speed in SPEEDS.items()}
        self.speed = ui.select(names, value=session.race.speed, on_change=lambda e: session.race.set_speed(e.value))
        self.speed.props('dense outlined options-dense aria-label="Rounds per second"')

    def toggle(self) -> None:
        race = self.session.race
        race.pause() if race.playing else race.play()

    def move(self, key: str) -> None:
        """What a key does, outside of inputs."""
        race = self.session.race
        moves: dict[str, Callable[[], None]] = {
            " ": self.toggle,
            "ArrowRight": race.step,
            "ArrowLeft": lambda: race.step(-1),
            "Home": lambda: race.jump(1),
            "End": lambda: race.jump(race.rounds),
        }
        moves[key]()

    def refresh(self) -> None:
        race = self.session.race
        self.play.set_text("Pause" if race.playing else "Play")
        self.play.props(f"icon={'pause' if race.playing else 'play_arrow'}")
        self.seek.props(f"max={max(race.rounds, 1)}")
        self.seek._props["model-value"] = race.shown
        self.seek.update()
        self.round.set_text(f"round {race.shown} of {race.rounds}" if race.ready else "preparing …")


class WhatIf:
    """Another V, size or budget: from the next round on in the race, or after the round shown in a fork beside it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._shown: list[Lane] = []  # the live lanes that are offered
        with panel("aside") as self.panel, ui.element("div").classes("actions what-if"):
            heading("What if …")
            self.field = ui.select({}, label="setting", on_change=self._present)
            self.value = ui.input("value")
            self.change = ui.button(on_click=lambda: self._do(session.race.change)).props("outline")
            ui.space()
            self.lane = ui.select({}, label="lane")
            self.fork = ui.button(icon="call_split", on_click=lambda: self._do(self._fork)).props("outline")
            for entry in (self.field, self.value, self.lane):
                entry.props("outlined dense options-dense")

    def refresh(self) -> None:
        race = self.session.race
        live = [lane for lane in race.lanes if lane.live]
        self.panel.set_visibility(bool(live))
        self.change.set_text(f"Change all from round {race.head + 1}")
        self.change.set_enabled(race.head < race.rounds)
        self.fork.set_text(f"Fork after round {race.shown}")
        if live and live != self._shown:
            is_new, self._shown = not set(live) & set(self._shown), live
            fields = {each: each.split(".")[-1] for each in CHANGEABLE if any(has_field(lane, each) for lane in live)}
            self.field.set_options(fields, value=next(iter(fields)) if is_new else self.field.value)
            lanes = {race.lanes.index(lane): lane.label for lane in live}
            self.lane.set_options(lanes, value=self.lane.value if self.lane.value in lanes else next(iter(lanes)))
            if is_new:
                self._present()

    def _present(self) -> None:
        """The value that is in force, to begin with."""
        having = next((lane for lane in self._shown if has_field(lane, self.field.value)), None)
        if having is not None:
            self.value.set_value(as_text(attrgetter(self.field.value)(scenario_at(having, max(having.head, 1)))))

    def _fork(self, field: str, value: str) -> None:
        self.session.race.fork(self.lane.value, self.session.race.shown, field, value)

    def _do(self, change: Callable[[str, str], object]) -> None:
        self.value.error = None
        try:
            change(self.field.value, (self.value.value or "").strip())
        except FeelstreamError as problem:
            self.value.error = str(problem)


def build(session: Session) -> None:
    """Lay the page out for one session."""
    client = ui.context.client
    ui.add_css(asset("studio.css") + colours())
    ui.add_body_html(f"<script>{asset('page.js').replace('CLIENT', client.id)}</script>")
    with ui.header(), ui.element("div").classes("bar"):
        ui.html("feelstream <span>studio</span>", sanitize=False).classes("brand")
        where = ui.label().classes("where")
        transport = Transport(session)
        button("New race", "add_circle_outline", lambda: new_dialog(session))
        button("Open", "folder_open", lambda: open_dialog(session))
        button("Save", "save_alt", lambda: save_dialog(session))
        button("Dark", "contrast", lambda: ui.run_javascript("Quasar.Dark.toggle()"))
        button("Talk", "fullscreen", lambda: ui.run_javascript("talk(true)"), "f")
    notice = ui.label().classes("notice").props('role="status"')
    what_if = WhatIf(session)
    board = Board(session)

    def redraw() -> None:
        race = session.race
        where.set_text(session.title)
        transport.refresh()
        what_if.refresh()
        board.refresh()
        send_drawings(session)
        notice.set_text(race.problem or session.note)
        notice.classes(add="bad" if race.problem else "", remove="" if race.problem else "bad")
        notice.set_visibility(bool(race.problem or session.note))

    last: tuple = ()
    drawn_at, is_drawing = 0.0, False

    def tick() -> None:
        nonlocal last, drawn_at, is_drawing
        race = session.race
        state = (id(race), race.version, session.selected, session.note)
        waits = is_drawing and monotonic() - drawn_at < SLOW_S  # a slow browser skips rounds instead of lagging behind
        if state != last and not waits and client.has_socket_connection:
            last, drawn_at, is_drawing = state, monotonic(), True
            redraw()

    def drawn() -> None:
        nonlocal is_drawing
        is_drawing = False
        tick()

    async def rest() -> None:
        if monotonic() - drawn_at > REST_S and client.has_socket_connection:
            await board.details.complete()

    ui.on("drawn", drawn)
    ui.on("move", lambda event: transport.move(event.args))
    ui.timer(REDRAW_S, tick)
    ui.timer(REST_S, rest)
