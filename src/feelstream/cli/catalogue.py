"""Commands that say what there is and what each is: presets, policies, data sets, fields, columns, decisions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer

from feelstream.columns import DEVICE_COLUMNS, EVALUATION_COLUMNS, ROUND_COLUMNS, RUN_COLUMNS
from feelstream.data import datasets
from feelstream.errors import RunError, ScenarioError
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES
from feelstream.scenario import Scenario
from feelstream.scenario import files as scenario_files
from feelstream.scenario.fields import kinds
from feelstream.terminal import common
from feelstream.terminal.common import out, print_json

app = typer.Typer()
TABLES = {
    "rounds.parquet": ROUND_COLUMNS,
    "devices.parquet": DEVICE_COLUMNS,
    "evaluations.parquet": EVALUATION_COLUMNS,
    "summary.csv": RUN_COLUMNS,
}
data_app = typer.Typer(help="Data sets: fetch them, list them.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.command("presets")
def show_presets(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The preset to print as a TOML file; default: list them all.",
            autocompletion=common.complete_scenario,
        ),
    ] = None,
    overrides: common.SetOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """List the presets, or print one with every field and its meaning."""
    known, chosen = scenario_files.presets(), scenario_files.preset(name, overrides or ()) if name else None
    if as_json:
        print_json(chosen.as_dict() if chosen else known)
    elif chosen:
        print(scenario_files.to_toml(chosen, known.get(name or "", "")), end="")
    else:
        table = common.plain_table()
        for row in known.items():
            table.add_row(*row)
        out.print(table)


@app.command("policies")
def show_policies(
    name: Annotated[
        str | None,
        typer.Argument(help="The policy to show; default: list them all.", autocompletion=common.complete_policy),
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """List the scheduling policies and their fields, or those of one."""
    found = {each: _policy(each) for each in ([name] if name else POLICIES.names())}
    if as_json:
        print_json(found)
    else:
        print("\n\n".join(_in_words(each, about) for each, about in found.items()))


def _policy(name: str) -> dict[str, Any]:
    """The first line of its docstring, and its fields with their defaults."""
    policy = POLICIES.lookup(name)
    fields = {
        field: {"default": about.default, "meaning": about.description} for field, about in policy.model_fields.items()
    }
    return {"about": next(iter((policy.__doc__ or "").strip().splitlines()), ""), "fields": fields}


def _in_words(name: str, about: dict[str, Any]) -> str:
    """A policy in a line, and a line for each field; what does not fit is indented below."""
    lines = [(0, f"{name}: {about['about']}")]
    lines += [(4, f"{field} = {own['default']} ({own['meaning'] or ''})") for field, own in about["fields"].items()]
    how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(
        fill(line, out.width, initial_indent=" " * by, subsequent_indent=" " * (by + 4), **how) for by, line in lines
    )


@data_app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help=f"The data set, one of {', '.join(datasets.FETCHED)}.")],
) -> None:
    """Fetch a data set into the cache and check it."""
    for path in datasets.fetch(name):
        out.print(str(path), soft_wrap=True)


@data_app.command("list")
def data_list(as_json: common.JsonOption = False) -> None:
    """List the data sets in the cache."""
    present = {name: {str(file): str(state) for file, state in files.items()}
               for name, files in datasets.present().items()}  # fmt: skip
    if as_json:
        print_json(present)
    else:
        out.print("\n".join(f"{name}: {', '.join(sorted(set(files.values())))}" for name, files in present.items()))


@app.command(no_args_is_help=True)
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|RUN",
            help="A field (policy.V), a column (queue_j), a policy (lyapunov), or a run directory.",
        ),
    ] = None,
    round: Annotated[int | None, typer.Option(help="With a run: the round to explain.")] = None,
    device: Annotated[int | None, typer.Option(help="With a run: the device to explain.")] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="With a run: what the best schedule in hindsight could have gained.")
    ] = False,
    as_json: common.JsonOption = False,
) -> None:
    """Say what a field, a column or a policy is; or why a run scheduled a device.

    feelstream explain RUN --round 30 --device 4 says why a device was scheduled or not, and what would change that.
    feelstream explain RUN --bound bounds what the best schedule in hindsight could have gained.
    """
    from feelstream.api import bound as bound_of
    from feelstream.run import read

    run = name or "runs/first"
    if as_json and not bound:
        raise RunError("--json: only the bound of a run is given as JSON, as in feelstream explain RUN --bound --json")
    if name and not (bound or round is not None or device is not None or (Path(name) / "run.json").is_file()):
        out.print(_meaning(name))
    elif bound and name:
        found = bound_of(name)
        print_json(asdict(found) | {"gap": found.gap}) if as_json else out.print(str(found))
    elif bound:
        raise RunError(f"to bound a run, give its directory, as in feelstream explain {run} --bound")
    elif name and round is not None and device is not None:
        out.print(str(read(name).explain(round, device)))
    else:
        raise RunError(
            "to explain a decision, give a run directory, a round and a device, as in feelstream explain "
            f"{run} --round {1 if round is None else round} --device {0 if device is None else device}"
        )


def _meaning(name: str) -> str:
    """What a policy, a column or a field is; of a name that several have, a line each."""
    if name in POLICIES.names():
        return _in_words(name, _policy(name))
    known: dict[str, list[str]] = {}
    for table, columns in TABLES.items():
        for each, column in columns.items():
            unit = f", {column.unit}" if column.unit else ""
            known.setdefault(each, []).append(f"{each} ({table}{unit}): {column.described}")
    for field, meaning in fields().items():
        for each in {field, field.rpartition(".")[2]}:
            known.setdefault(each, []).append(f"{field}: {meaning}")
    if name not in known:
        close = did_you_mean(name, [*POLICIES.names(), *known])
        raise ScenarioError(
            f"no field, column or policy is called '{name}'; {close or 'see feelstream presets NAME for fields'}"
        )
    return "\n".join(known[name])


def fields() -> dict[str, str]:
    """Every field of a scenario and its meaning; of one that several policies, buffers, … have, the first meaning."""
    models = [(section, type(getattr(Scenario(), section))) for section in Scenario.model_fields]
    plugins = [kind for kind in kinds().values() if kind.has_settings]
    models += [(kind.field, kind.lookup(name)) for kind in plugins for name in kind.names()]
    found: dict[str, str] = {}
    for prefix, model in models:
        for name, about in model.model_fields.items():
            if about.description:
                found.setdefault(f"{prefix}.{name}", " ".join(about.description.split()))
    return found
