"""Dialogs: a new race, save, open stored runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from nicegui import run, ui

from feelstream.errors import FeelstreamError
from feelstream.policies import POLICIES
from feelstream.scenario.files import load, presets, to_toml
from feelstream.studio import saving
from feelstream.studio.lanes import MOST_LANES, Lane, stored_runs
from feelstream.studio.panels import heading
from feelstream.studio.session import Session

T = TypeVar("T")


def _dialog(title: str) -> tuple[ui.dialog, ui.card]:
    with ui.dialog() as dialog, ui.card().classes("dialog") as card:
        heading(title)
    dialog.on("hide", dialog.delete)
    dialog.open()
    return dialog, card


def save_dialog(session: Session) -> None:
    """Run directories, scenario files and commands into a directory; each file also by itself."""
    lanes = list(session.race.lanes)
    _, card = _dialog("Save this race")
    with card:
        if all(lane.live for lane in lanes):
            _save_runs(session.title, lanes)
        else:
            ui.label("These runs are stored already; their scenario files and commands are below.").classes("caption")
        ui.label("The commands that repeat the runs, given the scenario files").classes("unit")
        ui.label("\n".join(saving.command(lane) for lane in lanes)).classes("code")
        with ui.element("div").classes("actions"):
            for lane in lanes:
                _download(f"{saving.file_name(lane.label)}.toml", "description", saving.scenario_file, lane)
        ui.label("As far as it has run, as one HTML file that plays by itself in any browser").classes("unit")
        with ui.element("div").classes("actions"):
            _download(f"{saving.file_name(session.title)}.html", "movie", saving.race_page, lanes, session.title)
        ui.label("Pictures: every chart has buttons for PNG and SVG.").classes("caption")


def _save_runs(title: str, lanes: Sequence[Lane]) -> None:
    about = "Each lane is run to its end into a run directory that feelstream verify accepts, with its scenario file."
    ui.label(about).classes("caption")
    where = Path("studio-runs") / f"{saving.file_name(title)}-{datetime.now():%Y%m%d-%H%M%S}"
    directory = ui.input("directory", value=str(where)).props("outlined dense").style("width: 100%")
    said = ["starting"]

    async def save() -> None:
        clock = ui.timer(0.2, lambda: status.set_text(said[-1]))
        path = await _done(button, saving.save, lanes, Path(directory.value or ""), said.append)
        clock.cancel()
        status.set_text(f"Saved in {path.resolve()}" if path else "")

    button = ui.button("Save run directories", icon="save_alt", on_click=save)
    status = ui.label().classes("unit").props('role="status"')


def _download(name: str, icon: str, make: Callable[..., str], *about: Any) -> None:
    async def download() -> None:
        if (text := await _done(button, make, *about)) is not None:
            ui.download.content(text, name)

    button = ui.button(name, icon=icon, on_click=download).props("outline dense")


async def _done(button: ui.button, work: Callable[..., T], *about: Any) -> T | None:
    """What the work gives, in another thread; None where it fails, which is told, and where the studio ends."""
    button.disable()
    try:
        return await run.io_bound(work, *about)
    except FeelstreamError as problem:
        ui.notify(str(problem), type="warning", multi_line=True)
        return None
    finally:
        button.enable()


def open_dialog(session: Session) -> None:
    """Choose stored runs by the path of a run directory or of results, and replay them."""
    dialog, card = _dialog("Open stored runs")
    with card:
        path = ui.input("directory of a run, a deployment or results").props("outlined dense").style("width: 100%")
        chosen = ui.select([], label="runs", multiple=True).props("outlined dense use-chips").style("width: 100%")
        chosen.set_visibility(False)
        found: dict[str, Path] = {}

        async def look() -> None:
            path.error = None
            try:
                runs = await run.io_bound(stored_runs, Path((path.value or "").strip())) or {}
            except FeelstreamError as problem:
                path.error = str(problem)
                return
            found.clear()
            found.update({_label(*key): directory for key, directory in runs.items()})
            first = [_label(*key) for key in runs if key[1] == next(iter(runs))[1]]
            chosen.set_options(list(found), value=first[:MOST_LANES])
            chosen.set_visibility(True)

        async def replay() -> None:
            if not found:
                await look()
            if found and not 1 <= len(chosen.value) <= MOST_LANES:
                path.error = f"choose from 1 to {MOST_LANES} runs, not {len(chosen.value)}"
            elif found:
                session.replay({label: found[label] for label in chosen.value}, (path.value or "").strip())
                dialog.close()

        path.on("keydown.enter", look)
        with ui.element("div").classes("actions"):
            ui.button("Look", on_click=look).props("outline")
            ui.space()
            ui.button("Cancel", on_click=dialog.close).props("flat")
            ui.button("Replay", icon="play_arrow", on_click=replay)


def _label(name: str, seed: int | None) -> str:
    return name if seed is None else f"{name}, seed {seed}"


def new_dialog(session: Session) -> None:
    """What `feelstream compare` takes, judged with its sentences; the race in the background goes on meanwhile."""
    dialog, card = _dialog("New race")
    draft = replace(session.draft)
    with card:
        with ui.element("div").classes("form"):
            preset = ui.select(list(presets()), value=draft.preset, label="preset")
            seed = ui.input("seed", value=draft.seed)
            policies = ui.input("policies", value=draft.policies)
            settings = ui.textarea("settings", value=draft.settings).style("grid-column: 1 / -1")
        for entry in (preset, seed, policies, settings):
            entry.props("outlined dense options-dense")
        policies.props('hint="up to four, each a name or a name with settings: lyapunov(V=0.1)"')
        settings.props('autogrow placeholder="system.rounds = 100" hint="one a line: field = value, as below"')
        about = ui.label().classes("caption")
        with ui.expansion("Every field of the preset, and every policy").classes("scroll"):
            fields = ui.label().classes("code")
        with ui.element("div").classes("actions"):
            complaint = ui.label().classes("notice bad grow").props('role="alert"')
            ui.space()
            ui.button("Cancel", on_click=dialog.close).props("flat")
            start = ui.button("Start the race", icon="flag", on_click=lambda: begin())

    def judge() -> None:
        draft.preset, draft.seed = preset.value, seed.value or ""
        draft.policies, draft.settings = policies.value or "", settings.value or ""
        about.set_text(presets()[draft.preset])
        fields.set_text(f"{to_toml(load(draft.preset))}\n{_policies()}")
        problem = ""
        try:
            draft.check()
        except FeelstreamError as wrong:
            problem = str(wrong)
        start.set_enabled(not problem)
        complaint.set_visibility(bool(problem))
        complaint.set_text(problem)

    def begin() -> None:
        session.draft, session.note = draft, ""
        session.begin()
        dialog.close()

    for entry in (preset, seed, policies, settings):
        entry.on_value_change(judge)
    judge()


def _policies() -> str:
    """Each with what it does, as comments of the scenario file above."""
    said = {name: (POLICIES.lookup(name).__doc__ or "").strip().partition("\n")[0] for name in POLICIES.names()}
    return "\n".join(f"# {name}: {does.replace('`', '')}" for name, does in said.items())
