"""Dialogs: a new race, another future (fork), save, open stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from datetime import datetime
from pathlib import Path

from nicegui import run, ui

from feelstream.errors import FeelstreamError
from feelstream.loop.changes import CHANGEABLE
from feelstream.plugins import Plugin
from feelstream.policies import POLICIES
from feelstream.scenario.files import presets
from feelstream.studio import saving
from feelstream.studio.draft import MOST, NAME, FormField, value_in
from feelstream.studio.lanes import MOST_LANES, Lane, Stored, by_seed, scenario_at, stored_runs
from feelstream.studio.panels import heading
from feelstream.studio.race import has_field
from feelstream.studio.session import Session

OPEN_SECTIONS = ("system", "data")


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
            text = await run.io_bound(saving.race_page, lanes, session.title)
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


def setup_dialog(session: Session) -> None:
    """Open the dialog; the race in the background goes on until the new one starts."""
    dialog, card = _dialog("New race")
    with card:
        SetupForm(session, dialog)


class SetupForm:
    """The forms of a draft. Every entry is kept as text and judged with the whole."""

    def __init__(self, session: Session, dialog: ui.dialog) -> None:
        self.session, self.dialog = session, dialog
        self.draft = deepcopy(session.draft)
        self.inputs: dict[tuple[int | None, str], ui.input | ui.select] = {}
        self.body = ui.element("div").classes("scroll")
        with ui.element("div").classes("actions"):
            self.complaint = ui.label().classes("notice bad grow").props('role="alert"')
            ui.space()
            ui.button("Cancel", on_click=dialog.close).props("flat")
            self.start = ui.button("Start the race", icon="flag", on_click=self._start)
        self.rebuild()

    def rebuild(self) -> None:
        """Forms follow the preset and the names chosen in them."""
        self.body.clear()
        self.inputs.clear()
        world, policies = self.draft.forms()
        with self.body:
            with ui.element("div").classes("form"):
                about = presets()
                preset = ui.select(list(about), value=self.draft.preset, label="preset", on_change=self._preset)
                preset.props(f'outlined dense options-dense hint="{_attribute(about[self.draft.preset])}"')
                seed = ui.input(
                    "seed", value=self.draft.seed, on_change=lambda e: self._set(None, "seed", e.value or "")
                )
                seed.props('outlined dense hint="every random draw of the world and of the policies follows from it"')
                self.inputs[None, "seed"] = seed.without_auto_validation()
            for index, fields in enumerate(policies):
                self._policy(index, fields)
            if len(policies) < MOST:
                ui.button("Add a policy", icon="add", on_click=self._add).props("flat dense")
            for section, fields in world.items():
                opened = section in OPEN_SECTIONS
                with ui.expansion(f"[{section}]", value=opened).classes("grow"), ui.element("div").classes("form"):
                    for field in fields:
                        self._input(None, field, self.draft.world.get(field.path, field.default))
        self.judge()

    def _policy(self, index: int, fields: list[FormField]) -> None:
        draft = self.draft.policies[index]
        with ui.element("div").classes("head"):
            heading(f"Policy {index + 1}", "h3")
            ui.label(_first_line(POLICIES.lookup(draft[NAME]))).classes("caption")
            ui.space()
            if len(self.draft.policies) > 2:
                remove = ui.button(icon="close", on_click=lambda: self._remove(index))
                remove.props(f'flat dense round size=sm aria-label="Remove policy {index + 1}"')
        with ui.element("div").classes("form"):
            for field in fields:
                self._input(index, field, draft.get(field.path, field.default))

    def _input(self, policy: int | None, field: FormField, value: str) -> None:
        def changed(event) -> None:
            self._set(policy, field.path, str(event.value if event.value is not None else ""))

        if field.choices:
            entry = ui.select(list(field.choices), value=value, label=field.name, on_change=changed)
            entry.props("options-dense")
        else:
            entry = ui.input(field.name, value=value, on_change=changed)
        entry.props(f'outlined dense hint="{_attribute(field.description)}"')
        self.inputs[policy, field.path] = entry.without_auto_validation()  # judged with the whole

    def _set(self, policy: int | None, path: str, value: str) -> None:
        draft = self.draft
        if path == "seed":
            draft.seed = value
        elif policy is None:
            draft.world[path] = value
            if path.endswith(".kind"):  # the fields of another kind have other names
                table = path.removesuffix("kind")
                draft.world = {p: v for p, v in draft.world.items() if not p.startswith(table) or p == path}
                return self.rebuild()
        elif path == NAME:
            draft.policies[policy] = {NAME: value}
            return self.rebuild()
        else:
            draft.policies[policy][path] = value
        return self.judge()

    def _preset(self, event) -> None:
        self.draft.preset, self.draft.world = event.value, {}
        self.rebuild()

    def _add(self) -> None:
        used = {policy[NAME] for policy in self.draft.policies}
        self.draft.policies.append({NAME: next(name for name in POLICIES.names() if name not in used)})
        self.rebuild()

    def _remove(self, index: int) -> None:
        del self.draft.policies[index]
        self.rebuild()

    def judge(self) -> None:
        """Mark the field that is wrong with the sentence that the command line would give."""
        problem = self.draft.problem()
        for entry in self.inputs.values():
            entry.error = None
        self.start.set_enabled(problem is None)
        self.complaint.set_visibility(problem is not None)
        if problem is not None:
            policy, path, sentence = problem
            self.complaint.set_text(sentence)
            if path is not None and (entry := self.inputs.get((policy, path))) is not None:
                entry.error = sentence

    def _start(self) -> None:
        self.session.draft, self.session.note = self.draft, ""
        self.session.begin()
        self.dialog.close()


def _first_line(plugin: type[Plugin]) -> str:
    return (plugin.__doc__ or "").strip().partition("\n")[0].replace("`", "")


def _attribute(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'").replace("`", "")
