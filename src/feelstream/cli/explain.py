"""The command that explains a topic, a field, a quantity or a policy where no browser is at hand."""

from __future__ import annotations

from importlib import resources
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.markdown import Markdown

from feelstream.cli.catalogue import print_policy
from feelstream.errors import ScenarioError
from feelstream.plugins import did_you_mean
from feelstream.policies import POLICIES
from feelstream.quantities import QUANTITIES
from feelstream.scenario import Scenario
from feelstream.scenario.overrides import NAMED_TABLES
from feelstream.terminal.common import out, plain_table

app = typer.Typer()
TOPICS = resources.files("feelstream.cli").joinpath("topics")


@app.command()
def explain(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", help="A topic, a field, a quantity or a policy; default: list the topics."),
    ] = None,
) -> None:
    """Explain a topic (budget, comparison), a field of a scenario, a quantity of the tables or a policy."""
    topics = {file.name.removesuffix(".md"): file for file in TOPICS.iterdir() if file.name.endswith(".md")}
    quantities = {key: quantity for key, quantity in QUANTITIES.items() if quantity.meaning}
    fields = _fields()
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
    elif found := [field for field in fields if name in (field, field.rpartition(".")[2])]:
        for field in found:
            out.print(f"{field}: {fields[field]}", markup=False, highlight=False)
    else:
        short = [field.rpartition(".")[2] for field in fields]
        known = [*topics, *POLICIES.names(), *quantities, *fields, *short]
        close = did_you_mean(name, known)
        raise ScenarioError(f"there is no topic '{name}'; {close}topics: {', '.join(sorted(topics))}, or a field")


def _fields() -> dict[str, str]:
    """Every field of a scenario and its meaning; of one that several policies, buffers, … have, the first meaning."""
    found: dict[str, str] = {}

    def note(prefix: str, model: type[BaseModel]) -> None:
        for name, about in model.model_fields.items():
            if about.description:
                found.setdefault(f"{prefix}.{name}", " ".join(about.description.split()))

    for section in Scenario.model_fields:
        note(section, type(getattr(Scenario(), section)))
    for section, (_, registry) in NAMED_TABLES.items():
        for name in registry.names():
            note(".".join(section), registry.lookup(name))
    return found
