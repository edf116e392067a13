"""The command that says what a field, a column or a policy is, why a device was scheduled, and what was possible."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from feelstream.cli.catalogue import print_policy
from feelstream.columns import DEVICE_COLUMNS, EVALUATION_COLUMNS, ROUND_COLUMNS, RUN_COLUMNS
from feelstream.errors import RunError, ScenarioError
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES
from feelstream.scenario import Scenario
from feelstream.scenario.fields import kinds
from feelstream.terminal.common import JsonOption, out, plain_table, print_json

app = typer.Typer()
TABLES = {
    "rounds.parquet": ROUND_COLUMNS,
    "devices.parquet": DEVICE_COLUMNS,
    "evaluations.parquet": EVALUATION_COLUMNS,
    "summary.csv": RUN_COLUMNS,
}


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
    else:
        _name(name)


def _name(name: str | None) -> None:
    if name is None:
        table = plain_table()
        table.add_row("FIELD", "any field of a scenario, such as policy.V or rounds")
        table.add_row("COLUMN", "any column of the tables, such as queue_j or late_accuracy")
        table.add_row("POLICY", "any policy, such as lyapunov")
        table.add_row("RUN", "why a device was scheduled, with --round and --device; what was possible, with --bound")
        out.print(table, highlight=False)
        return
    known = _columns()
    for field, meaning in fields().items():
        for each in {field, field.rpartition(".")[2]}:
            known.setdefault(each, []).append(f"{field}: {meaning}")
    if name in POLICIES.names():
        print_policy(name)
    elif name in known:
        for line in known[name]:
            out.print(line, markup=False, highlight=False)
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
    out.print(str(read(name).explain(round, device)), markup=False, highlight=False)


def _bound(directory: str | None, as_json: bool) -> None:
    from feelstream.api import bound

    if directory is None:
        raise RunError("to bound a run, give its directory, as in feelstream explain runs/first --bound")
    found = bound(directory)
    if as_json:
        print_json(asdict(found) | {"gap": found.gap})
    else:
        out.print(str(found), highlight=False, markup=False)


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
