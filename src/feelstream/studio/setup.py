"""The dialog that sets up a race: forms made from the settings' own descriptions, complaints as on the command line."""

from __future__ import annotations

from copy import deepcopy

from nicegui import ui

from feelstream.plugins import Plugin
from feelstream.policies import POLICIES
from feelstream.scenario.files import presets
from feelstream.studio.draft import MOST, NAME, FormField
from feelstream.studio.panels import heading
from feelstream.studio.session import Session

OPEN_SECTIONS = ("system", "data")


def setup_dialog(session: Session) -> None:
    """Open the dialog; the race in the background goes on until the new one starts."""
    with ui.dialog() as dialog, ui.card().classes("dialog"):
        heading("New race")
        SetupForm(session, dialog)
    dialog.on("hide", dialog.delete)
    dialog.open()


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
