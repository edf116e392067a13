"""Commands that list what there is: presets, policies, data sets."""

from __future__ import annotations

from textwrap import fill
from typing import Annotated, Any

import typer

from feelstream.data import datasets
from feelstream.policies import POLICIES
from feelstream.scenario import files as scenario_files
from feelstream.terminal.common import (
    JsonOption,
    SetOption,
    complete_policy,
    complete_scenario,
    out,
    plain_table,
    print_json,
)

app = typer.Typer()
data_app = typer.Typer(help="Data sets: fetch them, list them.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.command("presets")
def show_presets(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The preset to print as a TOML file; default: list them all.", autocompletion=complete_scenario
        ),
    ] = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the presets, or print one with every field and its meaning."""
    if as_json:
        print_json(scenario_files.preset(name, overrides or ()).as_dict() if name else scenario_files.presets())
        return
    if name is None:
        table = plain_table()
        for row in scenario_files.presets().items():
            table.add_row(*row)
        out.print(table, highlight=False)
        return
    described = scenario_files.presets().get(name, "")
    print(scenario_files.to_toml(scenario_files.preset(name, overrides or ()), described), end="")


@app.command("policies")
def show_policies(
    name: Annotated[
        str | None,
        typer.Argument(help="The policy to show; default: list them all.", autocompletion=complete_policy),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the scheduling policies and their fields, or those of one."""
    names = [name] if name else POLICIES.names()
    if as_json:
        print_json({each: _described(each) for each in names})
        return
    for place, each in enumerate(names):
        if place:
            out.print()
        print_policy(each)


def print_policy(name: str) -> None:
    """A policy in a line, and its fields with their defaults."""
    about = _described(name)
    lines = [f"{name}: {about['about']}"]
    lines += [f"    {field} = {own['default']} ({own['meaning'] or ''})" for field, own in about["fields"].items()]
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        print(fill(line, out.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def _described(name: str) -> dict[str, Any]:
    policy = POLICIES.lookup(name)
    fields = {
        field: {"default": about.default, "meaning": about.description} for field, about in policy.model_fields.items()
    }
    return {"about": next(iter((policy.__doc__ or "").strip().splitlines()), ""), "fields": fields}


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help=f"The data set, one of {', '.join(datasets.FETCHED)}.")],
) -> None:
    """Fetch a data set into the cache and check it."""
    for path in datasets.fetch(name):
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)


@data_app.command("list")
def data_list(as_json: JsonOption = False) -> None:
    """List the data sets in the cache."""
    if as_json:
        present = datasets.present().items()
        print_json({name: {str(file): str(state) for file, state in files.items()} for name, files in present})
        return
    for name, files in datasets.present().items():
        states = {str(state) for state in files.values()}
        out.print(f"{name}: {', '.join(sorted(states))}", highlight=False)
