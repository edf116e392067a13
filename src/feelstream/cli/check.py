"""The command that tests a user's own plug-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from feelstream.errors import ScenarioError
from feelstream.terminal.common import JsonOption, next_command, out, plain_table, print_json

if TYPE_CHECKING:
    from feelstream.testing.player import Kind

app = typer.Typer()


@app.command("check")
def check(
    name: Annotated[
        str, typer.Argument(metavar="PLUGIN", help="The plug-in: file.py:Name, package.module:Name, or a name.")
    ],
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="What it is (policy, buffer, …), if several kinds share the name."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try a plug-in on awkward cases; exit code 1 if it breaks its contract."""
    from feelstream.testing import KINDS
    from feelstream.testing.kinds import named
    from feelstream.testing.player import check_kind

    if kind is not None and kind not in KINDS:
        raise ScenarioError(f"--kind: '{kind}' is not known; allowed: {', '.join(KINDS)}")
    plugin, found = named(name, kind)
    results, table = check_kind(plugin, found), plain_table()
    for result in results:
        table.add_row(("pass" if result.ok else "FAIL") if result.tried else "not tried", result.meaning)
        if result.problem:
            table.add_row("", result.problem)
    if as_json:
        print_json([{"ok": r.ok, "tried": r.tried, "promise": r.meaning, "problem": r.problem} for r in results])
    else:
        out.print(table)
    if not all(result.ok for result in results):
        raise typer.Exit(1)
    if not as_json:
        next_command(*_use_of(name, found))


def _use_of(name: str, kind: Kind) -> tuple[str, ...]:
    """What most users do next with a plug-in of a kind."""
    if kind.name == "policy":
        return "feelstream", "compare", "tiny", "--policy", f"{'random' if name == 'lyapunov' else 'lyapunov'},{name}"
    if kind.name == "evaluator":
        return "feelstream", "run", "tiny", "--set", f'learning.evaluators=["test", "{name}"]'
    field = kind.field if kind.name == "metric" else f"{kind.field}.kind"
    return "feelstream", "run", "tiny", "--set", f"{field}={name}"
