"""The page: bar, notices, board, dialogs, and the clock that redraws what changed."""

from __future__ import annotations

import asyncio
from time import monotonic

from nicegui import ui

from feelstream.studio import asset
from feelstream.studio.board import Board
from feelstream.studio.controls import Knobs, Transport
from feelstream.studio.dialogs import fork_dialog, open_dialog, save_dialog
from feelstream.studio.panels import icon_button, send_drawings
from feelstream.studio.session import SESSIONS, Session
from feelstream.studio.setup import setup_dialog

REDRAW_S = 0.05  # how often the page looks for what changed; a race calls it sooner, but at most so often:
SOONEST_S = 0.03
SLOW_S = 2.0  # a page that drew nothing for so long is sent the next round all the same: it may be in the background
REST_S = 0.2  # without a change, before what takes longer is worked out
IS_DARK = "matchMedia('(prefers-color-scheme: dark)').matches"


def build(session: Session) -> None:
    """Lay the page out for one session."""
    client = ui.context.client
    ui.add_css(asset("studio.css"))
    ui.add_body_html(f"<script>{asset('page.js').replace('CLIENT', client.id)}</script>")
    dark = ui.dark_mode(None)

    def use_scheme(is_dark: bool) -> None:
        session.dark = is_dark
        dark.set_value(is_dark)

    with ui.header(), ui.element("div").classes("bar"):
        ui.html("feelstream <span>studio</span>", sanitize=False).classes("brand")
        where = ui.label().classes("where")
        transport = Transport(session)
        icon_button("add_circle_outline", "New race", lambda: setup_dialog(session))
        icon_button("folder_open", "Open stored runs", lambda: open_dialog(session))
        icon_button("save_alt", "Save", lambda: save_dialog(session))
        icon_button("contrast", "Dark or light", lambda: use_scheme(not session.dark))
        icon_button("fullscreen", "Presentation", lambda: ui.run_javascript("talk(true)"), "f")
    notice = ui.label().classes("notice").props('role="status"')
    board = Board(session)
    knobs = Knobs(session, lambda: fork_dialog(session))
    knobs.panel.move(target_index=2)
    knobs.panel.classes("aside")
    ui.keyboard(on_key=transport.key)
    shown = 0

    def redraw() -> None:
        nonlocal shown
        race = session.race
        where.set_text(session.title)
        transport.refresh()
        knobs.refresh()
        board.refresh()
        send_drawings(session)
        notice.set_text(race.problem or session.note)
        notice.classes(add="bad" if race.problem else "", remove="" if race.problem else "bad")
        notice.set_visibility(bool(race.problem or session.note))
        shown = min(shown, len(race.notes))
        for note in race.notes[shown:]:
            ui.notify(note, type="positive", position="bottom-right")
        shown = len(race.notes)

    last: tuple = ()
    drawn_at, is_drawing = 0.0, False

    def tick() -> None:
        nonlocal last, drawn_at, is_drawing
        race = session.race
        state = (id(race), race.version, session.selected, session.dark, session.talk, session.note)
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

    loop = asyncio.get_running_loop()

    def called() -> None:
        """The race has something new; nobody looks any more if the tab was closed in the meantime."""
        if SESSIONS.get(client.id) is session and monotonic() - drawn_at > SOONEST_S:
            with client:
                tick()

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(called)

    session.wake = wake

    async def follow_scheme() -> None:
        use_scheme(bool(await ui.run_javascript(IS_DARK, timeout=10)))

    def present(is_on: bool) -> None:
        session.talk = is_on

    ui.on("drawn", drawn)
    ui.on("talk", lambda event: present(bool(event.args)))
    ui.on("scheme", lambda event: use_scheme(bool(event.args)))
    ui.timer(0.01, follow_scheme, once=True)
    ui.timer(REDRAW_S, tick)
    ui.timer(REST_S, rest)
