"""The command that explains a topic, a field, a quantity or a policy where no browser is at hand."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.markdown import Markdown

from feelstream.cli.catalogue import print_policy
from feelstream.errors import RunError, ScenarioError
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES
from feelstream.quantities import QUANTITIES
from feelstream.scenario import Scenario
from feelstream.scenario.fields import kinds
from feelstream.terminal.common import out, plain_table

app = typer.Typer()
TOPICS = resources.files("feelstream.cli").joinpath("topics")


@app.command()
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC|RUN]",
            help="A topic, a field, a quantity, a policy or a run directory; default: list the topics.",
        ),
    ] = None,
    round: Annotated[int | None, typer.Option(help="With a run: the round to explain.")] = None,
    device: Annotated[int | None, typer.Option(help="With a run: the device to explain.")] = None,
) -> None:
    """Explain a topic (budget, comparison), a field, a quantity or a policy; or a decision of a run.

    feelstream explain RUN --round 30 --device 4 says why a device was scheduled or not, and what would change that.
    """
    if round is not None or device is not None or (name and (Path(name) / "run.json").is_file()):
        _decision(name, round, device)
    else:
        _name(name)


def _name(name: str | None) -> None:
    topics = {file.name.removesuffix(".md"): file for file in TOPICS.iterdir() if file.name.endswith(".md")}
    quantities = {key: quantity for key, quantity in QUANTITIES.items() if quantity.meaning}
    known_fields = fields()
    if name is None:
        table = plain_table()
        for topic, file in sorted(topics.items()):
            table.add_row(topic, file.read_text(encoding="utf-8").splitlines()[0].lstrip("# "))
        table.add_row("FIELD", "any field of a scenario, such as policy.V or rounds")
        table.add_row("QUANTITY", f"any quantity of the tables, such as {next(iter(quantities))}")
        table.add_row("POLICY", "any policy, such as lyapunov")
        out.print(table, highlight=False)
    elif name in topics:
        out.print(Markdown(topics[name].read_text(encoding="utf-8")))
    elif name in POLICIES.names():
        print_policy(name)
    elif name in quantities:
        quantity = quantities[name]
        out.print(f"{quantity.column_title}: {quantity.meaning}", markup=False, highlight=False)
    elif found := [field for field in known_fields if name in (field, field.rpartition(".")[2])]:
        for field in found:
            out.print(f"{field}: {known_fields[field]}", markup=False, highlight=False)
    else:
        short = [field.rpartition(".")[2] for field in known_fields]
        known = [*topics, *POLICIES.names(), *quantities, *known_fields, *short]
        close = did_you_mean(name, known)
        raise ScenarioError(f"there is no topic '{name}'; {close}topics: {', '.join(sorted(topics))}, or a field")


def _decision(name: str | None, round: int | None, device: int | None) -> None:
    from feelstream.run import read

    if name is None or round is None or device is None:
        raise RunError(
            "to explain a decision, give a run directory, a round and a device, as in feelstream explain "
            f"{name or 'runs/first'} --round {1 if round is None else round} --device {0 if device is None else device}"
        )
    out.print(str(read(name).explain(round, device)), markup=False, highlight=False)


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
