"""What a study is: its name, its commands, and what it adds to the report of its results.

The object is made before every command, so this module and those that make one import nothing heavy: what a study does
is referred to as "package.module:name", or by a function that imports what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from feelstream.errors import ScenarioError

if TYPE_CHECKING:
    from feelstream.experiment import Plan, Results
    from feelstream.studies.pages import Page


@dataclass(frozen=True)
class Command:
    """A command of the command line: `feelstream NAME`.

    Attributes:
        name: What is typed.
        help: The first line of its help.
        app: "package.module:app", the typer application that has it; imported when it is called.
    """

    name: str
    help: str
    app: str


@dataclass(frozen=True)
class Study:
    """One study. Its plans carry its name (`Plan.study`), so that stored results find it again.

    Attributes:
        name: What follows `feelstream study`.
        title: A line for lists of studies.
        plan: Seeds and `section.field=value` → every run that it needs, for `feelstream study`; None: it has commands
            instead. As text, "package.module:function", it is imported when it is used; `page` likewise.
        page: Results → their page; None: that of any comparison.
        commands: Of its own on the command line.
    """

    name: str
    title: str
    plan: str | Callable[[Sequence[int], Sequence[str]], Plan] | None = None
    page: str | Callable[[Results], Page | None] | None = None
    commands: tuple[Command, ...] = ()

    def plan_of(self, seeds: Sequence[int], overrides: Sequence[str] = (), command: str = "") -> Plan:
        """Its plan, which says whose it is; command: that makes it again."""
        if self.plan is None:
            own = ", ".join(f"feelstream {each.name}" for each in self.commands)
            raise ScenarioError(f"the study '{self.name}' has no plan to run by itself; its commands: {own or 'none'}")
        return replace(_resolved(self.plan)(seeds, overrides), study=self.name, command=command)

    def page_of(self, results: Results) -> Page | None:
        """What the report of these results has of its own; None where it has nothing."""
        return _resolved(self.page)(results) if self.page is not None else None


def _resolved(reference: str | Callable[..., Any]) -> Callable[..., Any]:
    return resolve_name(reference) if isinstance(reference, str) else reference
