"""The command that tests a user's own policy."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import ValidationError

from feelstream.errors import ScenarioError
from feelstream.policies import POLICIES, Policy
from feelstream.terminal.common import JsonOption, next_command, out, plain_table, print_json

app = typer.Typer()


@app.command("check-policy")
def check_policy(
    name: Annotated[
        str, typer.Argument(metavar="POLICY", help="The policy: file.py:Class, package.module:Class, or a name.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Try a policy on awkward rounds; exit code 1 if it breaks a promise of the contract."""
    from feelstream.testing.contract import check_policy as check

    policy = POLICIES.lookup(name)
    try:
        settings = policy()
    except (ValidationError, TypeError) as problem:
        raise ScenarioError(
            f"'{name}' cannot be made: give each of its fields a default and it a `select`"
        ) from problem
    assert isinstance(settings, Policy)
    results, table = check(settings), plain_table()
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
        next_command("feelstream", "compare", "tiny", "--policy", name, "--policy", "lyapunov")
