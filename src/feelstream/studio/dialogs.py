"""Dialogs: another future (fork), save, open stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from nicegui import run, ui

from feelstream.errors import FeelstreamError
from feelstream.loop.changes import CHANGEABLE
from feelstream.studio import offline, saving
from feelstream.studio.draft import value_in
from feelstream.studio.lanes import MOST_LANES, Lane, Stored, by_seed, scenario_at, stored_runs
from feelstream.studio.panels import heading
from feelstream.studio.race import has_field
from feelstream.studio.session import Session


def _dialog(title: str) -> tuple[ui.dialog, ui.card]:
    with ui.dialog() as dialog, ui.card().classes("dialog") as card:
        heading(title)
    dialog.on("hide", dialog.delete)
    dialog.open()
    return dialog, card


def fork_dialog(session: Session) -> None:
    """What if V, size or budget had been another from the round on that is shown?"""
    race = session.race
    race.pause()
    shown = race.shown if race.shown < race.rounds else race.rounds // 2
    live = {index: lane for index, lane in enumerate(race.lanes) if lane.live}
    if not live:
        ui.notify("Stored runs cannot be forked; start a race of your own.", type="warning")
        return
    dialog, card = _dialog("What if …")
    with card:
        ui.label("The lane's past stays as it is; a new lane shows the other future beside it.").classes("caption")
        with ui.element("div").classes("form"):
            after = ui.number("after round", value=shown, min=0, max=race.rounds - 1, precision=0)
            lane = ui.select({i: each.label for i, each in live.items()}, value=next(iter(live)), label="lane")
            field = ui.select([], label="setting")
            value = ui.input("value")
        for entry in (after, lane, field, value):
            entry.props("outlined dense options-dense")

        def offer() -> None:
            chosen = live[lane.value]
            field.set_options([name for name in CHANGEABLE if has_field(chosen, name)])
            field.set_value(field.options[0])

        def present() -> None:
            if field.value:
                value.set_value(value_in(scenario_at(live[lane.value], max(shown, 1)), field.value))

        def fork() -> None:
            try:
                race.fork(lane.value, int(after.value or 0), field.value, (value.value or "").strip())
            except FeelstreamError as problem:
                value.error = str(problem)
                return
            dialog.close()

        lane.on_value_change(offer)
        field.on_value_change(present)
        offer()
        present()
        with ui.element("div").classes("actions"):
            ui.space()
            ui.button("Cancel", on_click=dialog.close).props("flat")
            ui.button("Fork", icon="call_split", on_click=fork)


def save_dialog(session: Session) -> None:
    """Run directories, scenario files and commands into a directory; each file also by itself."""
    lanes = list(session.race.lanes)
    _, card = _dialog("Save this race")
    with card:
        live = all(lane.live for lane in lanes)
        where = Path("studio-runs") / f"{saving.file_name(session.title)}-{datetime.now():%Y%m%d-%H%M%S}"
        if live:
            ui.label(
                "Each lane is run to its end into a run directory that feelstream verify accepts, with its scenario "
                "file beside it."
            ).classes("caption")
            directory = ui.input("directory", value=str(where)).props("outlined dense").style("width: 100%")
            status = ui.label().classes("unit").props('role="status"')
            progress: dict[str, str] = {}

            async def save() -> None:
                button.disable()
                clock = ui.timer(0.2, lambda: status.set_text(progress.get("status", "starting")))
                try:
                    path = await run.io_bound(
                        saving.save, lanes, Path(directory.value or ""), lambda text: progress.update(status=text)
                    )
                    words = f"Saved in {path.resolve()}" if path else "The studio is ending."
                except FeelstreamError as problem:
                    words = str(problem)
                clock.cancel()
                status.set_text(words)
                button.enable()

            button = ui.button("Save run directories", icon="save_alt", on_click=save)
        else:
            ui.label("These runs are stored already; their scenario files and commands are below.").classes("caption")
        ui.label("The commands that repeat the runs, given the scenario files").classes("unit")
        ui.label("\n".join(saving.command(lane) for lane in lanes)).classes("code")
        with ui.element("div").classes("actions"):
            for lane in lanes:
                _download(lane)
        ui.label("As far as it has run, as one HTML file that plays by itself in any browser").classes("unit")
        with ui.element("div").classes("actions"):
            _download_race(session, lanes)
        ui.label("Pictures: every chart has a button for PNG and SVG.").classes("caption")


def _download(lane: Lane) -> None:
    name = f"{saving.file_name(lane.label)}.toml"
    button = ui.button(name, icon="description").props("outline dense")
    button.on_click(lambda: ui.download.content(saving.scenario_file(lane), name))


def _download_race(session: Session, lanes: Sequence[Lane]) -> None:
    name = f"{saving.file_name(session.title)}.html"

    async def download() -> None:
        button.disable()
        try:
            text = await run.io_bound(offline.page, lanes, session.title)
            if text is not None:  # None: the studio is ending
                ui.download.content(text, name)
        except FeelstreamError as problem:
            ui.notify(str(problem), type="warning", multi_line=True)
        button.enable()

    button = ui.button(name, icon="movie", on_click=download).props("outline dense")


def open_dialog(session: Session) -> None:
    """Choose stored runs by the path of a run directory or of results, and replay them."""
    dialog, card = _dialog("Open stored runs")
    with card:
        path = ui.input("directory of a run, a deployment or results").props("outlined dense").style("width: 100%")
        chosen = ui.select({}, label="runs", multiple=True).props("outlined dense use-chips").style("width: 100%")
        chosen.set_visibility(False)
        found: Stored = {}

        async def look() -> None:
            path.error = None
            try:
                runs = await run.io_bound(stored_runs, Path((path.value or "").strip()))
            except FeelstreamError as problem:
                path.error = str(problem)
                return
            found.clear()
            found.update(runs or {})
            first = [key for key in found if key[1] == next(iter(found))[1]]
            chosen.set_options({key: _label(*key) for key in found}, value=first[:MOST_LANES])
            chosen.set_visibility(True)

        async def replay() -> None:
            if not found:
                await look()
            if found and not 1 <= len(chosen.value) <= MOST_LANES:
                path.error = f"choose from 1 to {MOST_LANES} runs, not {len(chosen.value)}"
            elif found:
                title, seeds = (path.value or "").strip(), {seed for _, seed in chosen.value}
                if len(seeds) == 1:
                    session.replay(by_seed(found, [name for name, _ in chosen.value]), seeds.pop(), title)
                else:
                    session.replay({None: {_label(*key): found[key] for key in chosen.value}}, None, title)
                dialog.close()

        path.on("keydown.enter", look)
        with ui.element("div").classes("actions"):
            ui.button("Look", on_click=look).props("outline")
            ui.space()
            ui.button("Cancel", on_click=dialog.close).props("flat")
            ui.button("Replay", icon="play_arrow", on_click=replay)


def _label(name: str, seed: int | None) -> str:
    return name if seed is None else f"{name}, seed {seed}"
