"""Commands that say what there is and what each is: presets, policies, data sets, fields, columns, decisions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from feelstream.columns import DEVICE_COLUMNS, EVALUATION_COLUMNS, ROUND_COLUMNS, RUN_COLUMNS
from feelstream.data import datasets
from feelstream.errors import RunError, ScenarioError
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES
from feelstream.scenario import Scenario
from feelstream.scenario import files as scenario_files
from feelstream.scenario.fields import kinds
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
TABLES = {
    "rounds.parquet": ROUND_COLUMNS,
    "devices.parquet": DEVICE_COLUMNS,
    "evaluations.parquet": EVALUATION_COLUMNS,
    "summary.csv": RUN_COLUMNS,
}
EXPLAINED = {
    "FIELD": "any field of a scenario, such as policy.V or rounds",
    "COLUMN": "any column of the tables, such as queue_j or late_accuracy",
    "POLICY": "any policy, such as lyapunov",
    "RUN": "why a device was scheduled, with --round and --device; what was possible, with --bound",
}
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
        _print_pairs(scenario_files.presets())
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
        _print_policy(each)


def _print_pairs(said: dict[str, str]) -> None:
    table = plain_table()
    for row in said.items():
        table.add_row(*row)
    out.print(table)


def _print_policy(name: str) -> None:
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
        out.print(str(path), soft_wrap=True)


@data_app.command("list")
def data_list(as_json: JsonOption = False) -> None:
    """List the data sets in the cache."""
    if as_json:
        present = datasets.present().items()
        print_json({name: {str(file): str(state) for file, state in files.items()} for name, files in present})
        return
    for name, files in datasets.present().items():
        states = {str(state) for state in files.values()}
        out.print(f"{name}: {', '.join(sorted(states))}")


@app.command()
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|RUN]",
            help="A field, a column, a policy or a run directory; default: say what there is.",
        ),
    ] = None,
    round: Annotated[int | None, typer.Option(help="With a run: the round to explain.")] = None,
    device: Annotated[int | None, typer.Option(help="With a run: the device to explain.")] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="With a run: what the best schedule in hindsight could have gained.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what a field, a column or a policy is; or why a run scheduled a device.

    feelstream explain RUN --round 30 --device 4 says why a device was scheduled or not, and what would change that.
    feelstream explain RUN --bound bounds what the best schedule in hindsight could have gained.
    """
    if as_json and not bound:
        raise RunError("--json: only the bound of a run is given as JSON, as in feelstream explain RUN --bound --json")
    if bound:
        _bound(name, as_json)
    elif round is not None or device is not None or (name and (Path(name) / "run.json").is_file()):
        _decision(name, round, device)
    elif name is None:
        _print_pairs(EXPLAINED)
    else:
        _name(name)


def _name(name: str) -> None:
    known = _columns()
    for field, meaning in fields().items():
        for each in {field, field.rpartition(".")[2]}:
            known.setdefault(each, []).append(f"{field}: {meaning}")
    if name in POLICIES.names():
        _print_policy(name)
    elif name in known:
        for line in known[name]:
            out.print(line)
    else:
        close = did_you_mean(name, [*POLICIES.names(), *known])
        raise ScenarioError(
            f"no field, column or policy is called '{name}'; {close or 'see feelstream presets NAME for fields'}"
        )


def _columns() -> dict[str, list[str]]:
    """Every column and what stands in it; of one that several tables have, a line each."""
    found: dict[str, list[str]] = {}
    for table, columns in TABLES.items():
        for name, column in columns.items():
            unit = f", {column.unit}" if column.unit else ""
            found.setdefault(name, []).append(f"{name} ({table}{unit}): {column.described}")
    return found


def _decision(name: str | None, round: int | None, device: int | None) -> None:
    from feelstream.run import read

    if name is None or round is None or device is None:
        raise RunError(
            "to explain a decision, give a run directory, a round and a device, as in feelstream explain "
            f"{name or 'runs/first'} --round {1 if round is None else round} --device {0 if device is None else device}"
        )
    out.print(str(read(name).explain(round, device)))


def _bound(directory: str | None, as_json: bool) -> None:
    from feelstream.api import bound

    if directory is None:
        raise RunError("to bound a run, give its directory, as in feelstream explain runs/first --bound")
    found = bound(directory)
    if as_json:
        print_json(asdict(found) | {"gap": found.gap})
    else:
        out.print(str(found))


def fields() -> dict[str, str]:
    """Every field of a scenario and its meaning; of one that several policies, buffers, … have, the first meaning."""
    found: dict[str, str] = {}

    def note(prefix: str, model: type[BaseModel]) -> None:
        for name, about in model.model_fields.items():
            if about.description:
                found.setdefault(f"{prefix}.{name}", " ".join(about.description.split()))

    for section in Scenario.model_fields:
        note(section, type(getattr(Scenario(), section)))
    for kind in kinds().values():
        for name in kind.names() if kind.has_settings else ():
            note(kind.field, kind.lookup(name))
    return found
