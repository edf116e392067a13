"""The page: bar, notices, board, dialogs, and the clock that redraws what changed.

Controls: play, pause, step, speed, jump; V, size and budget while the race runs; the keys of the keyboard.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from nicegui import ui

from feelstream.errors import FeelstreamError
from feelstream.studio import asset
from feelstream.studio.board import Board
from feelstream.studio.charts import shown_setting
from feelstream.studio.dialogs import fork_dialog, open_dialog, save_dialog, setup_dialog
from feelstream.studio.draft import value_in
from feelstream.studio.lanes import scenario_at
from feelstream.studio.panels import heading, icon_button, panel, send_drawings
from feelstream.studio.race import SPEEDS, has_field
from feelstream.studio.session import Session

STEPS = [f"{digit}e{exponent}" for exponent in range(-5, 2) for digit in (1, 2, 5)]
REDRAW_S = 0.02  # how often the page looks for what changed, which costs nothing where nothing has
SLOW_S = 2.0  # a page that drew nothing for so long is sent the next round all the same: it may be in the background
REST_S = 0.2  # without a change, before what takes longer is worked out
IS_DARK = "matchMedia('(prefers-color-scheme: dark)').matches"


class Transport:
    """The bar on top."""

    def __init__(self, session: Session) -> None:
        self.session = session
        icon_button("skip_previous", "Back one round", lambda: session.race.step(-1), "←")
        self.play = icon_button("pause", "Play or pause", self.toggle, "space")
        icon_button("skip_next", "On one round", lambda: session.race.step(), "→")
        self.seek = ui.slider(min=0, max=1, value=0).classes("seek").props('aria-label="Round to show" label')
        self.seek.on("update:model-value", lambda e: session.race.jump(int(e.args)), throttle=0.1)
        self.round = ui.label("preparing").classes("round")
        self.seed = ui.select({}, on_change=lambda e: e.value is not None and session.choose_seed(e.value))
        self.seed.props('dense outlined options-dense prefix="seed" aria-label="Seed of the runs shown"')
        names = {speed: name for name, speed in SPEEDS.items()}
        self.speed = ui.select(names, value=session.race.speed, on_change=lambda e: session.race.set_speed(e.value))
        self.speed.props('dense outlined options-dense aria-label="Rounds per second"')

    def toggle(self) -> None:
        race = self.session.race
        race.pause() if race.playing else race.play()

    def key(self, event) -> None:
        """Space, arrows, Home and End, outside of inputs."""
        if not event.action.keydown:
            return
        race, name = self.session.race, event.key.name
        moves: dict[str, Callable[[], None]] = {
            " ": self.toggle,
            "ArrowRight": race.step,
            "ArrowLeft": lambda: race.step(-1),
            "Home": lambda: race.jump(1),
            "End": lambda: race.jump(race.rounds),
        }
        if name in moves:
            moves[name]()

    def refresh(self) -> None:
        race, seeds = self.session.race, [seed for seed in self.session.seeds if seed is not None]
        self.seed.set_visibility(len(seeds) > 1)
        if self.seed.options != seeds or self.seed.value != self.session.seed:
            self.seed.set_options(seeds, value=self.session.seed)
        self.play.props(f"icon={'pause' if race.playing else 'play_arrow'}")
        self.seek.props(f"max={max(race.rounds, 1)}")
        self.seek._props["model-value"] = race.shown
        self.seek.update()
        self.round.set_text(f"round {race.shown} of {race.rounds}" if race.ready else "preparing …")


class Knobs:
    """V, size and budget of the race under way, and the door to other futures."""

    def __init__(self, session: Session, what_if: Callable[[], None]) -> None:
        self.session = session
        self._race: object = None
        with panel() as self.panel:
            with ui.element("div").classes("head"):
                heading("Turn while it runs")
                self.where = ui.label().classes("unit")
                ui.space()
                ui.button("What if …", icon="call_split", on_click=what_if).props("outline dense")
            self.box = ui.element("div").classes("knobs")

    def refresh(self) -> None:
        """Rebuilt for a new race; otherwise only updated with what is in force."""
        race = self.session.race
        self.where.set_text(
            f"takes effect in round {race.head + 1}, the next to be simulated; marked on the charts, noted in the trace"
            if race.head < race.rounds
            else "the race is over: fork from an earlier round"
        )
        if race.ready and self._race is not race:
            self._race = race
            self.box.clear()
            live = [lane for lane in race.lanes if lane.live]
            self.panel.set_visibility(bool(live))
            with self.box:
                for field, name, unit in (
                    ("policy.V", "V", "J²"), ("policy.size", "size", ""), ("system.energy_budget_j", "budget", ""),
                ):  # fmt: skip
                    having = next((lane for lane in live if has_field(lane, field)), None)
                    if having is not None:
                        present = value_in(scenario_at(having, max(race.head, 1)), field)
                        most = min(having.scenario.system.devices, 20)
                        self._knob(field, name, unit, present, most)

    def _knob(self, field: str, name: str, unit: str, present: str, most: int) -> None:
        values = [str(n) for n in range(1, most + 1)] if name == "size" else [f"{float(step):g}" for step in STEPS]
        values += ["inf"] if name == "V" else []
        if present not in values and not present.startswith("["):
            values = sorted([*values, present], key=float)
        at = values.index(present) if present in values else 0
        with ui.element("label").classes("knob"):
            ui.label(name)
            slider = ui.slider(min=0, max=len(values) - 1, value=at).props(f'snap aria-label="{name}"')
            label = ui.label(_value(field, present, unit)).classes("value")
        slider.on_value_change(lambda event: label.set_text(_value(field, values[int(event.value or 0)], unit)))

        def apply(event) -> None:
            value = values[int(event.args)]
            try:
                self.session.race.change(field, value)
            except FeelstreamError as problem:
                ui.notify(str(problem), type="negative", multi_line=True)

        slider.on("change", apply)


def _value(field: str, value: str, unit: str) -> str:
    """With its unit; budgets in mJ, as on the charts."""
    return f"{shown_setting(field, value).partition(' = ')[2] or 'by device'} {unit}".rstrip()


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
