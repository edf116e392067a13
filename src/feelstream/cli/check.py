"""The command that tests a user's own plug-in."""

from __future__ import annotations

from typing import Annotated

import typer

from feelstream.errors import ScenarioError
from feelstream.terminal.common import JsonOption, next_command, out, plain_table, print_json

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
    from feelstream.testing.contract import check_kind
    from feelstream.testing.kinds import named

    if kind is not None and kind not in KINDS:
        raise ScenarioError(f"--kind: '{kind}' is not known; allowed: {', '.join(KINDS)}")
    plugin, found = named(name, kind)
    results, table = check_kind(plugin, found), plain_table()
    for result in results:
        table.add_row("pass" if result.ok else "FAIL", result.meaning)
        if result.problem:
            table.add_row("", result.problem)
    if as_json:
        print_json([{"ok": r.ok, "promise": r.meaning, "problem": r.problem} for r in results])
    else:
        out.print(table, highlight=False, markup=False)
    if not all(result.ok for result in results):
        raise typer.Exit(1)
    if not as_json:
        next_command(*_use_of(name, found.name))


def _use_of(name: str, kind: str) -> tuple[str, ...]:
    """What most users do next with a plug-in of a kind."""
    if kind == "policy":
        return "feelstream", "compare", "tiny", "--policy", f"{'random' if name == 'lyapunov' else 'lyapunov'},{name}"
    if kind == "evaluator":
        return "feelstream", "run", "tiny", "--set", f'learning.evaluators=["test", "{name}"]'
    fields = {
        "metric": "policy.metric", "partition": "data.partition.kind", "arrivals": "data.arrivals.kind",
        "local_training": "learning.local.kind", "server_update": "learning.server.kind",
    }  # fmt: skip
    field = fields.get(kind) or (f"data.{kind}.kind" if kind == "buffer" else f"world.{kind}.kind")
    return "feelstream", "run", "tiny", "--set", f"{field}={name}"
