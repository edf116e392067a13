"""Commands that are imported when they are called: `feelstream --version` need not wait for NumPy, Polars and all."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group
from typer.models import ArgumentInfo

from feelstream.studies import Command, registry

COMMANDS = {
    name: Command(name, help, f"feelstream.cli.{module}:app")
    for name, module, help in (
        ("run", "run", "Run one scenario and show the result."),
        ("compare", "compare", "Compare policies in pairs over many seeds; stored runs are not repeated."),
        ("tune", "tune", "Find the weight (V or price) that favours importance most and keeps an energy budget."),
        ("report", "study", "Rebuild the report of stored results, with the figures and claims of their study."),
        ("verify", "verify", "Recompute stored runs from their files alone; exit code 1 if anything disagrees."),
        ("studio", "studio", "Watch schedulers race in the browser, on this machine only."),
        ("flower", "flower", "Run a scenario or your own app with Flower."),
        ("check", "check", "Try a plug-in on awkward cases; exit code 1 if it breaks its contract."),
        ("explain", "catalogue", "Say what a field, a column or a policy is; or why a run scheduled a device."),
        ("presets", "catalogue", "List the presets, or print one with every field and its meaning."),
        ("policies", "catalogue", "List the scheduling policies and their fields, or those of one."),
        ("data", "catalogue", "Data sets: fetch them, list them."),
        ("study", "study", "Run a study of your own, as file.py:NAME or by its name, and write its report."),
    )
}
STUDIES = "Studies"  # the heading in the help of the command `study`, and of those that installed studies have


class LazyGroup(TyperGroup):
    """A group that knows its commands by name, and imports the module of one when it is asked for it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *(name for name in registry.commands() if name not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = COMMANDS.get(cmd_name) or registry.commands().get(cmd_name)
        if command is None:
            return None
        if getattr(ctx, "short_helps", False):
            panel = STUDIES if cmd_name == "study" or cmd_name not in COMMANDS else None
            return TyperCommand(cmd_name, help=command.help, rich_help_panel=panel)
        return load(command)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[:1] == ["help"]:  # as in `feelstream help run`
            args = [*args[1:], "--help"]
            if args == ["--help"]:
                typer.echo(ctx.get_help(), color=ctx.color)
                ctx.exit()
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands needs their first lines only, so nothing is imported for it."""
        ctx.short_helps = True
        super().format_help(ctx, formatter)


def load(command: Command) -> Any:
    """The command itself, with the help of its arguments."""
    return _with_argument_help(get_group(resolve_name(command.app)).commands[command.name])


def _with_argument_help(command: Any) -> Any:
    """Give arguments back the help they were declared with: typer up to 0.20 loses it under click 8.5 and later."""
    for child in getattr(command, "commands", {}).values():
        _with_argument_help(child)
    declared = get_type_hints(command.callback, include_extras=True) if command.callback else {}
    for parameter in command.params:
        for about in getattr(declared.get(parameter.name), "__metadata__", ()):
            if isinstance(about, ArgumentInfo):
                parameter.help = about.help
    return command
